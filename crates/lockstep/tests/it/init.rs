//! The job files that `lockstep init` writes.

use crate::common::bitmap::bitmap;
use crate::common::{Place, embedding, resnet18, tensors};
use std::fs;
/// Photos of two classes below `photos/train`.
fn photos(place: &Place) {
    for (class, name) in ["wide", "tall"].into_iter().enumerate() {
        let folder = place.path(&format!("photos/train/{name}"));
        fs::create_dir_all(&folder).unwrap();
        for number in 0..5 {
            let picture = bitmap(40 + number % 7, 36 + number % 5, class as u32, number);
            fs::write(folder.join(format!("{number}.bmp")), picture).unwrap();
        }
    }
}

#[test]
fn each_kind_of_job_that_init_writes_runs_on_two_workers() {
    let place = Place::new();
    let rows = (0..40).map(|row| format!("{},{},{}\n", row % 7, row % 5, row % 2));
    let table = "a,b,label\n".to_owned() + &rows.collect::<String>();
    fs::write(place.path("train.csv"), table).unwrap();
    photos(&place);
    let encoder = format!("embed.model={}", embedding::CLIP);
    let mut state = 1u32;
    let weights = resnet18::random(1000, || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32
    });
    tensors::write(&place.path("weights.safetensors"), &weights);
    // Small pictures and one epoch: what takes long is no part of what is checked.
    let small = [
        "--set",
        "data.transform={ resize = 32 }",
        "--set",
        "train.batch=4",
    ];
    let tiny = small.map(|word| match word.contains("resize") {
        true => "data.transform={ resize = 12 }",
        false => word,
    });
    let weights = ["--set", "model.weights=weights.safetensors"];
    let images = [
        "--set",
        "data.train={ images = 'train-images', labels = 'train-labels' }",
        "--set",
        "data.test={ images = 'test-images', labels = 'test-labels' }",
    ];
    let kinds: [(&str, Vec<&str>); 7] = [
        ("table", vec!["--epochs", "1"]),
        ("photos", [&["--epochs", "1"], &tiny[..]].concat()),
        (
            "embeddings",
            vec!["--epochs", "1", "--set", "train.batch=4", "--set", &encoder],
        ),
        ("images", [&["--epochs", "1"], &images[..]].concat()),
        (
            "fine-tuning",
            [&["--epochs", "1"], &small[..], &weights].concat(),
        ),
        ("trees", vec!["--set", "model.rounds=2"]),
        ("script", vec![]),
    ];
    for (kind, changes) in kinds {
        let file = format!("{kind}.toml");
        let told = place.said(&["init", &file, "--kind", kind]);
        assert!(told.contains(&format!("lockstep run {file}")), "{told}");
        // What a newcomer tries next just works, too: `lanes` is in the file.
        let args = [&["run", &file, "-q", "--workers", "2"], &changes[..]].concat();
        let mut command = place.command(&args);
        if kind == "trees" {
            command.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
            let plan = [&args[..], &["--dry-run"]].concat();
            let mut plan = place.command(&plan);
            plan.env("LOCKSTEP_XGBOOST", lockstep_testkit::xgboost_library());
            let plan = plan.output().unwrap();
            let words = String::from_utf8_lossy(&plan.stdout).into_owned();
            assert!(words.contains("32 to train on, 8 to validate"), "{words}");
            assert!(words.contains("nothing was started"), "{words}");
        }
        let output = command.output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{kind}: {errors}");
    }
    assert!(
        place
            .said(&["run", "script.toml", "--dry-run"])
            .contains("python3 train.py")
    );
    place.assert_no_process_is_left();
}
