//! Real PyTorch and real TensorFlow as gangs. They are large: these tests run with `make test-long`.

use super::{error, logged};
use crate::common::{Place, send};
use lockstep_testkit::python;
use rustix::process::Signal;
use std::path::{Path, PathBuf};

/// A script of this repository's examples.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/scripts")
        .join(name)
}

#[test]
#[ignore = "brings PyTorch"]
fn pytorch_ddp_trains_as_a_gang_of_two() {
    let place = Place::new();
    let torch = python("torchvision", &["torch", "torchvision", "tqdm"]);
    let script = "import torch, torch.distributed as dist, lockstep\n\
        from lockstep.train.torch import prepare_model\n\
        torch.manual_seed(0)\n\
        model = prepare_model(torch.nn.Linear(4, 1))\n\
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n\
        for step in range(20):\n\
        \x20   torch.manual_seed(step * 2 + dist.get_rank())\n\
        \x20   x = torch.randn(16, 4)\n\
        \x20   loss = ((model(x) - x.sum(1, keepdim=True)) ** 2).mean()\n\
        \x20   optimizer.zero_grad(); loss.backward(); optimizer.step()\n\
        lockstep.report({'loss': loss.item(), 'backend': dist.get_backend()})\n\
        print('weights', model.module.weight.detach().sum().item())\n";
    std::fs::write(place.path("ddp.py"), script).unwrap();
    let command = [
        "launch",
        "--workers",
        "2",
        "--json",
        "--",
        torch.to_str().unwrap(),
        "ddp.py",
    ];
    let ran = place.run(&command);
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let reported = &ran.result()["reported"];
    assert_eq!(reported["backend"], "gloo");
    assert!(reported["loss"].as_f64().unwrap() < 0.5, "{reported}");
    // Both have the same weights: their lines are one.
    let lines: Vec<String> = logged(&ran)
        .into_iter()
        .filter(|line| line.starts_with("weights"))
        .collect();
    assert!(lines.iter().all(|line| *line == lines[0]), "{lines:?}");
    place.assert_no_process_is_left();
}

#[test]
#[ignore = "brings PyTorch"]
fn a_rank_of_pytorch_that_is_killed_in_mid_training_is_replaced() {
    let place = Place::new();
    let torch = python("torchvision", &["torch", "torchvision", "tqdm"]);
    crate::common::fashion_mnist();
    let script = example("fashion_mnist_pytorch.py");
    let words = [torch.to_str().unwrap(), script.to_str().unwrap()];
    let data = place.path("data");
    let small = [
        "--data",
        data.to_str().unwrap(),
        "--limit",
        "1000",
        "--epochs",
        "3",
    ];
    let launch = ["launch", "--workers", "2", "--json", "--"];
    let command = [&launch[..], &words, &small].concat();
    let mut command = place.command(&command);
    // The script finds the data that were brought.
    command.env("LOCKSTEP_CACHE", lockstep_testkit::cache());
    command
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let mut run = crate::common::Running::new(command.spawn().unwrap());
    let worker = run.wait_for_worker(1);
    run.wait_for("reported");
    send(worker, Signal::KILL);
    let (code, result, stderr) = run.finish();
    assert_eq!(code, Some(0), "{stderr}\n{result}");
    assert_eq!(result["restarts"], 1);
    place.assert_no_process_is_left();
}

#[test]
#[ignore = "brings TensorFlow"]
fn tensorflow_trains_as_a_gang_of_two() {
    let place = Place::new();
    let tensorflow = python("tensorflow", &["tensorflow-cpu", "tf-keras"]);
    let script = "import json, os, lockstep, numpy as np\n\
        import tensorflow as tf\n\
        strategy = tf.distribute.MultiWorkerMirroredStrategy()\n\
        with strategy.scope():\n\
        \x20   model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])\n\
        \x20   model.compile(optimizer=tf.keras.optimizers.legacy.SGD(0.1), loss='mse')\n\
        x = np.random.RandomState(0).randn(256, 4).astype('float32')\n\
        data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(32)\n\
        history = model.fit(data, epochs=5, verbose=0)\n\
        lockstep.report({'loss': float(history.history['loss'][-1]), 'replicas': strategy.num_replicas_in_sync})\n";
    std::fs::write(place.path("tf.py"), script).unwrap();
    let command = [
        "launch",
        "--workers",
        "2",
        "--json",
        "--",
        tensorflow.to_str().unwrap(),
        "tf.py",
    ];
    let ran = place.run(&command);
    if ran.code != Some(0) {
        panic!("{}\n{}", error(&ran), ran.stderr);
    }
    let reported = &ran.result()["reported"];
    assert_eq!(reported["replicas"], 2);
    assert!(reported["loss"].as_f64().unwrap() < 0.5, "{reported}");
    place.assert_no_process_is_left();
}
