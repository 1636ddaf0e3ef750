//! What a URL of a job carries of secrets is shown to nobody.

use lockstep_job::Job;
use std::path::Path;

const JOB: &str = r#"name = "x"
[data]
train = "https://host/train.parquet?X-Amz-Credential=hunter2&X-Amz-Signature=hunter2"
test = "https://host/get.csv?id=7&token=hunter2"
[model]
kind = "mlp"
hidden = [8]
[train]
epochs = 1
batch = 8
optimizer = { kind = "sgd", lr = 0.1 }
"#;

#[test]
fn a_signature_in_a_url_is_neither_shown_nor_written_and_still_used() {
    let job = Job::parse(Path::new("/jobs/job.toml"), JOB, &[], None).unwrap();
    let shown = format!("{}{:?}", job.to_toml(), job.rows());
    assert!(!shown.contains("hunter2"), "{shown}");
    assert!(shown.contains("https://host/train.parquet\""), "{shown}");
    assert!(shown.contains("https://host/get.csv?id=7"), "{shown}");
    // Whoever reads the data gets the whole of it.
    let told = serde_json::to_string(&job).unwrap();
    assert!(told.contains("X-Amz-Signature=hunter2"), "{told}");
}

#[test]
fn an_endpoint_with_a_password_is_refused_without_a_word_of_it_in_what_was_found() {
    let storage = "[storage]\nendpoint = \"http://me:hunter2@minio:9000\"\n";
    let text = format!("{JOB}{storage}");
    let error = Job::parse(Path::new("/jobs/job.toml"), &text, &[], None).unwrap_err();
    let said = error.to_string();
    assert!(
        said.contains("password") && !said.contains("hunter2"),
        "{said}"
    );
}

#[test]
fn the_address_of_a_webhook_is_shown_without_its_path() {
    let text = format!("{JOB}[notify]\nwebhook = \"https://host/services/hunter2\"\n");
    let job = Job::parse(Path::new("/jobs/job.toml"), &text, &[], None).unwrap();
    let shown = format!("{}{:?}{job:?}", job.to_toml(), job.rows()).replace("X-Amz", "");
    assert!(!shown.contains("services"), "{shown}");
    let webhook = job.notify.webhook.unwrap();
    assert_eq!(webhook.secret(), "https://host/services/hunter2");
    let error = Job::parse(
        Path::new("/jobs/job.toml"),
        &text.replace("https://", "ftp://"),
        &[],
        None,
    );
    let said = error.unwrap_err().to_string();
    assert!(
        said.contains("notify.webhook") && !said.contains("services"),
        "{said}"
    );
}
