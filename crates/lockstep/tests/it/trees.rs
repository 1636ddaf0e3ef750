//! Boosted trees through the real binary: the same model on any number of workers and after any interruption, and what
//! is made of it afterwards.

use crate::common::{Place, Running, read_json, send};
use rustix::process::Signal;
use serde_json::Value;
use std::fs;
use std::process::Command;

const JOB: &str = r#"
name = "trees"

[data]
train = { csv = "train.csv" }
test = { csv = "test.csv" }
val_split = 0.1

[model]
kind = "xgboost"
rounds = 12
depth = 4
eta = 0.3
subsample = 0.8
colsample_bytree = 0.7

[checkpoint]
every = "2 steps"
"#;

/// A table of six numbers, and a label that depends on them.
fn table(rows: usize, seed: u64, label: impl Fn(&[f64]) -> String) -> String {
    let mut state = seed;
    let mut random = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31) * 4.0 - 2.0
    };
    let mut text = "a,b,c,d,e,f,label\n".to_owned();
    for _ in 0..rows {
        let row: Vec<f64> = (0..6).map(|_| random()).collect();
        // One number in twenty is not there.
        let cell = |x: &f64| {
            if random_cell(*x) {
                String::new()
            } else {
                format!("{x:.5}")
            }
        };
        let numbers: Vec<String> = row.iter().map(cell).collect();
        text += &format!("{},{}\n", numbers.join(","), label(&row));
    }
    text
}

/// Whether a number is left out: a function of its last digits.
fn random_cell(x: f64) -> bool {
    ((x + 2.0) * 1e5) as u64 % 20 == 7
}

fn score(row: &[f64]) -> f64 {
    row[0] * row[1] + row[2] - 0.3 * row[3] * row[3]
}

fn binary(row: &[f64]) -> String {
    if score(row) > 0.0 { "yes" } else { "no" }.to_owned()
}

fn several(row: &[f64]) -> String {
    format!("class-{}", (score(row) + 6.0) as u32 / 3)
}

fn number(row: &[f64]) -> String {
    format!("{:.4}", score(row) * 100.0 + 0.5)
}

/// A place with two tables and a job of trees, in which XGBoost is found.
struct Trees(Place);

impl Trees {
    fn new(label: fn(&[f64]) -> String) -> Self {
        let place = Place::new();
        fs::write(place.path("train.csv"), table(2000, 1, label)).unwrap();
        fs::write(place.path("test.csv"), table(500, 2, label)).unwrap();
        place.write_job(JOB);
        Self(place)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args);
        command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
        command
    }

    fn output(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let output = self.command(args).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (
            output.status.code(),
            text(output.stdout),
            text(output.stderr),
        )
    }

    fn train(&self, args: &[&str]) -> Value {
        let (code, stdout, stderr) = self.output(&[&["run", "job.toml", "--json"], args].concat());
        assert_eq!(code, Some(0), "{args:?}: {stderr}");
        serde_json::from_str(stdout.lines().last().unwrap()).unwrap()
    }

    /// Starts training whose rounds take a while until [`Place::wake`], so that there is a middle of a run for whoever
    /// kills or stops something.
    fn start(&self, args: &[&str]) -> Running {
        let command = self.command(&[&["run", "job.toml", "--json"], args].concat());
        self.0.start_slow(command, "round.begin=sleep:250")
    }
}

/// How much each column is used, as a run says it.
fn importance(result: &Value) -> String {
    let run = result["run_dir"].as_str().unwrap();
    fs::read_to_string(format!("{run}/model/importance.csv")).unwrap()
}

#[test]
fn any_number_of_workers_and_threads_grows_the_same_trees() {
    for label in [binary, several, number] {
        let place = Trees::new(label);
        let one = place.train(&[]);
        let expected = one["weights_sha256"].as_str().unwrap();
        for args in [
            ["--workers", "2", "--set", "train.threads=1"],
            ["--workers", "3", "--set", "train.threads=2"],
            ["--workers", "4", "--set", "train.threads=1"],
        ] {
            let other = place.train(&args);
            assert_eq!(other["weights_sha256"], expected, "{args:?}");
            assert_eq!(other["metrics"], one["metrics"], "{args:?}");
            assert_eq!(importance(&other), importance(&one), "{args:?}");
        }
        let run = one["run_dir"].as_str().unwrap();
        let model = fs::read(format!("{run}/model/model.ubj")).unwrap();
        // The names of columns are in it, but are none of what is hashed.
        let unnamed = lockstep_trees::without_names(&model);
        assert_ne!(unnamed, model);
        assert_eq!(lockstep_base::fs::sha256(&unnamed), expected);
    }
}

#[test]
fn a_worker_that_is_killed_or_stopped_costs_some_rounds_and_changes_nothing() {
    let place = Trees::new(binary);
    let expected = place.train(&[])["weights_sha256"].clone();
    for signal in [Signal::KILL, Signal::STOP] {
        let mut run = place.start(&["--workers", "3", "--set", "gang.deadline_s=8"]);
        let victim = run.wait_for_worker(1);
        for _ in 0..5 {
            run.wait_for("epoch");
        }
        send(victim, signal);
        let restart = run.wait_for("restart");
        place.0.wake();
        let began = std::time::Instant::now();
        run.wait_for("epoch");
        eprintln!(
            "{signal:?}: {restart}; going on after {:?}",
            began.elapsed()
        );
        let (code, result, stderr) = run.finish();
        assert_eq!(code, Some(0), "{stderr}");
        assert_eq!(result["weights_sha256"], expected, "{signal:?}");
        assert_eq!(result["restarts"], 1);
    }
    place.0.assert_no_process_is_left();
}

#[test]
fn a_run_that_was_stopped_goes_on_with_other_workers_to_the_same_trees() {
    let place = Trees::new(several);
    let expected = place.train(&[])["weights_sha256"].clone();
    let mut run = place.start(&["--workers", "2"]);
    for _ in 0..4 {
        run.wait_for("epoch");
    }
    run.signal(Signal::INT);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(130), "{stderr}");
    let folder = result["run_dir"].as_str().unwrap().to_owned();
    let resumed = place.train(&["--resume", &folder, "--workers", "3"]);
    assert_eq!(resumed["weights_sha256"], expected);
    assert_eq!(resumed["epochs"], 12);
    let again = place.output(&["run", "job.toml", "--resume", &folder]);
    assert_eq!(again.0, Some(1));
    assert!(again.2.contains("12 rounds already"), "{}", again.2);
    let other = [
        "run",
        "job.toml",
        "--resume",
        &folder,
        "--set",
        "model.eta=0.1",
    ];
    let other = place.output(&other);
    assert!(other.2.contains("model.eta"), "{}", other.2);
}

#[test]
fn a_replay_that_comes_to_other_trees_names_the_library_that_is_another() {
    let place = Trees::new(number);
    let result = place.train(&["--set", "model.rounds=2"]);
    let run = result["run_dir"].as_str().unwrap();
    let replay = || place.output(&["replay", run]);
    let (code, stdout, stderr) = replay();
    assert_eq!(code, Some(0), "{stderr}");
    assert!(stdout.contains("the same as"), "{stdout}");

    let change = |file: &str, change: &dyn Fn(&mut Value)| {
        let path = format!("{run}/{file}");
        let text = fs::read_to_string(&path).unwrap();
        let lines = text.lines().map(|line| {
            let mut line: Value = serde_json::from_str(line).unwrap();
            change(&mut line);
            format!("{line}\n")
        });
        fs::write(&path, lines.collect::<String>()).unwrap();
    };
    // As if another library had grown other trees.
    change("result.json", &|result| {
        result["weights_sha256"] = "0".repeat(64).into()
    });
    let (code, _, stderr) = replay();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(
        stderr.contains("not the same") && !stderr.contains("XGBoost"),
        "{stderr}"
    );
    change("events.jsonl", &|event| {
        if event["event"] == "started" {
            assert_eq!(event["libraries"][0]["name"], "XGBoost");
            let library = &mut event["libraries"][0];
            (library["version"], library["sha256"]) = ("3.0.1".into(), "f".repeat(64).into());
        }
    });
    let (code, _, stderr) = replay();
    assert_eq!(code, Some(1), "{stderr}");
    let expected = "XGBoost is another now, which may be why: 3.0.1 with SHA-256 ffffffffffff then";
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn a_coordinator_that_is_killed_leaves_a_state_to_go_on_from() {
    let place = Trees::new(number);
    let expected = place.train(&[])["weights_sha256"].clone();
    let mut run = place.start(&["--workers", "2"]);
    let folder = run.wait_for("started")["run_dir"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..6 {
        run.wait_for("epoch");
    }
    run.signal(Signal::KILL);
    run.finish();
    place.0.assert_no_process_is_left();
    let resumed = place.train(&["--resume", &folder]);
    assert_eq!(resumed["weights_sha256"], expected);
}

#[test]
fn trees_are_measured_and_predict_as_pythons_xgboost_does() {
    let place = Trees::new(binary);
    let result = place.train(&["--workers", "2"]);
    assert!(
        result["metrics"]["accuracy"].as_f64().unwrap() > 0.8,
        "{result}"
    );
    let folder = result["run_dir"].as_str().unwrap().to_owned();
    let own = read_json(&std::path::Path::new(&folder).join("evaluation.json"));
    let (code, stdout, stderr) = place.output(&["evaluate", &folder, "--json", "--out", "again"]);
    assert_eq!(code, Some(0), "{stderr}");
    let again: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(again["accuracy"], own["accuracy"]);
    let predict = [
        "predict",
        &folder,
        "--data",
        "test.csv",
        "--out",
        "said.jsonl",
        "--probabilities",
        "--shap",
    ];
    let (code, _, stderr) = place.output(&predict);
    assert_eq!(code, Some(0), "{stderr}");
    let said: Vec<Value> = fs::read_to_string(place.0.path("said.jsonl"))
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let script = "import sys, csv, json, numpy, xgboost\n\
        rows = list(csv.reader(open(sys.argv[2])))[1:]\n\
        x = numpy.array([[float(v or 'nan') for v in row[:-1]] for row in rows], dtype='float32')\n\
        model = xgboost.Booster(model_file=sys.argv[1])\n\
        assert model.feature_names == list('abcdef'), model.feature_names\n\
        gain = model.get_score(importance_type='gain')\n\
        rows = xgboost.DMatrix(x, feature_names=model.feature_names)\n\
        shap = numpy.abs(model.predict(rows, pred_contribs=True)[:, :-1].astype('float64')).mean(axis=0)\n\
        print(json.dumps([model.predict(rows).tolist(), [[gain.get('abcdef'[i], 0), shap[i]] for i in range(6)]]))\n";
    let mut python = Command::new(lockstep_testkit::python_with_xgboost());
    python.args(["-c", script, &format!("{folder}/model/model.ubj")]);
    let answer = lockstep_testkit::succeed(python.arg(place.0.path("test.csv")));
    let (answer, uses): (Vec<f64>, Vec<[f64; 2]>) = serde_json::from_str(&answer).unwrap();
    let table = fs::read_to_string(format!("{folder}/model/importance.csv")).unwrap();
    assert_eq!(table.lines().count(), 7, "{table}");
    let picture = fs::read_to_string(format!("{folder}/importance.svg")).unwrap();
    for (column, expected) in ["a", "b", "c", "d", "e", "f"].iter().zip(uses) {
        let row = table
            .lines()
            .find(|line| line.starts_with(&format!("{column},")));
        let cells: Vec<&str> = row.unwrap().split(',').collect();
        for (cell, expected) in [cells[1], cells[4]].iter().zip(expected) {
            let found: f64 = cell.parse().unwrap();
            assert!(
                (found - expected).abs() <= 1e-6 * expected,
                "{column}: {found} {expected}"
            );
        }
        assert!(picture.contains(&format!(">{column}</text>")), "{picture}");
    }
    assert_eq!(answer.len(), said.len());
    for (said, expected) in said.iter().zip(answer) {
        let found = said["probabilities"]["yes"].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-6, "{said} {expected}");
        // What all columns add makes the log-odds.
        let shap = said["shap"].as_object().unwrap();
        assert_eq!(shap.len(), 7, "{said}");
        let sum: f64 = shap.values().map(|x| x.as_f64().unwrap()).sum();
        let odds = (expected / (1.0 - expected)).ln();
        assert!((sum - odds).abs() < 1e-3, "{said} {odds}");
    }
}

/// A table of few distinct numbers, so that cuts are the same whoever makes them: answers to queries, how relevant they
/// are, and a number whose spread grows with one of the columns.
fn answers(queries: usize, seed: usize) -> String {
    let mut text = "query,a,b,c,relevance,number\n".to_owned();
    for row in 0..queries * 12 {
        let random =
            |salt: usize| (row * 7919 + (seed + salt) * 104_729 + 17) * 2_654_435_761 % 1_000_003;
        let [a, b, c] = [1, 2, 3].map(|salt| random(salt) % 40);
        let noise = random(4) % 20;
        let relevance = (a + b / 2 + noise / 2) / 18;
        let number = b as f64 * 10.0 + (c * noise) as f64 / 3.0;
        // The rows of a query do not follow each other.
        text += &format!(
            "q{},{a},{b},{c},{},{number:.2}\n",
            row % queries,
            relevance.min(3)
        );
    }
    text
}

fn place_of_answers(columns: &str, model: &str) -> Trees {
    let place = Place::new();
    // So many queries that no equal parts of the rows end where one does.
    fs::write(place.path("train.csv"), answers(61, 0)).unwrap();
    fs::write(place.path("test.csv"), answers(30, 9)).unwrap();
    let label = columns.split(',').next().unwrap();
    place.write_job(&format!(
        "name = 'answers'\n[data]\ntrain = {{ csv = 'train.csv', {columns} }}\ntest = {{ csv = 'test.csv', {label} }}\n\
         val_split = 0.2\n[model]\nkind = 'xgboost'\nrounds = 6\ndepth = 3\n{model}\n[checkpoint]\nevery = '2 steps'\n"
    ));
    Trees(place)
}

impl Trees {
    /// What the model of a run says of the rows to test on.
    fn numbers(&self, result: &Value, column: &str) -> Vec<f64> {
        let run = result["run_dir"].as_str().unwrap();
        let out = ["predict", run, "--data", "test.csv", "--out", "said.jsonl"];
        let (code, _, stderr) = self.output(&out);
        assert_eq!(code, Some(0), "{stderr}");
        let said = fs::read_to_string(self.0.path("said.jsonl")).unwrap();
        let lines = said
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .map(|line| {
                line["predicted"][column]
                    .as_f64()
                    .unwrap_or_else(|| panic!("{line}"))
            })
            .collect()
    }

    /// The model of a job on several numbers of workers, which is the same, and nearly what XGBoost makes of it alone.
    fn agrees_with_xgboost(&self, column: &str) -> Value {
        let one = self.train(&[]);
        for workers in ["2", "3"] {
            let other = self.train(&["--workers", workers]);
            assert_eq!(other["weights_sha256"], one["weights_sha256"], "{workers}");
            assert_eq!(other["metrics"], one["metrics"], "{workers}");
        }
        let own = self.train(&["--set", "model.exact=false"]);
        let both = self
            .numbers(&one, column)
            .into_iter()
            .zip(self.numbers(&own, column));
        for (exact, own) in both {
            assert!(
                (exact - own).abs() < 1e-3 * (1.0 + own.abs()),
                "{exact} {own}"
            );
        }
        one
    }
}

#[test]
fn quantiles_are_the_same_on_any_number_of_workers_and_what_xgboost_predicts() {
    let model = "objective = 'reg:quantileerror'\nquantile_alpha = 0.8";
    let place = place_of_answers("label = 'number', drop = ['relevance', 'query']", model);
    let result = place.agrees_with_xgboost("number");
    let said = place.numbers(&result, "number");
    let table = answers(30, 9);
    let below =
        table.lines().skip(1).zip(&said).filter(|(line, said)| {
            line.rsplit(',').next().unwrap().parse::<f64>().unwrap() <= **said
        });
    let share = below.count() as f64 / said.len() as f64;
    assert!((0.7..0.9).contains(&share), "{share} of all are below");
    let run = result["run_dir"].as_str().unwrap();
    let (code, stdout, stderr) = place.output(&["evaluate", run, "--json"]);
    assert_eq!(code, Some(0), "{stderr}");
    let again: Value = serde_json::from_str(&stdout).unwrap();
    let losses = [&again["loss"], &result["metrics"]["loss"]].map(|loss| loss.as_f64().unwrap());
    assert!((losses[0] - losses[1]).abs() < 1e-9, "{losses:?}");

    let mut run = place.start(&["--workers", "2"]);
    let folder = run.wait_for("started")["run_dir"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..3 {
        run.wait_for("epoch");
    }
    run.signal(Signal::KILL);
    run.finish();
    let resumed = place.train(&["--resume", &folder, "--workers", "3"]);
    assert_eq!(resumed["weights_sha256"], result["weights_sha256"]);

    let absolute = place.train(&["--set", "model.objective=reg:absoluteerror"]);
    assert!(absolute["metrics"]["mae"].as_f64() < result["metrics"]["mae"].as_f64());
}

#[test]
fn rankings_are_the_same_on_any_number_of_workers_and_what_xgboost_ranks() {
    for objective in ["rank:ndcg", "rank:pairwise"] {
        let model = format!("objective = '{objective}'\nbase_score = 0.0");
        let columns = "label = 'relevance', group = 'query', drop = ['number']";
        let place = place_of_answers(columns, &model);
        let result = place.agrees_with_xgboost("relevance");
        let ndcg = result["metrics"]["ndcg"].as_f64().unwrap();
        assert!(ndcg > 0.9, "{result}");
        let run = result["run_dir"].as_str().unwrap();
        let (code, stdout, stderr) = place.output(&["evaluate", run, "--json"]);
        assert_eq!(code, Some(0), "{stderr}");
        let again: Value = serde_json::from_str(&stdout).unwrap();
        assert_eq!(
            (&again["ndcg"], &again["groups"]),
            (&result["metrics"]["ndcg"], &30.into())
        );
        let (code, shown, stderr) = place.output(&["runs", "show", run]);
        assert_eq!(code, Some(0), "{stderr}");
        assert!(shown.contains("ndcg"), "{shown}");
    }
}

#[test]
fn what_cannot_be_ranked_is_said() {
    let ranked = "label = 'relevance', group = 'query', drop = ['number']";
    let place = place_of_answers(ranked, "");
    let network = "model={ kind = 'mlp', hidden = [3] }";
    let cases: [(&str, &[&str], &str); 7] = [
        (
            ranked,
            &["model.objective=reg:squarederror"],
            "data.train.group: rows are ranked within groups",
        ),
        (
            ranked,
            &["model.objective=rank:map"],
            "a whole number from 0 to 1; row",
        ),
        (
            ranked,
            &["model.parameters={ lambdarank_unbiased = true }"],
            "do not know `lambdarank_unbiased = true`",
        ),
        (
            "label = 'relevance', group = 'qury'",
            &[],
            "no column `qury`; did you mean `query`?",
        ),
        (
            "label = 'relevance', group = 'query', weight = 'a'",
            &[],
            "data.train.weight: all groups count alike",
        ),
        (
            "label = 'relevance'",
            &["model.objective=rank:ndcg"],
            "data.train.group: \"rank:ndcg\" ranks rows within groups",
        ),
        (
            "label = 'number'",
            &["model.objective=reg:quantileerror"],
            "model.quantile_alpha",
        ),
    ];
    for (columns, sets, expected) in cases {
        let train = format!("data.train={{ csv = 'train.csv', {columns} }}");
        let mut args = vec!["run", "job.toml", "--set", &train];
        for set in sets {
            args.extend(["--set", set]);
        }
        let (code, _, stderr) = place.output(&args);
        assert_ne!(code, Some(0), "{columns} {sets:?}");
        assert!(stderr.contains(expected), "{expected}: {stderr}");
    }
    let learn = [
        "train.epochs=1",
        "train.batch=4",
        "train.optimizer={ kind = 'sgd' }",
    ];
    let sets = [network]
        .into_iter()
        .chain(learn)
        .flat_map(|set| ["--set", set]);
    let args: Vec<&str> = ["run", "job.toml"].into_iter().chain(sets).collect();
    let (code, _, stderr) = place.output(&args);
    assert_ne!(code, Some(0));
    assert!(
        stderr.contains("data.train.group: rows are ranked within groups by trees alone"),
        "{stderr}"
    );
}

#[test]
fn a_run_of_trees_that_was_killed_has_the_model_of_its_newest_checkpoint() {
    let place = Trees::new(binary);
    // So many rounds that it has not ended yet, also where the machine is slow.
    let rounds = ["--set", "model.rounds=100"];
    let mut run = place.start(&[&["--workers", "2"], &rounds[..]].concat());
    let folder = run.wait_for("started")["run_dir"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..5 {
        run.wait_for("epoch");
    }
    let (code, _, stderr) = place.output(&["evaluate", &folder]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("has not ended"), "{stderr}");
    run.signal(Signal::KILL);
    run.finish();
    place.0.assert_no_process_is_left();
    let (code, stdout, stderr) = place.output(&["evaluate", &folder]);
    assert_eq!(code, Some(0), "{stderr}");
    assert!(
        stderr.contains("its newest checkpoint: the trees of round"),
        "{stderr}"
    );
    assert!(stdout.contains("accuracy"), "{stdout}");
    let (code, _, stderr) = place.output(&["predict", &folder, "--out", "said.csv"]);
    assert_eq!(code, Some(0), "{stderr}");
    // What was taken from it does not keep the run from going on.
    let expected = place.train(&rounds)["weights_sha256"].clone();
    let resumed = place.train(&[&["--resume", &folder], &rounds[..]].concat());
    assert_eq!(resumed["weights_sha256"], expected);
}

/// A model from a stranger could lead XGBoost out of its memory, and the program with it.
#[test]
fn trees_that_lead_nowhere_are_refused_with_the_file_and_what_is_wrong() {
    let place = Trees::new(binary);
    let folder = place.train(&[])["run_dir"].as_str().unwrap().to_owned();
    let (model, card) = (
        format!("{folder}/model/model.ubj"),
        format!("{folder}/model/model.json"),
    );
    let whole = fs::read(&model).unwrap();
    let hash = |model: &[u8]| lockstep_base::fs::sha256(&lockstep_trees::without_names(model));
    let was = hash(&whole);
    let said = fs::read_to_string(&card).unwrap();
    let lists = ["left_children[$l#L", "split_indices[$l#L", "parents[$l#L"];
    for list in lists {
        let at = whole
            .windows(list.len())
            .position(|at| at == list.as_bytes());
        let first = at.unwrap() + list.len() + 8;
        let mut hostile = whole.clone();
        hostile[first..first + 4].copy_from_slice(&1_000_000_i32.to_be_bytes());
        fs::write(&model, &hostile).unwrap();
        let now = hash(&hostile);
        fs::write(&card, said.replace(&was, &now)).unwrap();
        let predict = ["predict", &folder, "--data", "test.csv", "--out", "x.jsonl"];
        let (code, _, stderr) = place.output(&predict);
        assert_eq!(code, Some(1), "{list}: {stderr}");
        assert!(
            stderr.contains("model.ubj cannot be used: tree 0"),
            "{stderr}"
        );
        assert!(stderr.contains("1000000"), "{stderr}");
    }
}

#[test]
fn training_that_diverges_ends_with_a_word() {
    let place = Trees::new(number);
    for workers in ["1", "2"] {
        let far = ["--set", "model.eta=1e30", "--set", "model.rounds=30"];
        let args = [&["run", "job.toml", "--workers", workers], &far[..]].concat();
        let (code, _, stderr) = place.output(&args);
        assert_ne!(code, Some(0));
        assert!(stderr.contains("training diverged"), "{stderr}");
    }
}

#[test]
fn bad_jobs_of_trees_are_refused_by_name_and_leave_nothing() {
    let place = Trees::new(binary);
    let cases: [(&[&str], &str); 10] = [
        (
            &["--set", "model.objective=multi:softprop"],
            "model.objective",
        ),
        (
            &["--set", "model.objective=reg:squarederror"],
            "which is not a number",
        ),
        (
            &["--set", "model.objective=reg:squarederro"],
            "did you mean `reg:squarederror`?",
        ),
        (&["--epochs", "3"], "here it is called `rounds`, in [model]"),
        (
            &["--set", "train.patience=3", "--set", "data.val_split=0.0"],
            "train.patience",
        ),
        (&["--set", "checkpoint.best=mse"], "checkpoint.best"),
        (
            &["--set", "model.parameters={ colsample_bynode = 0.5 }"],
            "colsample_bynode",
        ),
        (&["--set", "model.depht=3"], "depth"),
        (
            &["--set", "train.device='cuda'", "--workers", "2"],
            "trees on a GPU are grown by one worker, found train.workers = 2",
        ),
        (
            &["--set", "train.device='cuda'", "--workers", "1"],
            "libxgboost.so: is XGBoost for processors alone, and train.device asks for a GPU",
        ),
    ];
    for (args, word) in cases {
        let (code, _, stderr) = place.output(&[&["run", "job.toml"], args].concat());
        assert_ne!(code, Some(0), "{args:?}");
        assert!(stderr.contains(word), "{args:?}: {stderr}");
        assert_eq!(place.0.runs().len(), 0, "{args:?}");
    }
    fs::create_dir(place.0.path("parts")).unwrap();
    for (name, text) in [
        ("0.csv", "a,label\n1,x\n2,y\n"),
        ("1.csv", "a,b,label\n1,2,x\n"),
    ] {
        fs::write(place.0.path("parts").join(name), text).unwrap();
    }
    let parts = ["run", "job.toml", "--set", "data.train={ csv = 'parts' }"];
    let (_, _, stderr) = place.output(&parts);
    assert!(
        stderr.contains("1.csv: it has the column `b`, which"),
        "{stderr}"
    );
    let mut missing = place.0.command(&["run", "job.toml"]);
    missing.env("LOCKSTEP_XGBOOST", "/nowhere/libxgboost.so");
    let said = String::from_utf8(missing.output().unwrap().stderr).unwrap();
    assert!(
        said.contains("LOCKSTEP_XGBOOST") && said.contains("/nowhere"),
        "{said}"
    );
}

/// The first lines of a table, its names too.
fn first_rows(table: &str, rows: usize) -> String {
    table
        .lines()
        .take(rows + 1)
        .map(|line| format!("{line}\n"))
        .collect()
}

impl Trees {
    /// The same job on one worker and on several.
    fn agrees_on(&self, workers: &str, args: &[&str]) {
        let [one, other] = ["1", workers].map(|workers| {
            let workers = ["--workers", workers];
            self.train(&[&workers[..], args].concat())
        });
        assert_eq!(other["weights_sha256"], one["weights_sha256"], "{args:?}");
        assert_eq!(other["metrics"], one["metrics"], "{args:?}");
        assert_eq!(other["val"], one["val"], "{args:?}");
        assert_eq!(importance(&other), importance(&one), "{args:?}");
    }
}

#[test]
fn workers_without_rows_change_nothing() {
    for label in [several, number] {
        let place = Trees::new(label);
        let two = first_rows(&table(500, 2, label), 2);
        fs::write(place.0.path("two.csv"), two).unwrap();
        let few = "data.test={ csv = 'two.csv' }";
        place.agrees_on("3", &["--set", few]);
        place
            .0
            .write_job(&JOB.replace("val_split = 0.1", "val = { csv = 'two.csv' }"));
        place.agrees_on("3", &["--set", "train.patience=2"]);
    }
    let place = Trees::new(number);
    // One row in ten of so many is set aside.
    let rows = table(2000, 1, number);
    fs::write(place.0.path("train.csv"), first_rows(&rows, 20)).unwrap();
    let median = ["--set", "model.objective=reg:absoluteerror"];
    place.agrees_on("3", &[]);
    place.agrees_on("3", &median);
    fs::write(place.0.path("train.csv"), first_rows(&rows, 2)).unwrap();
    place.0.write_job(
        &JOB.replace("val_split = 0.1", "")
            .replace("test = { csv = \"test.csv\" }", ""),
    );
    place.agrees_on("3", &[]);
    place.agrees_on("3", &median);
}

#[test]
fn a_test_set_of_one_group_or_of_unequal_blocks_is_measured_on_any_number_of_workers() {
    let columns = "label = 'relevance', group = 'query', drop = ['number']";
    let place = place_of_answers(columns, "");
    let table = answers(30, 9);
    let one_group = table
        .lines()
        .filter(|line| line.starts_with("q0,") || line.starts_with("query"));
    let one_group: String = one_group.map(|line| format!("{line}\n")).collect();
    fs::write(place.0.path("test.csv"), one_group).unwrap();
    place.agrees_on("2", &[]);
    let place = Trees::new(number);
    // A row more than two workers predict in one block each.
    fs::write(
        place.0.path("test.csv"),
        self::table(2 * 32_768 + 1, 2, number),
    )
    .unwrap();
    place.agrees_on("2", &["--set", "model.rounds=2"]);
}

#[test]
fn labels_and_weights_that_trees_cannot_learn_from_are_refused_by_the_set() {
    let place = Trees::new(number);
    let rows = |label: &str| format!("a,w,label\n1,0,{label}\n2,0,2.5\n3,0,1.5\n4,0,7.25\n");
    for (name, label) in [("good.csv", "1"), ("zero.csv", "0"), ("below.csv", "-3")] {
        fs::write(place.0.path(name), rows(label)).unwrap();
    }
    let cases = [
        ("count:poisson", "below.csv", "good.csv", "below.csv has -3"),
        ("count:poisson", "good.csv", "below.csv", "below.csv has -3"),
        ("reg:gamma", "zero.csv", "good.csv", "zero.csv has 0"),
    ];
    for (objective, train, test, expected) in cases {
        let sets = [
            format!("model.objective={objective}"),
            format!("data.train={{ csv = '{train}' }}"),
            format!("data.test={{ csv = '{test}' }}"),
        ];
        let sets = sets.iter().flat_map(|set| ["--set", set]);
        let args: Vec<&str> = ["run", "job.toml"].into_iter().chain(sets).collect();
        let (code, _, stderr) = place.output(&args);
        assert_ne!(code, Some(0), "{objective}");
        assert!(
            stderr.contains("model.objective") && stderr.contains(expected),
            "{stderr}"
        );
    }
    let weighted = [
        "data.train={ csv = 'good.csv', weight = 'w' }",
        "data.test={ csv = 'good.csv' }",
    ];
    let sets = weighted.iter().flat_map(|set| ["--set", set]);
    let args: Vec<&str> = ["run", "job.toml"].into_iter().chain(sets).collect();
    let (code, _, stderr) = place.output(&args);
    assert_ne!(code, Some(0));
    assert!(
        stderr.contains("data.train.weight: the column of weights is 0"),
        "{stderr}"
    );
    assert_eq!(place.0.runs().len(), 0);
}

#[test]
fn several_labels_are_refused_by_their_columns() {
    let place = Trees::new(number);
    for (name, rows) in [
        ("numbers.csv", "1,0.5,7.25\n2,1.5,2.25\n3,2.5,1.75\n"),
        ("flags.csv", "1,0,1\n2,1,0\n3,1,1\n"),
    ] {
        fs::write(place.0.path(name), format!("a,here,there\n{rows}")).unwrap();
        let [train, test] = ["train", "test"]
            .map(|set| format!("data.{set}={{ csv = '{name}', label = ['here', 'there'] }}"));
        let (code, _, stderr) = place.output(&["run", "job.toml", "--set", &train, "--set", &test]);
        assert_ne!(code, Some(0), "{name}");
        assert!(
            stderr.contains("data.train.label") && stderr.contains("`here`, `there`"),
            "{stderr}"
        );
    }
    assert_eq!(place.0.runs().len(), 0);
}

#[test]
fn the_newest_library_comes_without_python_and_keeps_the_promise() {
    let place = Trees::new(binary);
    let brought = |args: &[&str]| {
        let mut command = place.0.command(args);
        command.env("LOCKSTEP_CACHE", place.0.path("cache"));
        command.env("PATH", "").env_remove("LOCKSTEP_XGBOOST");
        command.output().unwrap()
    };
    let missing = brought(&["run", "job.toml", "--offline"]);
    let said = String::from_utf8_lossy(&missing.stderr);
    assert_eq!(missing.status.code(), Some(1), "{said}");
    assert!(
        said.contains("--offline or LOCKSTEP_OFFLINE forbids"),
        "{said}"
    );
    let first = brought(&["run", "job.toml", "--json"]);
    let said = String::from_utf8_lossy(&first.stdout);
    assert!(first.status.success(), "{said}");
    assert!(said.contains("library is not here: downloading"), "{said}");
    let again = brought(&["run", "job.toml", "--json", "--offline"]);
    let said = String::from_utf8_lossy(&again.stdout);
    assert!(again.status.success(), "{said}");
    assert!(!said.contains("downloading"), "{said}");
    let got = brought(&["data", "get", "xgboost"]);
    assert!(got.stdout.ends_with(b"xgboost/xgboost/lib/libxgboost.so\n"));
    let hashes = ["1", "2"].map(|workers| {
        let ran = brought(&["run", "job.toml", "--json", "--workers", workers]);
        assert!(
            ran.status.success(),
            "{}",
            String::from_utf8_lossy(&ran.stderr)
        );
        let last = String::from_utf8(ran.stdout).unwrap();
        let result: Value = serde_json::from_str(last.lines().last().unwrap()).unwrap();
        result["weights_sha256"].clone()
    });
    assert_eq!(hashes[0], hashes[1]);
}

#[test]
fn a_search_tries_the_same_trees_on_any_number_of_workers() {
    let search = [
        "tune",
        "job.toml",
        "--json",
        "--trials",
        "4",
        "--search",
        "model.eta=log(0.01,1)",
        "--search",
        "model.depth=int(2,5)",
        "--metric",
    ];
    let found = |args: &[&str]| {
        let trees = Trees::new(binary);
        let (code, stdout, stderr) = trees.output(&[&search[..], args].concat());
        assert_eq!(code, Some(0), "{stderr}");
        let found: Value = serde_json::from_str(&stdout).unwrap();
        found["trials"].clone()
    };
    let one = found(&["loss", "--workers", "1"]);
    assert_eq!(one.as_array().unwrap().len(), 4);
    assert_eq!(one, found(&["loss", "--workers", "2", "--parallel", "2"]));
}
