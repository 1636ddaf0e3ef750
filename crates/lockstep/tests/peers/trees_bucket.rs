//! Boosted trees from a bucket in the name of a role, as `examples/trees-bucket.toml` has it: Parquet files in folders of
//! partitions, and the model back into the bucket.

use crate::common::{Place, Ran};
use lockstep_place::{Access, Place as Location, Variables};
use lockstep_testkit::Server;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

const EXAMPLE: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../examples/trees-bucket.toml"
);

/// Writes a table of avocados below `train` and `test`, each year in a folder of its own; the files of the last have
/// another order of columns.
const TABLES: &str = r#"
import random, pathlib, pyarrow, pyarrow.parquet, sys
random.seed(3)
for name, rows in [('train', 300), ('test', 60)]:
    for year in (2015, 2016, 2017):
        folder = pathlib.Path(sys.argv[1]) / name / f'year={year}'
        folder.mkdir(parents=True)
        kinds = [random.choice(['conventional', 'organic']) for _ in range(rows)]
        dear = [1.0 + 0.6 * (kind == 'organic') + 0.1 * (year - 2015) + random.gauss(0, 0.2) for kind in kinds]
        columns = {'price': [None if random.random() < 0.05 else one for one in dear],
                   'bags': [random.randrange(9000) for _ in kinds],
                   'region': [random.choice(['Albany', 'Boise', 'Denver']) for _ in kinds],
                   'type': kinds}
        if year == 2017: columns = dict(reversed(columns.items()))
        pyarrow.parquet.write_table(pyarrow.table(columns), folder / 'part-0.parquet')
"#;

/// Copies a folder into a bucket.
fn upload(from: &Path, to: &Location) {
    for entry in fs::read_dir(from).unwrap().flatten() {
        let to = to.join(entry.file_name().to_str().unwrap()).unwrap();
        match entry.path().is_dir() {
            true => upload(&entry.path(), &to),
            false => to.write(&fs::read(entry.path()).unwrap()).unwrap(),
        }
    }
}

#[test]
fn the_example_reads_partitions_from_a_bucket_by_a_role_and_leaves_its_model_there() {
    let server = Server::moto(&["--auth"]);
    let place = Place::new();
    let python = lockstep_testkit::python("pyarrow", &["pyarrow==26.0.1"]);
    let tables = place.path("avocados");
    lockstep_testkit::succeed(Command::new(python).args(["-c", TABLES]).arg(&tables));
    let access = Access {
        endpoint: Some(server.endpoint().parse().unwrap()),
        role_arn: Some(server.said["role"].clone()),
        ..Access::default()
    };
    let keys = [
        ("AWS_ACCESS_KEY_ID", &server.said["key"]),
        ("AWS_SECRET_ACCESS_KEY", &server.said["secret"]),
    ];
    let variables = keys.map(|(name, value)| (name.to_owned(), value.clone()));
    let variables: Variables = variables.into_iter().collect();
    let bucket = Location::parse_with("s3://data", &access, &variables).unwrap();
    upload(&tables, &bucket.join("avocados").unwrap());

    place.write_job(&fs::read_to_string(EXAMPLE).unwrap());
    let run = |args: &[&str], more: &[String]| -> Ran {
        let storage = [
            format!("storage.endpoint={}", server.endpoint()),
            format!("storage.role_arn={}", server.said["role"]),
        ];
        let mut command = place.command(args);
        for set in storage.iter().chain(more) {
            command.args(["--set", set]);
        }
        command
            .env_remove("AWS_SESSION_TOKEN")
            .env_remove("AWS_PROFILE");
        command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
        Ran::from(command.envs(keys).output().unwrap())
    };
    let short = ["model.rounds=8".to_owned()];
    let two = run(&["run", "job.toml", "--json"], &short);
    assert_eq!(two.code, Some(0), "{}", two.stderr);
    let result = two.result();
    assert!(
        result["metrics"]["accuracy"].as_f64().unwrap() > 0.8,
        "{result}"
    );
    let one = run(&["run", "job.toml", "--json", "--workers", "1"], &short);
    assert_eq!(one.code, Some(0), "{}", one.stderr);
    assert_eq!(one.result()["weights_sha256"], result["weights_sha256"]);

    let folder = result["run_dir"].as_str().unwrap();
    assert!(folder.starts_with("s3://data/runs/"), "{folder}");
    let folder = Location::parse_with(folder, &access, &variables).unwrap();
    let model = folder.join("model/model.ubj").unwrap().read().unwrap();
    assert_eq!(
        lockstep_base::fs::sha256(&lockstep_trees::without_names(&model)),
        result["weights_sha256"].as_str().unwrap()
    );
    let card = folder.join("model/model.json").unwrap().read().unwrap();
    let card: Value = serde_json::from_slice(&card).unwrap();
    let names: Vec<&str> = (card["column_names"].as_array().unwrap().iter())
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!(names, ["price", "bags", "region", "year"]);

    let again = run(&["evaluate", folder.to_string().as_str(), "--json"], &[]);
    assert_eq!(again.code, Some(0), "{}", again.stderr);
    let again: Value = serde_json::from_str(again.stdout.lines().last().unwrap()).unwrap();
    assert_eq!(again["accuracy"], result["metrics"]["accuracy"]);
}
