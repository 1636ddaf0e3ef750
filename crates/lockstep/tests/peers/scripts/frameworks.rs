//! Real PyTorch, TensorFlow, JAX and XGBoost as gangs. They are large: these tests run with `make test-long`.

use crate::common::{Place, logged, send};
use lockstep_testkit::python;
use rustix::process::Signal;
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A script of this repository's examples.
fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/scripts")
        .join(name)
}

fn pytorch() -> PathBuf {
    python("torchvision", &["torch", "torchvision", "tqdm"])
}

/// Runs a script with this Python as a gang of two, to its end: what it reported. Lines that begin with `same` must be
/// the same on both ranks.
fn gang_of_two(python: &Path, script: &str) -> Value {
    let place = Place::new();
    std::fs::write(place.path("train.py"), script).unwrap();
    let launch = ["launch", "--workers", "2", "--json", "--"];
    let words = [python.to_str().unwrap(), "train.py"];
    let ran = place.run(&[&launch[..], &words].concat());
    assert_eq!(ran.code, Some(0), "{}\n{}", ran.stdout, ran.stderr);
    let same: Vec<String> = logged(&ran)
        .into_iter()
        .filter(|line| line.starts_with("same"))
        .collect();
    assert!(!same.is_empty(), "{}", ran.stdout);
    assert!(same.iter().all(|line| *line == same[0]), "{same:?}");
    place.assert_no_process_is_left();
    ran.result()["reported"].clone()
}

fn assert_learned(reported: &Value) {
    assert!(reported["loss"].as_f64().unwrap() < 0.5, "{reported}");
}

#[test]
#[ignore = "brings PyTorch"]
fn pytorch_ddp_trains_as_a_gang_of_two() {
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
        print('same weights', model.module.weight.detach().sum().item())\n";
    let reported = gang_of_two(&pytorch(), script);
    assert_eq!(reported["backend"], "gloo");
    assert_learned(&reported);
}

#[test]
#[ignore = "brings PyTorch"]
fn a_rank_of_pytorch_that_is_killed_in_mid_training_is_replaced() {
    let place = Place::new();
    let torch = pytorch();
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
    let mut run = crate::common::Running::new(command);
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
    let script = "import json, os, lockstep, numpy as np\n\
        import tensorflow as tf\n\
        strategy = tf.distribute.MultiWorkerMirroredStrategy()\n\
        with strategy.scope():\n\
        \x20   model = tf.keras.Sequential([tf.keras.layers.Dense(1, input_shape=(4,))])\n\
        \x20   model.compile(optimizer=tf.keras.optimizers.legacy.SGD(0.1), loss='mse')\n\
        x = np.random.RandomState(0).randn(256, 4).astype('float32')\n\
        data = tf.data.Dataset.from_tensor_slices((x, x.sum(1, keepdims=True))).batch(32)\n\
        history = model.fit(data, epochs=5, verbose=0)\n\
        lockstep.report({'loss': float(history.history['loss'][-1]), 'replicas': strategy.num_replicas_in_sync})\n\
        print('same weights', float(model.get_weights()[0].sum()))\n";
    let tensorflow = python("tensorflow", &["tensorflow-cpu", "tf-keras"]);
    let reported = gang_of_two(&tensorflow, script);
    assert_eq!(reported["replicas"], 2);
    assert_learned(&reported);
}

#[test]
#[ignore = "brings JAX"]
fn jax_trains_as_a_gang_of_two() {
    // JAX finds the address by itself, and must be told the two numbers.
    let script = "import os, jax, jax.numpy as jnp, lockstep\n\
        number = lambda name: int(os.environ[name])\n\
        jax.distributed.initialize(None, number('JAX_NUM_PROCESSES'), number('JAX_PROCESS_ID'))\n\
        from jax.experimental.multihost_utils import process_allgather\n\
        @jax.jit\n\
        def gradient(w, x):\n\
        \x20   return jax.value_and_grad(lambda w: ((x @ w - x.sum(1)) ** 2).mean())(w)\n\
        w = jnp.zeros(4)\n\
        for step in range(30):\n\
        \x20   x = jax.random.normal(jax.random.key(step * 2 + jax.process_index()), (32, 4))\n\
        \x20   loss, g = gradient(w, x)\n\
        \x20   w = w - 0.2 * process_allgather(g).mean(0)\n\
        lockstep.report({'loss': float(loss), 'processes': jax.process_count(), 'devices': jax.device_count()})\n\
        print('same weights', float(w.sum()))\n\
        jax.distributed.shutdown()\n";
    let reported = gang_of_two(&python("jax", &["numpy", "jax"]), script);
    assert_eq!(reported["processes"], 2);
    assert_eq!(reported["devices"], 2);
    assert_learned(&reported);
}

#[test]
#[ignore = "brings XGBoost"]
fn xgboost_trains_as_a_gang_of_two() {
    // Each has half of the rows; the trees are those of all.
    let script = "import hashlib, os, lockstep, numpy as np, xgboost as xgb\n\
        from xgboost import collective\n\
        from xgboost.tracker import RabitTracker\n\
        e = os.environ\n\
        uri, port, rank = e['DMLC_TRACKER_URI'], int(e['DMLC_TRACKER_PORT']), int(e['DMLC_TASK_ID'])\n\
        if rank == 0:\n\
        \x20   tracker = RabitTracker(n_workers=int(e['DMLC_NUM_WORKER']), host_ip=uri, port=port)\n\
        \x20   tracker.start()\n\
        lockstep.collective.barrier()\n\
        about = dict(dmlc_communicator='rabit', dmlc_tracker_uri=uri, dmlc_tracker_port=port, dmlc_task_id=str(rank))\n\
        with collective.CommunicatorContext(**about):\n\
        \x20   x = np.random.RandomState(rank).randn(500, 4)\n\
        \x20   data, seen = xgb.DMatrix(x, x.sum(1)), {}\n\
        \x20   settings = {'tree_method': 'hist', 'max_depth': 4, 'eta': 0.3}\n\
        \x20   model = xgb.train(settings, data, 30, evals=[(data, 'train')], evals_result=seen, verbose_eval=False)\n\
        \x20   world = collective.get_world_size()\n\
        lockstep.report({'loss': seen['train']['rmse'][-1], 'world': world})\n\
        print('same trees', hashlib.sha256(model.save_raw('json')).hexdigest())\n\
        if rank == 0:\n\
        \x20   tracker.wait_for()\n";
    let reported = gang_of_two(&python("xgboost", &["numpy", "xgboost-cpu"]), script);
    assert_eq!(reported["world"], 2);
    assert_learned(&reported);
}
