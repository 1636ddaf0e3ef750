//! Trees that are grown by the build of XGBoost's library for GPUs, which it brings itself.

use crate::common::Place;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;

/// A place whose cache stays from run to run, with a table and a job of trees.
struct OnGpus(Place);

impl OnGpus {
    fn new() -> Self {
        let place = Place::new();
        let mut table = "a,b,label\n".to_owned();
        for i in 0..300_i32 {
            let (a, b) = (i * 37 % 101, i * 53 % 97);
            let _ = writeln!(
                table,
                "{a},{b},{}",
                if a * 3 > b * 2 { "yes" } else { "no" }
            );
        }
        fs::write(place.path("table.csv"), table).unwrap();
        place.write_job(
            "name = 'trees'\n[data]\ntrain = { csv = 'table.csv', label = 'label' }\n[model]\nkind = 'xgboost'\nrounds = 4\n",
        );
        Self(place)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = self.0.command(args);
        command.env_remove("LOCKSTEP_XGBOOST");
        command.env(
            "LOCKSTEP_CACHE",
            lockstep_testkit::cache().join("xgboost-for-gpus"),
        );
        command
    }

    /// How a run on a GPU ended, and what it said.
    fn run(&self) -> (bool, String) {
        let words = [
            "run",
            "job.toml",
            "--json",
            "--workers",
            "1",
            "--set",
            "train.device=cuda",
        ];
        let output = self.command(&words).output().unwrap();
        let said = [output.stdout, output.stderr].concat();
        (output.status.success(), String::from_utf8(said).unwrap())
    }
}

#[test]
fn trees_are_grown_on_a_gpu_or_refused_where_xgboost_finds_none() {
    let place = OnGpus::new();
    let brought = place
        .command(&["data", "get", "xgboost-cuda"])
        .output()
        .unwrap();
    assert!(brought.status.success(), "{brought:?}");
    let (has_trained, said) = place.run();
    let has_gpu = Command::new("nvidia-smi")
        .arg("-L")
        .output()
        .is_ok_and(|output| output.status.success());
    if has_gpu {
        assert!(has_trained && said.contains("grown on a GPU"), "{said}");
    } else {
        // It would grow them on the processor, and say nothing.
        let words = "train.device asks for a GPU, and XGBoost finds none";
        assert!(!has_trained && said.contains(words), "{said}");
    }
}
