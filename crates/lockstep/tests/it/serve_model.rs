//! `lockstep serve-model` through the binary: it says the same as `lockstep predict`, to the bit, and keeps its promises.

use crate::common::avocados::{NewRow, avocados};
use crate::common::serve::{Answer, Serve, token};
use crate::common::trees::{TREES, trees_here};
use crate::common::{LIMIT, Place};
use crate::predict::pictures;
use base64::Engine as _;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn start(place: &Place, model: &str, args: &[&str]) -> Serve {
    let words = ["serve-model", model, "--store", "runs", "--port", "0"];
    Serve::of(place.command(&[&words, args].concat()))
}

/// What `lockstep predict` says, with all probabilities.
fn predicted(place: &Place, run: &str, data: &[&str], xgboost: Option<&Path>) -> Vec<Value> {
    let data = data.iter().flat_map(|data| ["--data", data]);
    let words = ["predict", run, "--out", "-", "--probabilities"];
    let words: Vec<&str> = words.into_iter().chain(data).collect();
    let mut command = place.command(&words);
    command.envs(xgboost.map(|path| ("LOCKSTEP_XGBOOST", path)));
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let lines = String::from_utf8(output.stdout).unwrap();
    let row = |line: &str| serde_json::from_str(line).unwrap();
    lines.lines().map(row).collect()
}

/// The same as a server says it.
fn expected(rows: &[Value]) -> Vec<Value> {
    let row = |row: &Value| {
        json!({
            "predicted": row["predicted"],
            "probability": row["probability"],
            "probabilities": row["probabilities"],
        })
    };
    rows.iter().map(row).collect()
}

fn predictions(answer: Answer) -> Vec<Value> {
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert_eq!(answer.status, 200, "{body}");
    let answer: Value = serde_json::from_str(&body).unwrap();
    answer["predictions"].as_array().unwrap().clone()
}

/// The pixels of the place's test set, a list for each sample.
fn pixels(place: &Place) -> Vec<Vec<u8>> {
    let file = fs::read(place.path("test-images")).unwrap();
    file[16..].chunks_exact(64).map(<[u8]>::to_vec).collect()
}

const ALL: fn() -> Value = || json!({ "probabilities": true });

#[test]
fn a_network_on_pixels_says_over_http_what_predict_says_to_the_bit() {
    let place = Place::new();
    let run = place.train(&[])["run"].as_str().unwrap().to_owned();
    let right = expected(&predicted(&place, &run, &[], None));
    let serve = start(&place, &run, &[]);
    let rows = pixels(&place);
    let lines: Vec<Vec<&[u8]>> = rows.iter().map(|row| row.chunks(8).collect()).collect();
    for body in [
        json!({ "inputs": rows, "params": ALL() }),
        json!({ "instances": lines, "params": ALL() }),
    ] {
        assert_eq!(predictions(serve.post("/invocations", &body)), right);
    }
    // Alone, without the probabilities of all.
    let one = predictions(serve.post("/invocations", &json!({ "inputs": [rows[7]] })));
    assert_eq!(one[0]["predicted"], right[7]["predicted"]);
    assert_eq!(one[0]["probability"], right[7]["probability"]);
    assert_eq!(one[0].get("probabilities"), None);

    for path in [
        "/ping",
        "/health",
        "/version",
        "/v2",
        "/v2/health/live",
        "/v2/health/ready",
    ] {
        assert_eq!(serve.get(path).status, 200, "{path}");
    }
    let about = serve.get(&format!("/v2/models/{run}")).ok().json();
    assert_eq!(about["inputs"][0]["shape"], json!([-1, 8, 8, 1]));
    let first = [&rows[0][..], &rows[1]].concat();
    let input =
        json!({ "name": "input", "datatype": "UINT8", "shape": [2, 8, 8, 1], "data": first });
    let body = json!({ "id": "x", "inputs": [input], "parameters": ALL() });
    let answer = serve
        .post(&format!("/v2/models/{run}/infer"), &body)
        .ok()
        .json();
    assert_eq!(
        (&answer["id"], &answer["model_name"]),
        (&json!("x"), &json!(run))
    );
    let output = |at: usize| &answer["outputs"][at]["data"];
    assert_eq!(output(0)[1], right[1]["predicted"]);
    assert_eq!(output(1)[1], right[1]["probability"]);
    assert_eq!(answer["outputs"][2]["shape"], json!([2, 4]));
    let other = serve.post("/v2/models/other/infer", &body);
    assert_eq!(other.status, 404);

    let metrics = String::from_utf8(serve.get("/metrics").body).unwrap();
    assert!(
        metrics.contains("lockstep_serving_rows_total 409\n"),
        "{metrics}"
    );
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn files_of_pictures_are_decoded_and_transformed_as_predict_does_it() {
    let (place, run) = pictures();
    let right = expected(&predicted(&place, &run, &["flat/"], None));
    let serve = start(&place, &run, &[]);
    let mut names: Vec<_> = fs::read_dir(place.path("flat"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    names.sort();
    let files: Vec<Vec<u8>> = names.iter().map(|name| fs::read(name).unwrap()).collect();
    let mut form = Vec::new();
    for file in &files {
        form.extend_from_slice(
            b"--cut\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.bmp\"\r\n\r\n",
        );
        form.extend_from_slice(file);
        form.extend_from_slice(b"\r\n");
    }
    form.extend_from_slice(
        b"--cut\r\nContent-Disposition: form-data; name=\"params\"\r\n\r\n{\"probabilities\": true}\r\n--cut--\r\n",
    );
    let kind = [("Content-Type", "multipart/form-data; boundary=cut")];
    let answer = serve.send("POST", "/invocations", &kind, &form);
    assert_eq!(predictions(answer), right);
    let texts = files
        .iter()
        .map(|file| base64::engine::general_purpose::STANDARD.encode(file));
    let texts: Vec<String> = texts.collect();
    let tables: Vec<Value> = texts.iter().map(|text| json!({ "b64": text })).collect();
    let single: Vec<Value> = texts.iter().map(|text| json!([text])).collect();
    for body in [
        json!({ "inputs": texts, "params": ALL() }),
        json!({ "instances": tables, "params": ALL() }),
        json!({ "dataframe_split": { "columns": ["image"], "data": single }, "params": ALL() }),
    ] {
        assert_eq!(predictions(serve.post("/invocations", &body)), right);
    }
    let broken = serve.post(
        "/invocations",
        &json!({ "instances": [tables[0], { "b64": "aGVsbG8=" }] }),
    );
    assert_eq!(broken.status, 400);
    assert!(
        broken.json()["message"]
            .as_str()
            .unwrap()
            .contains("row 1: the picture cannot be read")
    );
    let few = start(&place, &run, &["--max-pixels", "10"]);
    let large = few.post("/invocations", &json!({ "inputs": [texts[0]] }));
    assert!(
        large.json()["message"]
            .as_str()
            .unwrap()
            .contains("there may be 10")
    );
}

/// A place with a table of dates, regions, truths and numbers, and the run of a network on it. Its new rows have the columns
/// in another order, and one more.
fn sold() -> (Place, String) {
    let (place, rows) = avocados();
    let line = |row: &NewRow| {
        let (date, region, volume) = (&row.date, row.region, &row.volume);
        format!("{},{region},x,{volume},{date}\n", row.organic)
    };
    let new = "organic,region,extra,volume,date\n".to_owned();
    let new = new + &rows.iter().map(line).collect::<String>();
    fs::write(place.path("new.csv"), new).unwrap();
    let run = place.train(&[])["run_dir"].as_str().unwrap().to_owned();
    (place, run)
}

#[test]
fn a_network_on_a_table_says_the_same_however_its_rows_come() {
    let (place, run) = sold();
    let rows = predicted(&place, &run, &["new.csv"], None);
    let right: Vec<Value> = rows
        .iter()
        .map(|row| row["predicted"]["price"].clone())
        .collect();
    let serve = start(&place, &run, &[]);
    let text = fs::read_to_string(place.path("new.csv")).unwrap();
    let kind = [("Content-Type", "text/csv")];
    let answer = serve.send("POST", "/invocations", &kind, text.as_bytes());
    assert_eq!(predictions(answer), right);
    // The same with the types of JSON: truths, numbers and nulls.
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap().split(',').collect();
    let value = |text: &str| match text {
        "" => Value::Null,
        "true" => json!(true),
        "false" => json!(false),
        text => text
            .parse::<f64>()
            .map_or(json!(text), |number| json!(number)),
    };
    let data: Vec<Vec<Value>> = lines
        .map(|line| line.split(',').map(value).collect())
        .collect();
    let record = |row: &Vec<Value>| {
        let pairs = names.iter().zip(row);
        let pairs = pairs.map(|(name, value)| ((*name).to_owned(), value.clone()));
        Value::Object(pairs.collect())
    };
    let records: Vec<Value> = data.iter().map(record).collect();
    let column = |at: usize| {
        data.iter()
            .map(|row| row[at].clone())
            .collect::<Vec<Value>>()
    };
    let columns: serde_json::Map<String, Value> = names
        .iter()
        .enumerate()
        .map(|(at, name)| ((*name).to_owned(), json!(column(at))))
        .collect();
    for body in [
        json!({ "dataframe_split": { "columns": names, "data": data } }),
        json!({ "dataframe_records": records }),
        json!({ "instances": records }),
        json!({ "inputs": columns }),
    ] {
        assert_eq!(predictions(serve.post("/invocations", &body)), right);
    }
    let tensor = |name: &str, datatype: &str, data: Vec<Value>| json!({ "name": name, "shape": [data.len()], "datatype": datatype, "data": data });
    let inputs = json!([
        tensor("date", "BYTES", column(4)),
        tensor("region", "BYTES", column(1)),
        tensor("organic", "BOOL", column(0)),
        tensor("volume", "FP64", column(3)),
    ]);
    let name = serve.said();
    let name = name
        .lines()
        .find_map(|line| line.split_once(" is "))
        .unwrap()
        .1
        .to_owned();
    let answer = serve.post(
        &format!("/v2/models/{name}/infer"),
        &json!({ "inputs": inputs }),
    );
    assert_eq!(answer.ok().json()["outputs"][0]["data"], json!(right));

    let refused = |body: Value| {
        let answer = serve.post("/invocations", &body);
        assert_eq!(answer.status, 400, "{body}");
        let answer = answer.json();
        assert_eq!(answer["error_code"], "BAD_REQUEST");
        answer["message"].as_str().unwrap().to_owned()
    };
    let missing = refused(
        json!({ "dataframe_split": { "columns": ["date", "regoin", "organic", "volume"], "data": [[1, 2, 3, 4]] } }),
    );
    assert!(
        missing.contains("no column `region`; did you mean `regoin`?"),
        "{missing}"
    );
    let wrong = refused(
        json!({ "dataframe_records": [records[0], { "date": "soon", "region": "east", "organic": true, "volume": 1 }] }),
    );
    assert!(
        wrong.contains("row 1: the column `date` holds `soon`, which is not a date"),
        "{wrong}"
    );
    let long = start(&place, &run, &["--max-rows", "2", "--max-body", "1KiB"]);
    let many = long.post("/invocations", &json!({ "inputs": [1, 2, 3] }));
    assert_eq!(many.status, 413);
    assert!(
        many.json()["message"]
            .as_str()
            .unwrap()
            .contains("3 rows; there may be 2")
    );
    assert_eq!(
        long.send("POST", "/invocations", &kind, &[b'x'; 2000])
            .status,
        413
    );
}

#[test]
fn trees_say_over_http_what_predict_says_to_the_bit() {
    let place = Place::new();
    let xgboost = lockstep_testkit::xgboost_library();
    place.write_job(TREES);
    let run = trees_here(&place, &xgboost)["run"]
        .as_str()
        .unwrap()
        .to_owned();
    let right = expected(&predicted(&place, &run, &["train.csv"], Some(&xgboost)));
    let mut command = place.command(&["serve-model", &run, "--store", "runs", "--port", "0"]);
    command.env("LOCKSTEP_XGBOOST", &xgboost);
    let serve = Serve::of(command);
    let text = fs::read_to_string(place.path("train.csv")).unwrap();
    let mut rows = Vec::new();
    for line in text.lines().skip(1) {
        let numbers = line
            .split(',')
            .take(3)
            .map(|cell| cell.parse::<f64>().unwrap());
        rows.push(numbers.collect::<Vec<f64>>());
    }
    let body = json!({ "inputs": rows, "params": ALL() });
    assert_eq!(predictions(serve.post("/invocations", &body)), right);
    // Requests that are computed together say the same as one by one.
    thread::scope(|scope| {
        for (row, right) in rows.iter().zip(&right).take(32) {
            let serve = &serve;
            scope.spawn(move || {
                let body = json!({ "inputs": [row], "params": ALL() });
                assert_eq!(
                    predictions(serve.post("/invocations", &body)),
                    std::slice::from_ref(right)
                );
            });
        }
    });
}

#[test]
fn an_alias_that_moves_loses_no_request_and_one_that_leads_nowhere_changes_nothing() {
    let place = Place::new();
    let runs = ["1", "2"].map(|seed| {
        let result = place.train(&["--set", &format!("train.seed={seed}")]);
        result["run"].as_str().unwrap().to_owned()
    });
    for run in &runs {
        place.succeeds(&["models", "register", "digits", run]);
    }
    place.succeeds(&["models", "alias", "digits@1", "champion"]);
    let row = pixels(&place).remove(0);
    let right = runs.map(|run| predicted(&place, &run, &[], None)[0]["probability"].clone());
    assert_ne!(right[0], right[1]);
    let serve = start(&place, "digits@champion", &[]);
    let body = json!({ "inputs": [row] });
    let ask = || predictions(serve.post("/invocations", &body))[0]["probability"].clone();
    assert_eq!(ask(), right[0]);
    let moved = AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !moved.load(Ordering::Relaxed) {
                    assert!(right.contains(&ask()));
                }
            });
        }
        place.succeeds(&["models", "alias", "digits@2", "champion"]);
        let began = Instant::now();
        while ask() != right[1] {
            assert!(began.elapsed() < LIMIT, "{}", serve.said());
            thread::sleep(Duration::from_millis(50));
        }
        moved.store(true, Ordering::Relaxed);
    });
    let about = serve.get("/v2/models/digits/versions/2").ok().json();
    assert_eq!(about["versions"], json!(["2"]));
    assert_eq!(serve.get("/v2/models/digits/versions/1").status, 404);

    let run = place.train(&["--set", "train.seed=3"])["run"]
        .as_str()
        .unwrap()
        .to_owned();
    place.succeeds(&["models", "register", "digits", &run]);
    let description =
        fs::read_to_string(place.path("runs/models/digits/versions/000003.json")).unwrap();
    let description: Value = serde_json::from_str(&description).unwrap();
    let files = description["folder"].as_str().unwrap();
    fs::remove_dir_all(place.path(&format!("runs/models/digits/{files}/model"))).unwrap();
    place.succeeds(&["models", "alias", "digits@3", "champion"]);
    let began = Instant::now();
    while !serve.said().contains("digits@2 goes on") {
        assert!(began.elapsed() < LIMIT, "{}", serve.said());
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(ask(), right[1]);
}

#[test]
fn a_full_queue_is_told_to_come_again_and_a_request_has_a_deadline() {
    let place = Place::new();
    let run = place.train(&[])["run"].as_str().unwrap().to_owned();
    let words = [
        "serve-model",
        &run,
        "--store",
        "runs",
        "--port",
        "0",
        "--queue",
        "1",
        "--max-batch",
        "1",
        "--timeout",
        "5",
    ];
    let mut command = place.command(&words);
    command.env("LOCKSTEP_FAILPOINTS", "serving.batch=sleep:20000");
    let serve = Serve::of(command);
    let body = json!({ "inputs": [pixels(&place)[0]] });
    let busy = thread::scope(|scope| {
        let asking: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| serve.post("/invocations", &body)))
            .collect();
        let answers: Vec<Answer> = asking.into_iter().map(|one| one.join().unwrap()).collect();
        let late = answers.iter().filter(|answer| answer.status == 504).count();
        assert!((1..=2).contains(&late), "{answers:?}");
        answers.into_iter().find(|answer| answer.status == 503)
    });
    let busy = busy.expect("two more than one that is computed and one that waits");
    assert!(
        busy.headers
            .iter()
            .any(|(name, value)| name.eq_ignore_ascii_case("retry-after") && value == "1")
    );
    assert_eq!(busy.json()["error_code"], "TEMPORARILY_UNAVAILABLE");
}

#[test]
fn where_a_token_is_needed_reading_is_enough_to_predict() {
    let place = Place::new();
    let run = place.train(&[])["run"].as_str().unwrap().to_owned();
    let anna = token(&place, "anna", "read");
    let serve = start(&place, &run, &["--require-token"]);
    let body = json!({ "inputs": [pixels(&place)[0]] });
    assert_eq!(serve.post("/invocations", &body).status, 401);
    assert_eq!(serve.get("/metrics").status, 401);
    assert_eq!(serve.get("/ping").status, 200);
    assert_eq!(
        serve
            .post_as("lockstep_wrong", "/invocations", &body)
            .status,
        403
    );
    predictions(serve.post_as(&anna, "/invocations", &body));
}

#[test]
fn the_jobs_server_predicts_with_any_model_of_its_store_for_whoever_may_read() {
    let place = Place::new();
    let run = place.train(&[])["run"].as_str().unwrap().to_owned();
    place.succeeds(&["models", "register", "digits", &run, "--alias", "champion"]);
    let right = expected(&predicted(&place, &run, &[], None));
    let anna = token(&place, "anna", "read");
    let serve = Serve::start(&place, &["--require-token"]);
    let body = json!({ "inputs": pixels(&place), "params": ALL() });
    for model in ["digits@champion", "digits@1", "digits"] {
        let path = format!("/models/{model}/invocations");
        assert_eq!(serve.post(&path, &body).status, 401);
        assert_eq!(
            predictions(serve.post_as(&anna, &path, &body)),
            right,
            "{model}"
        );
    }
    let missing = serve.post_as(&anna, "/models/digits@best/invocations", &body);
    assert_eq!(missing.status, 404);
    assert!(
        missing.json()["message"]
            .as_str()
            .unwrap()
            .contains("alias `best`")
    );
    let metrics = serve.send_as(&anna, "GET", "/metrics", b"");
    let metrics = String::from_utf8(metrics.body).unwrap();
    assert!(
        metrics.contains("lockstep_serving_models_opened_total 3\n"),
        "{metrics}"
    );
}
