//! What is computed on, on a machine whose GPUs cannot be used: a driver is named that is not there.

use crate::common::{Place, Ran, run_folder, text};
use std::fs;

/// Runs a command on such a machine.
fn run(place: &Place, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    command.env("LOCKSTEP_CUDA", "/nowhere/libcuda.so.1");
    Ran::from(command.output().unwrap())
}

const REFUSED: &str = "there is no NVIDIA driver: /nowhere/libcuda.so.1 cannot be loaded";

#[test]
fn without_a_gpu_all_is_computed_on_the_processor_unless_one_is_asked_for() {
    let place = Place::new();
    // On this machine nobody keeps the GPU that a cluster would.
    for keys in [&[][..], &["--set", "resources.gpus=1"]] {
        let words = [&["run", "job.toml", "--dry-run", "--json"], keys].concat();
        let plan = run(&place, &words);
        assert!(
            plan.stdout.contains("\"device\":\"the processor\""),
            "{}{}",
            plan.stdout,
            plan.stderr
        );
    }
    let asks = [
        "run",
        "job.toml",
        "--json",
        "--set",
        "train.device=\"cuda\"",
    ];
    let refused = run(&place, &asks);
    assert_eq!(refused.code, Some(1));
    let error = refused.result()["error"].to_string();
    assert!(error.contains(REFUSED), "{error}");

    let trained = run(&place, &["run", "job.toml", "--json"]);
    assert_eq!(trained.code, Some(0), "{}", trained.stderr);
    let folder = run_folder(&trained.result());
    let predict = |device: &[&str]| {
        let words = ["predict", text(&folder), "--out", "-"];
        run(&place, &[&words, device].concat())
    };
    let said = predict(&[]);
    assert_eq!(said.code, Some(0), "{}", said.stderr);
    assert_eq!(predict(&["--device", "cpu"]).stdout, said.stdout);
    let refused = predict(&["--device", "cuda:1"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(1), ""));
    assert!(refused.stderr.contains(REFUSED), "{}", refused.stderr);
    let wrong = predict(&["--device", "gpu"]);
    assert_eq!(wrong.code, Some(2));
    assert!(
        wrong.stderr.contains("\"cuda:1\" for the second GPU"),
        "{}",
        wrong.stderr
    );

    // What was trained on a GPU can be asked, and trained again, where there is none.
    let job = folder.join("job.toml");
    let on_gpu = fs::read_to_string(&job).unwrap();
    let on_gpu = on_gpu.replace("device = \"auto\"", "device = \"cuda\"");
    assert!(on_gpu.contains("\"cuda\""), "{on_gpu}");
    fs::write(&job, on_gpu).unwrap();
    assert_eq!(predict(&[]).stdout, said.stdout);
    let replay = |device: &[&str]| run(&place, &[&["replay", text(&folder)], device].concat());
    assert_eq!(replay(&[]).code, Some(1));
    let replayed = replay(&["--device", "cpu"]);
    assert_eq!(
        replayed.code,
        Some(0),
        "{}{}",
        replayed.stdout,
        replayed.stderr
    );
}
