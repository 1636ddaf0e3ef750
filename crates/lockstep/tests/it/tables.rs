//! Tables as they come, through the real binary: strings, dates, booleans and gaps, from a file to a model of either kind
//! that is the same on any number of workers, and what is said of them on the way.

use crate::common::{Place, Ran, read_json, tensors};
use serde_json::Value;
use std::fs;
use std::process::Command;

const NETWORK: &str = r#"
name = "tables"

[data]
train = { csv = "train.csv", label = "sold" }
test = { csv = "test.csv", label = "sold" }
val_split = 0.1

[model]
kind = "mlp"
hidden = [16]

[train]
epochs = 8
batch = 32
optimizer = { kind = "adamw", lr = 1e-2 }
workers = 2
lanes = 3
"#;

const TREES: &str = r#"
name = "tables"

[data]
train = { csv = "train.csv", label = "sold" }
test = { csv = "test.csv", label = "sold" }
val_split = 0.1

[model]
kind = "xgboost"
rounds = 6
depth = 4
max_cat_to_onehot = 3
"#;

const TOWNS: [&str; 5] = ["Ulm", "Bonn", "Köln, Süd", "Jena", "Trier"];

/// A table with an index, a name, a town, a flag, a date, two numbers, gaps, a constant, and whether the thing was sold.
fn table(rows: std::ops::Range<usize>, new_town: bool) -> String {
    let mut text = ",name,town,garden,listed,rooms,area,currency,sold\n".to_owned();
    for row in rows {
        let random = |salt: usize| (row * 7919 + salt * 104_729 + 17) * 2_654_435_761 % 1_000_003;
        let town = TOWNS[random(1) % 5];
        let (garden, rooms) = (random(2) % 2 == 0, random(3) % 6 + 1);
        let month = random(4) % 12 + 1;
        let area = 40.0 + (random(5) % 1000) as f64 / 10.0;
        let score = area / 40.0
            + rooms as f64 / 3.0
            + if garden { 1.0 } else { 0.0 }
            + if town == "Bonn" { 1.5 } else { 0.0 }
            - month as f64 / 6.0;
        let sold = if score > 3.0 { "yes" } else { "no" };
        let gap = |salt: usize, text: String| match random(salt) % 15 {
            0 => String::new(),
            1 => "NA".to_owned(),
            _ => text,
        };
        let town = match new_town && row % 10 == 0 {
            true => "Kiel".to_owned(),
            false => gap(6, format!("\"{town}\"")),
        };
        text += &format!(
            "{row},house {row},{town},{},2024-{month:02}-{:02},{rooms},{},EUR,{sold}\n",
            if garden { "yes" } else { "no" },
            random(8) % 28 + 1,
            gap(7, format!("{area:.1}")),
        );
    }
    text
}

/// A place with both tables and a job, in which XGBoost is found.
fn place(job: &str) -> Place {
    let place = Place::new();
    fs::write(place.path("train.csv"), table(0..900, false)).unwrap();
    fs::write(place.path("test.csv"), table(900..1200, true)).unwrap();
    place.write_job(job);
    place
}

fn command(place: &Place, args: &[&str]) -> Command {
    let mut command = place.command(args);
    command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
    command
}

fn run(place: &Place, args: &[&str]) -> Ran {
    let output = command(place, args).output().unwrap();
    Ran::from(output)
}

fn train(place: &Place, args: &[&str]) -> Value {
    let ran = run(place, &[&["run", "job.toml", "--json"], args].concat());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    ran.result()
}

#[test]
fn both_kinds_learn_from_any_table_alike_on_any_number_of_workers() {
    for (job, least) in [(NETWORK, 0.85), (TREES, 0.85)] {
        let place = place(job);
        let one = train(&place, &["--workers", "1"]);
        for workers in ["2", "3"] {
            let other = train(&place, &["--workers", workers]);
            assert_eq!(other["weights_sha256"], one["weights_sha256"], "{workers}");
            assert_eq!(other["metrics"], one["metrics"], "{workers}");
        }
        let accuracy = one["metrics"]["accuracy"].as_f64().unwrap();
        assert!(accuracy > least, "{one}");

        let run_dir = one["run_dir"].as_str().unwrap();
        let card = read_json(&std::path::Path::new(run_dir).join("model/model.json"));
        let kinds: Vec<&str> = (card["inputs"].as_array().unwrap().iter())
            .map(|input| input["type"].as_str().unwrap())
            .collect();
        let expected = [
            "category", "boolean", "date", "number", "number", "category",
        ];
        assert_eq!(kinds, expected);
        let mut towns = TOWNS;
        towns.sort();
        assert_eq!(card["inputs"][0]["values"], serde_json::json!(towns));
        let names = card["column_names"].as_array().unwrap();
        assert_eq!(names[2], "listed.year");
        assert_eq!(names.len(), 9);

        // What was measured at the end is measured again, and a value that training did not see is handled and counted.
        let ran = run(&place, &["evaluate", run_dir, "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let again: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
        assert_eq!(again["accuracy"], one["metrics"]["accuracy"], "{again}");
        let said = "the column town has values in 30 rows that the training table does not have, such as \"Kiel\"";
        assert!(ran.stderr.contains(said), "{}", ran.stderr);

        // The same rows in another order of columns, without the label.
        let text = fs::read_to_string(place.path("test.csv")).unwrap();
        let turned: String = (text.lines())
            .map(|line| {
                let (rest, _) = line.rsplit_once(',').unwrap();
                let (rest, currency) = rest.rsplit_once(',').unwrap();
                format!("{currency},{rest}\n")
            })
            .collect();
        fs::write(place.path("turned.csv"), turned).unwrap();
        let predict = |data: &str| {
            let ran = run(
                &place,
                &["predict", run_dir, "--data", data, "--out", "said.jsonl"],
            );
            assert_eq!(ran.code, Some(0), "{}", ran.stderr);
            let said = fs::read_to_string(place.path("said.jsonl")).unwrap();
            let lines = said
                .lines()
                .map(|line| serde_json::from_str::<Value>(line).unwrap());
            lines
                .map(|line| line["predicted"].clone())
                .collect::<Vec<_>>()
        };
        assert_eq!(predict("turned.csv"), predict("test.csv"));
    }
}

#[test]
fn what_was_read_is_said_before_training_and_without() {
    for job in [NETWORK, TREES] {
        let place = place(job);
        let ran = run(&place, &["run", "job.toml", "--dry-run"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        for expected in [
            "the input is 2 numbers (rooms, area), 1 boolean (garden), 2 categories (town, currency), 1 date (listed)",
            "there are gaps in town (",
            "the column name is left out: it is text with more than 256 different values",
            "a column without a name is left out: it is the number of the row",
            "nothing can be learned from what is the same in all rows: currency",
            "test.csv: the column town has values in 30 rows",
        ] {
            assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
        }
    }
}

#[test]
fn a_table_is_shown_as_training_would_read_it() {
    let place = place(NETWORK);
    let orders = (0..30).map(|row| format!("{},{}\n", 900_719_925_474_099_300_u64 + row, row % 2));
    let orders = "# of the shop\norder,label\n".to_owned() + &orders.collect::<String>();
    fs::write(place.path("orders.csv"), orders).unwrap();
    let ran = run(&place, &["data", "show", "orders.csv"]);
    assert!(
        ran.stderr.contains("as `comment = \"#\"`"),
        "{}",
        ran.stderr
    );
    let ran = run(
        &place,
        &["data", "show", "{ csv = 'orders.csv', comment = '#' }"],
    );
    for words in [
        "900719925474099300 to 900719925474099329",
        "order looks like an id",
    ] {
        assert!(ran.stdout.contains(words), "{words}: {}", ran.stdout);
    }
    let ran = run(&place, &["data", "show", "train.csv", "--label", "sold"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    for expected in [
        "900 samples",
        "│ town ",
        "5 values: Bonn, Jena",
        "year, month, day, weekday",
        "2 classes: no ",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    let ran = run(
        &place,
        &[
            "data",
            "show",
            "{ csv = 'train.csv', types = { rooms = 'category' } }",
            "--json",
        ],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["samples"], 900);
    let rooms = &shown["columns"][3];
    assert_eq!(
        (&rooms["name"], &rooms["type"]),
        (&"rooms".into(), &"category".into())
    );
    assert_eq!(
        rooms["values"],
        serde_json::json!(["1", "2", "3", "4", "5", "6"])
    );
    // Nothing names the label, so it is a column as any other.
    assert_eq!(shown["columns"][6]["name"], "sold");
    assert_eq!(shown["label"], Value::Null);
}

#[test]
fn what_the_job_says_of_columns_goes_before_what_is_found() {
    let place = place(&NETWORK.replace(
        "train = { csv = \"train.csv\", label = \"sold\" }",
        "train = { csv = \"train.csv\", label = \"sold\", drop = [\"listed\"], types = { rooms = \"category\", currency = \"text\" } }",
    ));
    let result = train(&place, &[]);
    let run_dir = std::path::Path::new(result["run_dir"].as_str().unwrap());
    let card = read_json(&run_dir.join("model/model.json"));
    let names: Vec<&str> = (card["inputs"].as_array().unwrap().iter())
        .map(|input| input["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["town", "garden", "rooms", "area"]);
    assert_eq!(card["inputs"][2]["type"], "category");
    // Garden and area; 5 towns and 6 rooms; gaps of the town and of the area.
    let encoding = &card["encoding"];
    let parts = ["numbers", "values", "gaps"].map(|part| encoding[part].as_array().unwrap().len());
    assert_eq!(parts, [2, 11, 2]);
}

#[test]
fn gzipped_tables_with_decimal_commas_and_folders_of_partitions_are_read() {
    use std::io::Write;
    let place = place(NETWORK);
    for (folder, rows) in [("year=2023", 0..300), ("year=2024", 300..900)] {
        let folder = place.path("parts").join(folder);
        fs::create_dir_all(&folder).unwrap();
        let mut text = "area;sold\n".to_owned();
        for row in rows {
            let area = row * 37 % 100;
            text += &format!("1.0{area:02},5;{}\n", ["no", "yes"][usize::from(area > 50)]);
        }
        let file = fs::File::create(folder.join("a.csv.gz")).unwrap();
        let mut file = flate2::write::GzEncoder::new(file, flate2::Compression::fast());
        file.write_all(text.as_bytes()).unwrap();
        file.finish().unwrap();
    }
    let source = "{ csv = 'parts', label = 'sold', delimiter = ';', decimal = ',', types = { year = 'category' } }";
    let ran = run(&place, &["data", "show", source, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["samples"], 900);
    let area = &shown["columns"][0];
    assert_eq!(
        (&area["smallest"], &area["largest"]),
        (&1000.5.into(), &1099.5.into())
    );
    assert_eq!(
        shown["columns"][1]["values"],
        serde_json::json!(["2023", "2024"])
    );
}

/// A table as German programs write it: a day, a number, and a price, which is to be predicted.
fn german(rows: std::ops::Range<usize>) -> String {
    let mut text = "tag;fläche;preis\n".to_owned();
    for row in rows {
        let (month, area) = (row * 5 % 12 + 1, row * 37 % 100);
        let price = 1000 + 10 * area + month;
        text += &format!(
            "{:02}.{month:02}.2024;{area},5;{}.{:03},25\n",
            row % 28 + 1,
            price / 1000,
            price % 1000
        );
    }
    text
}

#[test]
fn decimal_commas_are_numbers_to_predict_and_german_dates_are_dates() {
    let place = place(
        "name = 'g'\n[data]\ntrain = { csv = 'g.csv', label = 'preis', delimiter = ';', decimal = ',' }\nval_split = 0.2\n\
         [model]\nkind = 'mlp'\nhidden = [8]\n[train]\nepochs = 2\nbatch = 32\noptimizer = { kind = 'adamw' }\n",
    );
    fs::write(place.path("g.csv"), german(0..400)).unwrap();
    let source = "{ csv = 'g.csv', label = 'preis', delimiter = ';', decimal = ',' }";
    let ran = run(&place, &["data", "show", source, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(shown["columns"][0]["type"], "date", "{shown}");
    assert_eq!(shown["columns"][1]["type"], "number", "{shown}");
    let result = train(&place, &[]);
    assert!(result["val"]["mse"].is_number(), "{result}");
    // What is predicted is read as what was trained on.
    fs::write(place.path("new.csv"), german(400..420)).unwrap();
    let run_dir = place.path("runs").join(result["run"].as_str().unwrap());
    let run_dir = run_dir.to_str().unwrap();
    let ran = run(
        &place,
        &["predict", run_dir, "--data", "new.csv", "--out", "said.csv"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let said = fs::read_to_string(place.path("said.csv")).unwrap();
    assert_eq!(said.lines().count(), 21, "{said}");
}

/// A table as spreadsheets write it: letters of one byte, comments, currencies, percents, groups of digits, and words for
/// what is not there.
fn exported(rows: std::ops::Range<usize>) -> Vec<u8> {
    let mut text = "# exported\nort;umsatz;anteil;note;käufer\n".to_owned();
    for row in rows {
        let part = row * 37 % 100;
        let turnover = match row % 9 {
            0 => "k.A.".to_owned(),
            _ => format!("{}.{:03},50 €", part + 1, part),
        };
        let note = ["-", "#N/A", "NaT", "missing", "7"][row % 5];
        text += &format!(
            "{};{turnover};{part}%;{note};{}\n",
            ["Köln", "Ulm"][row % 2],
            ["nein", "ja"][usize::from(part > 50)]
        );
    }
    text.chars()
        .map(|letter| match letter {
            '€' => 0x80,
            letter => u8::try_from(u32::from(letter)).unwrap(),
        })
        .collect()
}

#[test]
fn csv_as_people_have_it_is_read_and_new_files_are_read_as_the_training_table_was() {
    let keys =
        "label = 'käufer', decimal = ',', na = ['k.A.'], encoding = 'latin-1', comment = '#'";
    let place = place(&format!(
        "name = 'g'\n[data]\ntrain = {{ csv = 'g.csv', {keys} }}\nval_split = 0.2\n[model]\nkind = 'mlp'\nhidden = [8]\n\
         [train]\nepochs = 2\nbatch = 32\noptimizer = {{ kind = 'adamw' }}\n"
    ));
    fs::write(place.path("g.csv"), exported(0..400)).unwrap();
    let source = format!("{{ csv = 'g.csv', {keys} }}");
    let ran = run(&place, &["data", "show", &source, "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    let columns = shown["columns"].as_array().unwrap();
    assert_eq!(columns[0]["values"], serde_json::json!(["Köln", "Ulm"]));
    let told =
        |at: usize| ["type", "gaps", "smallest", "largest"].map(|key| columns[at][key].clone());
    let expected = serde_json::json!(["number", 45, 1000.5, 100_099.5]);
    assert_eq!(serde_json::json!(told(1)), expected, "{shown}");
    let expected = serde_json::json!(["number", 0, 0.0, 0.99_f32]);
    assert_eq!(serde_json::json!(told(2)), expected, "{shown}");
    let expected = serde_json::json!(["number", 320, 7.0, 7.0]);
    assert_eq!(serde_json::json!(told(3)), expected, "{shown}");
    let flags = serde_json::json!([{ "column": "anteil", "suspicion": "leak" }]);
    assert_eq!(shown["flags"], flags);
    // Of a new file only the path is said.
    let result = train(&place, &[]);
    fs::write(place.path("new.csv"), exported(400..420)).unwrap();
    let run_dir = place.path("runs").join(result["run"].as_str().unwrap());
    let run_dir = run_dir.to_str().unwrap();
    let args = ["predict", run_dir, "--data", "new.csv", "--out", "said.csv"];
    let ran = run(&place, &args);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("does not have"), "{}", ran.stderr);
    let said = fs::read_to_string(place.path("said.csv")).unwrap();
    assert_eq!(said.lines().count(), 21, "{said}");
    // Whoever serves the model is told the same of its columns.
    let card = read_json(&std::path::Path::new(run_dir).join("model/model.json"));
    let form = serde_json::json!({ "na": ["k.A."], "decimal_comma": true });
    assert_eq!(card["inputs"][1]["written"], form, "{card}");
}

#[test]
fn delimiters_utf16_and_json_lines_are_found_and_excel_is_told_what_to_do() {
    let place = place(NETWORK);
    let rows = [
        ("a", "label"),
        ("1700000000001", "x"),
        ("1700000000003", "y"),
    ];
    let between = |sign: &str| -> String {
        let line = |(a, b): (&str, &str)| format!("{a}{sign}{b}\n");
        rows.map(line).concat()
    };
    let wide: Vec<u8> = between("\t")
        .encode_utf16()
        .flat_map(u16::to_le_bytes)
        .collect();
    let json = rows[1..].iter();
    let json: String = json
        .map(|(a, b)| format!("{{\"a\": {a}, \"label\": \"{b}\"}}\n"))
        .collect();
    let mut seen = Vec::new();
    for (name, bytes) in [
        ("comma.csv", between(",").into_bytes()),
        ("semicolon.csv", between(";").into_bytes()),
        ("pipe.csv", between("|").into_bytes()),
        ("tab.tsv", between("\t").into_bytes()),
        ("wide.csv", wide),
        ("lines.jsonl", json.into_bytes()),
    ] {
        fs::write(place.path(name), bytes).unwrap();
        let ran = run(&place, &["data", "show", name, "--json"]);
        assert_eq!(ran.code, Some(0), "{name}: {}", ran.stderr);
        let mut shown: Value = serde_json::from_str(&ran.stdout).unwrap();
        shown["source"] = Value::Null;
        // Whole numbers have all their digits.
        assert_eq!(
            shown["columns"][0]["largest"], 1_700_000_000_003_i64,
            "{shown}"
        );
        seen.push(shown);
    }
    assert!(seen.iter().all(|shown| *shown == seen[0]), "{seen:?}");
    let ran = run(&place, &["data", "show", "comma.csv"]);
    assert!(
        ran.stdout.contains("1700000000001 to 1700000000003"),
        "{}",
        ran.stdout
    );
    fs::write(place.path("sheet.xlsx"), "PK").unwrap();
    let ran = run(&place, &["data", "show", "sheet.xlsx"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("pandas.read_excel"), "{}", ran.stderr);
}

#[test]
fn the_day_comes_first_in_all_rows_of_a_column_or_in_none() {
    let place = place(NETWORK);
    let mut text = "day,label\n".to_owned();
    for row in 0..60 {
        text += &format!("{}/{}/2024,{}\n", row % 28 + 1, row % 5 + 1, row % 2);
    }
    fs::write(place.path("d.csv"), text).unwrap();
    let show = |place: &Place| {
        let ran = run(place, &["data", "show", "d.csv", "--json"]);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["columns"][0].clone()
    };
    let found = show(&place);
    assert_eq!(
        (&found["type"], &found["day_first"]),
        (&"date".into(), &true.into()),
        "{found}"
    );
    fs::write(
        place.path("d.csv"),
        "day,label\n13/1/2024,0\n1/13/2024,1\n1/1/2024,0\n",
    )
    .unwrap();
    assert_eq!(show(&place)["type"], "category");
}

#[test]
fn a_label_that_is_no_number_among_decimals_is_a_mistake_and_many_whole_numbers_are_said() {
    let place = place(NETWORK);
    let write = |label: &dyn Fn(usize) -> String| {
        let rows = (0..200).map(|row| format!("{row},{}\n", label(row)));
        fs::write(
            place.path("n.csv"),
            format!("a,label\n{}", rows.collect::<String>()),
        )
        .unwrap();
        let set = ["--set", "data.train=n.csv", "--set", "data.test=n.csv"];
        run(
            &place,
            &[&["run", "job.toml", "--dry-run"], &set[..]].concat(),
        )
    };
    let ran = write(&|row| match row {
        70 => "12.5x".to_owned(),
        _ => format!("{row}.5"),
    });
    assert_ne!(ran.code, Some(0));
    let expected = "the label of row 71 is `12.5x`, which is not a number";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    let ran = write(&|row| (row % 50).to_string());
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let expected = "the labels are 50 different whole numbers, and each is a class";
    assert!(ran.stdout.contains(expected), "{}", ran.stdout);
}

#[test]
fn many_whole_numbers_are_numbers_to_predict_and_the_run_says_what_decides_otherwise() {
    let many = |set: &[&str], job: &str| {
        let place = place(job);
        let rows = (0..900).map(|row| format!("{row},{}\n", row % 450 * 7));
        let rows: String = rows.collect();
        fs::write(place.path("n.csv"), format!("a,label\n{rows}")).unwrap();
        let data = ["--set", "data.train=n.csv", "--set", "data.test=n.csv"];
        let args = [&["run", "job.toml", "--dry-run"], &data[..], set].concat();
        let ran = run(&place, &args);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        ran.stdout
    };
    let numbers = "the labels are 450 different whole numbers, which are many, so they are numbers to predict";
    for (job, key, word) in [
        (NETWORK, "train.loss=cross-entropy", "\"cross-entropy\""),
        (
            TREES,
            "model.objective=multi:softprob",
            "\"multi:softprob\"",
        ),
    ] {
        let said = many(&[], job);
        assert!(said.contains(numbers) && said.contains(word), "{said}");
        let said = many(&["--set", key], job);
        assert!(!said.contains("numbers to predict"), "{said}");
    }
}

#[test]
fn one_wrong_date_is_refused_by_its_line_and_an_empty_cell_is_a_gap() {
    let place = place(NETWORK);
    let show = |wrong: &str| {
        let day = |row: usize| format!("2024-{:02}-{:02}", row % 12 + 1, row % 28 + 1);
        let cell = |row: usize| {
            if row == 40 {
                wrong.to_owned()
            } else {
                day(row)
            }
        };
        let rows = (0..500).map(|row| format!("{},{}\n", cell(row), row % 2));
        let text = format!("day,label\n{}", rows.collect::<String>());
        fs::write(place.path("days.csv"), text).unwrap();
        run(&place, &["data", "show", "days.csv", "--json"])
    };
    for wrong in ["2024-13-41", "unknown", "12:30"] {
        let ran = show(wrong);
        assert_ne!(ran.code, Some(0), "{wrong}: {}", ran.stdout);
        let expected =
            format!("days.csv, line 42: the column `day` holds `{wrong}`, which is not a date");
        assert!(ran.stderr.contains(&expected), "{}", ran.stderr);
    }
    let ran = show("");
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let shown: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert_eq!(
        (&shown["columns"][0]["type"], &shown["columns"][0]["gaps"]),
        (&"date".into(), &1.into())
    );
}

#[test]
fn a_folder_of_tables_and_a_label_that_is_not_there_are_named() {
    let place = place(NETWORK);
    fs::create_dir_all(place.path("parts/year=2023")).unwrap();
    fs::write(place.path("parts/year=2023/a.csv"), "a,label\n1,x\n").unwrap();
    let ran = run(&place, &["data", "show", "parts"]);
    assert_ne!(ran.code, Some(0));
    assert!(ran.stderr.contains("write `{ csv = \""), "{}", ran.stderr);
    let ran = run(&place, &["data", "show", "train.csv", "--label", "Sold"]);
    assert_ne!(ran.code, Some(0));
    let expected = "has no column `Sold`; it has `town`";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
}

#[test]
fn what_is_wrong_with_a_table_is_said_with_its_place() {
    let cases: &[(&str, &str, &str)] = &[
        (
            "a,label\n1,x\n2,y\n",
            "drop = ['b']",
            "has no column `b`; it has `a`, `label`",
        ),
        (
            "a,label\n1,x\n2,y\n",
            "types = { aa = 'number' }",
            "has no column `aa`; did you mean `a`?",
        ),
        (
            "a,label\n1,x\n2,y\n",
            "features = ['c']",
            "has no column `c`; it has `a`, `label`",
        ),
        (
            "a,label\n1,x\n2,\n",
            "",
            "line 3: the column `label` is empty; every sample needs one",
        ),
        (
            "a,label\n1,x\n2,NA\n3,y\n",
            "",
            "line 3: the column `label` holds `NA`, which stands for a gap, and every sample needs a label; if it is a \
             class of this name, say `types = { label = \"category\" }`",
        ),
        (
            "a;label\n1;x\n2;y\n",
            "delimiter = ','",
            "if ';' is between columns, say `delimiter = \";\"`",
        ),
        (
            "a,label\n1,x\n2,x\n",
            "",
            "all samples are of the class `x`: there is nothing to tell apart",
        ),
        (
            "a,label\n1e39,x\n2,y\n",
            "",
            "line 2: the column `a` holds 1e39, which is too large for single precision",
        ),
        (
            "a,label\n,x\n,y\n",
            "",
            "no column is left for the numbers of a sample; `a` is left out: it is empty in all rows",
        ),
        (
            "a,label\nb,x\n2,y\n",
            "types = { a = 'number' }",
            "line 2: the column `a` holds `b`, which is not a number",
        ),
        (
            "a,label\n1,x\n2,y\n",
            "types = { a = 'date' }",
            "line 2: the column `a` holds `1`, which is not a date or time",
        ),
        (
            "a,label\nmaybe,x\n2,y\n",
            "types = { a = 'boolean' }",
            "holds `maybe`, which is neither true nor false",
        ),
        ("a,label\n1,x\n2,y\n", "types = { a = 'numbr' }", "types.a"),
        (
            "a,label\n1,x\n2,y\n",
            "decimal = ',', delimiter = ','",
            "cannot be the delimiter too",
        ),
        (
            "a,label\n1,x\n2,y\n",
            "thousands = '.'",
            "cannot be the decimal point too",
        ),
        ("a,label\n1,x\n2,y\n", "na = ['']", "must be a word"),
        (
            "a,label\n1,x\n2,y\n",
            "encoding = 'latin1'",
            "did you mean `latin-1`?",
        ),
        (
            "a,label\n1,x\n-inf,y\n",
            "",
            "line 3: the column `a` holds `-inf`, which is infinite, and every value must be a finite number; `na = \
             [\"-inf\"]` makes a gap of it",
        ),
        (
            "PK\u{3}\u{4} and so on",
            "",
            "it is an Excel file or a zip archive; save the sheet as",
        ),
        (
            "a,b,label\n1,2,x\n2,3,y\n",
            "features = ['a'], drop = ['b']",
            "cannot be used together with `features`",
        ),
    ];
    for (text, keys, expected) in cases {
        let place = Place::new();
        fs::write(place.path("train.csv"), text).unwrap();
        let keys = if keys.is_empty() {
            String::new()
        } else {
            format!(", {keys}")
        };
        place.write_job(&format!(
            "name = 'x'\n[data]\ntrain = {{ csv = 'train.csv'{keys} }}\n[model]\nkind = 'mlp'\nhidden = [2]\n\
             [train]\nepochs = 1\nbatch = 2\noptimizer = {{ kind = 'sgd' }}\n"
        ));
        let ran = run(&place, &["run", "job.toml"]);
        assert_ne!(ran.code, Some(0), "{text:?}");
        assert!(ran.stderr.contains(expected), "{expected}: {}", ran.stderr);
    }
    let place = Place::new();
    fs::create_dir(place.path("parts")).unwrap();
    fs::write(place.path("parts/0.csv"), "a,label\n1,x\n2,y\n").unwrap();
    fs::write(place.path("parts/1.csv"), "a,b,label\n1,2,x\n").unwrap();
    let ran = run(&place, &["data", "show", "{ csv = 'parts' }"]);
    let expected = "1.csv: it has the column `b`, which";
    assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    // A job that has one scale cannot have another.
    let place = self::place(&NETWORK.replace(
        "val_split = 0.1",
        "val_split = 0.1\nnormalise = { mean = [0.5], std = [0.5] }",
    ));
    let ran = run(&place, &["run", "job.toml"]);
    assert!(
        ran.stderr.contains("leave data.normalise out"),
        "{}",
        ran.stderr
    );
}

#[test]
fn vectors_are_learned_for_categories_and_are_the_same_on_any_number_of_workers_and_after_a_cut() {
    let types = "types = { town = \"embedding\", rooms = \"embedding\" }";
    let place = place(&NETWORK.replace(
        "train = { csv = \"train.csv\", label = \"sold\" }",
        &format!("train = {{ csv = \"train.csv\", label = \"sold\", {types} }}"),
    ));
    let ran = run(&place, &["run", "job.toml", "--dry-run"]);
    for expected in [
        "each of the 5 values of town becomes a learned vector of 3 numbers",
        "each of the 6 values of rooms becomes a learned vector of 3 numbers",
        "embeddings",
    ] {
        assert!(ran.stdout.contains(expected), "{expected}: {}", ran.stdout);
    }
    let every = ["--set", "checkpoint.every=30 steps"];
    let one = train(&place, &[&every[..], &["--workers", "1"]].concat());
    let two = [&every[..], &["--workers", "2"]].concat();
    let mut others = vec![train(&place, &two)];
    // Points to fail at are in such builds alone.
    if cfg!(debug_assertions) {
        let mut cut = command(&place, &[&["run", "job.toml", "--json"], &two[..]].concat());
        cut.env("LOCKSTEP_FAILPOINTS", "checkpoint.after_manifest=cut@2");
        let cut = Ran::from(cut.output().unwrap());
        assert_eq!(cut.code, None, "{}", cut.stderr);
        // What was killed predicts by its newest checkpoint.
        let said = ["predict", "--data", "test.csv", "--out", "said.jsonl"];
        let newest = place.runs().pop().unwrap();
        let ran = run(&place, &[&said[..], &[newest.to_str().unwrap()]].concat());
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        others.push(train(&place, &[&two[..], &["--resume"]].concat()));
    }
    for other in others {
        assert_eq!(other["weights_sha256"], one["weights_sha256"]);
        assert_eq!(other["metrics"], one["metrics"]);
    }
    let accuracy = one["metrics"]["accuracy"].as_f64().unwrap();
    assert!(accuracy > 0.85, "{one}");

    let run_dir = one["run_dir"].as_str().unwrap();
    let model = std::path::Path::new(run_dir).join("model");
    let embedded = &read_json(&model.join("model.json"))["encoding"]["embedded"];
    assert_eq!(embedded[0]["values"], serde_json::json!([0, 1, 2, 3, 4]));
    let tensors = tensors::read(&model.join("weights.safetensors"));
    assert_eq!(tensors["embeddings.0.weight"].shape, [6, 3]);
    // No training row lacks its rooms: the vector for that stays as neutral as it began.
    assert_eq!(tensors["embeddings.1.weight"].numbers[..3], [0.0; 3]);
    let ran = run(&place, &["evaluate", run_dir, "--json"]);
    let again: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(again["accuracy"], one["metrics"]["accuracy"], "{again}");
    let said = "the column town has values in 30 rows that the training table does not have";
    assert!(ran.stderr.contains(said), "{}", ran.stderr);
}

#[test]
fn rows_count_by_their_weights_for_both_kinds() {
    let train_set = "train = { csv = \"train.csv\", label = \"sold\" }";
    let weighted = "train = { csv = \"train.csv\", label = \"sold\", weight = \"rooms\" }";
    for job in [TREES, NETWORK] {
        let place = place(&job.replace(train_set, weighted));
        let one = train(&place, &["--workers", "1"]);
        let two = train(&place, &["--workers", "2"]);
        assert_eq!(one["weights_sha256"], two["weights_sha256"]);
        let run_dir = std::path::Path::new(one["run_dir"].as_str().unwrap());
        let card = read_json(&run_dir.join("model/model.json"));
        assert!(
            !card["column_names"].to_string().contains("rooms"),
            "{card}"
        );
        place.write_job(&job.replace(
            "label = \"sold\" }",
            "label = \"sold\", drop = [\"rooms\"] }",
        ));
        let alike = train(&place, &["--workers", "1"]);
        assert_ne!(alike["weights_sha256"], one["weights_sha256"]);
    }
    let place = place(&NETWORK.replace(train_set, weighted));
    for (rows, expected) in [
        (
            "1,x,2\n3,y,-1\n",
            "line 3: the column `rooms` holds -1; a weight must be 0 or more",
        ),
        (
            "1,x,0\n3,y,0\n",
            "the column of weights is 0 in all rows that are trained on",
        ),
    ] {
        for set in ["train.csv", "test.csv"] {
            fs::write(place.path(set), format!("area,sold,rooms\n{rows}")).unwrap();
        }
        let ran = run(&place, &["run", "job.toml"]);
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
}

/// A real table: penguins of the Palmer archipelago, with strings, dates, gaps, decimals and remarks. Every third row is for
/// testing; rows without what is to be predicted are left out.
fn penguins(place: &Place, label: &str) {
    let wheel = lockstep_testkit::wheel("palmerpenguins==0.1.6");
    let text = fs::read_to_string(wheel.join("palmerpenguins/data/penguins-raw.csv")).unwrap();
    let mut records = csv::Reader::from_reader(text.as_bytes());
    let header = records.headers().unwrap().clone();
    let at = header.iter().position(|name| name == label).unwrap();
    let mut files = ["train.csv", "test.csv"].map(|name| {
        let mut file = csv::Writer::from_path(place.path(name)).unwrap();
        file.write_record(&header).unwrap();
        file
    });
    let known = records
        .records()
        .map(Result::unwrap)
        .filter(|row| &row[at] != "NA");
    for (number, row) in known.enumerate() {
        files[usize::from(number % 3 == 0)]
            .write_record(&row)
            .unwrap();
    }
    files.iter_mut().for_each(|file| file.flush().unwrap());
}

/// A job of ten lines that learns from the penguins.
fn penguin_job(label: &str, model: &str) -> String {
    format!(
        "name = \"penguins\"\n[data]\ntrain = {{ csv = \"train.csv\", label = \"{label}\" }}\n\
         test = {{ csv = \"test.csv\", label = \"{label}\" }}\n{model}"
    )
}

const PENGUIN_NETWORK: &str = "[model]\nkind = \"mlp\"\nhidden = [32]\n\
    [train]\nepochs = 30\nbatch = 32\noptimizer = { kind = \"adam\", lr = 3e-3 }\n";

#[test]
fn a_real_table_trains_both_kinds_with_a_job_of_ten_lines() {
    let place = Place::new();
    let label = "Culmen Length (mm)";
    penguins(&place, label);
    for model in [PENGUIN_NETWORK, "[model]\nkind = \"xgboost\"\n"] {
        place.write_job(&penguin_job(label, model));
        let result = train(&place, &[]);
        let r2 = result["metrics"]["r2"].as_f64().unwrap();
        println!("R2 {r2}");
        assert!(r2 > 0.7, "{result}");
    }
}

#[test]
fn a_network_of_a_real_table_is_as_good_as_that_of_scikit_learn() {
    let place = Place::new();
    penguins(&place, "Species");
    place.write_job(&penguin_job("Species", PENGUIN_NETWORK));
    let own = [0, 1, 2].map(|seed| {
        let result = train(&place, &["--set", &format!("train.seed={seed}")]);
        result["metrics"]["accuracy"].as_f64().unwrap()
    });
    let own = own.iter().sum::<f64>() / 3.0;
    let python = lockstep_testkit::python_with_scikit_learn();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/sklearn_mlp.py");
    let mut command = Command::new(python);
    command
        .arg(script)
        .args([place.path("train.csv"), place.path("test.csv")])
        .arg("Species");
    let theirs: f64 = lockstep_testkit::succeed(&mut command)
        .trim()
        .parse()
        .unwrap();
    println!("{own} beside {theirs}");
    assert!(own > theirs - 0.01, "{own} beside {theirs}");
}
