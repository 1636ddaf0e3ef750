"""CIFAR-10 with Keras: the exercise in parallel training as it is after its imports were changed.

    pip install tensorflow tf_keras
    python examples/scripts/cifar10_keras.py --num-workers 2

The strategy is TensorFlow's own. It finds the other processes by TF_CONFIG, which the gang sets, and needs Keras 2
(`tf_keras`): Keras 3 does not train with it.

Keras downloads the data. `--data FOLDER` reads the binary files of CIFAR-10 instead (`lockstep data get cifar-10`
brings them), and `--made-up N` trains on so many random pictures, to see whether everything works.
"""

import argparse
import time
from pathlib import Path

import lockstep  # was: import ray
import numpy as np
import tensorflow as tf
from lockstep.train import RunConfig, ScalingConfig  # was: from ray.train import ...
from lockstep.train.tensorflow import TensorflowTrainer  # was: from ray.train.tensorflow import ...

BYTES_OF_A_PICTURE = 3 * 32 * 32


def read_binary_files(folder):
    """CIFAR-10's own files: records of a label and the pixels of red, of green, of blue."""

    def read(paths):
        records = np.concatenate([np.fromfile(path, np.uint8) for path in paths]).reshape(-1, 1 + BYTES_OF_A_PICTURE)
        pictures = records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
        return pictures, records[:, :1]

    return read(sorted(Path(folder).glob("data_batch_*.bin"))), read([Path(folder, "test_batch.bin")])


def load_data(config):
    if config["made_up"]:
        random = np.random.default_rng(0)
        pictures = random.integers(0, 256, (config["made_up"], 32, 32, 3), np.uint8)
        labels = random.integers(0, 10, (config["made_up"], 1))
        return (pictures, labels), (pictures, labels)
    if config["data"]:
        return read_binary_files(config["data"])
    return tf.keras.datasets.cifar10.load_data()


def build_model():
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.InputLayer(input_shape=(32, 32, 3))])
    for channels, dropout in ((32, 0.2), (64, 0.3), (128, 0.4)):
        for _ in range(2):
            model.add(layers.Conv2D(channels, 3, padding="same", activation="relu"))
            model.add(layers.BatchNormalization())
        model.add(layers.MaxPooling2D())
        model.add(layers.Dropout(dropout))
    model.add(layers.Flatten())
    model.add(layers.Dense(128, activation="relu"))
    model.add(layers.Dropout(0.5))
    model.add(layers.Dense(10, activation="softmax"))
    return model


def train_func_per_worker(config):
    from lockstep.train.tensorflow.keras import ReportCheckpointCallback  # was: from ray.train.tensorflow.keras ...

    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    (train_x, train_y), (test_x, test_y) = load_data(config)

    # The batch is that of all workers; TensorFlow divides it among them.
    def batches(pictures, labels):
        return tf.data.Dataset.from_tensor_slices((pictures.astype("float32") / 255, labels)).batch(
            config["batch_size"], drop_remainder=True
        )

    with strategy.scope():
        model = build_model()
        model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])

    model.fit(
        batches(train_x, train_y).shuffle(100),
        validation_data=batches(test_x, test_y),
        epochs=config["epochs"],
        verbose=2 if lockstep.train.get_context().get_world_rank() == 0 else 0,
        callbacks=[ReportCheckpointCallback()],
    )


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--num-workers", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=10)
    parser.add_argument("--batch-size", type=int, default=128)
    parser.add_argument("--storage-path", help="where the run goes; by default ./runs")
    parser.add_argument("--data", help="the folder of CIFAR-10's binary files")
    parser.add_argument("--made-up", type=int, default=0, help="train on so many random pictures")
    options = parser.parse_args()

    lockstep.init(address="auto")  # was: ray.init(address="auto"); does nothing
    started = time.time()
    trainer = TensorflowTrainer(
        train_loop_per_worker=train_func_per_worker,
        train_loop_config={
            "epochs": options.epochs,
            "batch_size": options.batch_size,
            "data": options.data,
            "made_up": options.made_up,
        },
        scaling_config=ScalingConfig(num_workers=options.num_workers),
        run_config=RunConfig(storage_path=options.storage_path),
    )
    result = trainer.fit()
    print(f"Training took {time.time() - started:.1f} s: {result.metrics}")


if __name__ == "__main__":
    main()
