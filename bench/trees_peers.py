"""Boosted trees by XGBoost's own Python package, for bench/trees.py; each part prints one line of JSON.

    trees_peers.py data FOLDER ROWS          a table to train on, one to test on, a quarter as long
    trees_peers.py single FOLDER SETTINGS    XGBoost in one process, with so many threads
    trees_peers.py ray FOLDER SETTINGS       Ray Train's XGBoostTrainer, so many workers with one processor each

The rows are like those of HIGGS: 28 numbers, of which the label depends on some by products and thresholds.
"""

import json
import sys
import time

COLUMNS = [f"x{column}" for column in range(28)]


def make_data(folder, rows):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    random = np.random.default_rng(7)
    for name, count in [("train", rows), ("test", rows // 4)]:
        x = random.standard_normal((count, len(COLUMNS)), dtype=np.float32)
        score = x[:, 0] * x[:, 1] + np.abs(x[:, 2]) - 0.8 + 0.5 * x[:, 3] * (x[:, 4] > 0.3) + 0.3 * x[:, 5]
        label = (score + random.logistic(scale=0.7, size=count) > 0).astype(np.int64)
        columns = {column: pa.array(x[:, at]) for at, column in enumerate(COLUMNS)}
        table = pa.table({**columns, "label": pa.array(label)})
        pq.write_table(table, f"{folder}/{name}.parquet", row_group_size=100_000)
    return {"rows": rows}


def parameters(settings):
    return {
        "tree_method": "hist", "objective": "binary:logistic", "max_depth": settings["depth"], "eta": settings["eta"],
        "base_score": 0.5, "seed": settings["seed"], "subsample": settings["subsample"],
    }


def auc(labels, scores):
    """The area under the curve, from the ranks of the scores."""
    import numpy as np

    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positives = labels == 1
    count = positives.sum()
    return float((ranks[positives].sum() - count * (count + 1) / 2) / (count * (len(labels) - count)))


def read(folder, name):
    import pyarrow.parquet as pq

    table = pq.read_table(f"{folder}/{name}.parquet")
    import numpy as np

    x = np.column_stack([table[column].to_numpy() for column in COLUMNS])
    return x, table["label"].to_numpy()


def single(folder, settings):
    import xgboost

    begin = time.perf_counter()
    x, y = read(folder, "train")
    data = xgboost.QuantileDMatrix(x, y)
    ready = time.perf_counter()
    given = {**parameters(settings), "nthread": settings["threads"]}
    model = xgboost.train(given, data, num_boost_round=settings["rounds"])
    trained = time.perf_counter()
    x, y = read(folder, "test")
    return {
        "train_s": trained - ready, "prepare_s": ready - begin, "version": xgboost.__version__,
        "auc": auc(y, model.predict(xgboost.DMatrix(x))),
    }


def ray_train(folder, settings):
    import ray
    import xgboost
    from ray.train import RunConfig, ScalingConfig
    from ray.train.xgboost import XGBoostTrainer

    def loop(config):
        import ray.train

        begin = time.perf_counter()
        shard = ray.train.get_dataset_shard("train").materialize().to_pandas()
        data = xgboost.QuantileDMatrix(shard[COLUMNS], shard["label"])
        ready = time.perf_counter()
        model = xgboost.train({**parameters(config), "nthread": 1}, data, num_boost_round=config["rounds"])
        report = {"train_s": time.perf_counter() - ready, "prepare_s": ready - begin}
        if ray.train.get_context().get_world_rank() == 0:
            model.save_model(f"{folder}/ray.ubj")
            with open(f"{folder}/ray.json", "w") as file:
                json.dump(report, file)
        ray.train.report(report)

    # Ray Data reads with processors of its own: where the workers hold all that Ray counts, it waits for ever.
    ray.init(num_cpus=settings["workers"] + 2, log_to_driver=False, include_dashboard=False)
    trainer = XGBoostTrainer(
        loop,
        train_loop_config=settings,
        scaling_config=ScalingConfig(num_workers=settings["workers"], resources_per_worker={"CPU": 1}),
        datasets={"train": ray.data.read_parquet(f"{folder}/train.parquet")},
        run_config=RunConfig(storage_path=f"{folder}/ray", name="trees"),
    )
    trainer.fit()
    # Of a report without a checkpoint, the result says nothing.
    with open(f"{folder}/ray.json") as file:
        times = json.load(file)
    model = xgboost.Booster(model_file=f"{folder}/ray.ubj")
    x, y = read(folder, "test")
    scores = model.predict(xgboost.DMatrix(x, feature_names=COLUMNS))
    return {**times, "version": ray.__version__, "auc": auc(y, scores)}


def main():
    part, folder, given = sys.argv[1:]
    parts = {"data": make_data, "single": single, "ray": ray_train}
    print(json.dumps(parts[part](folder, json.loads(given))))


if __name__ == "__main__":
    main()
