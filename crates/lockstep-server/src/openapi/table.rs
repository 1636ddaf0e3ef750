//! All operations.

use super::{BYTES, JSON, Operation, TEXT};

/// One that takes nothing but its path.
const fn plain(
    method: &'static str,
    path: &'static str,
    says: &'static str,
    answer: &'static str,
) -> Operation {
    with(method, path, says, &[], &[], answer)
}

/// One that is asked something after the question mark.
const fn asks(
    path: &'static str,
    says: &'static str,
    query: Keys,
    answer: &'static str,
) -> Operation {
    with("get", path, says, query, &[], answer)
}

/// One that is told something in its body.
const fn told(path: &'static str, says: &'static str, body: Keys) -> Operation {
    with("post", path, says, &[], body, JSON)
}

type Keys = &'static [(&'static str, &'static str)];

const fn with(
    method: &'static str,
    path: &'static str,
    says: &'static str,
    query: Keys,
    body: Keys,
    answer: &'static str,
) -> Operation {
    Operation {
        method,
        path,
        says,
        query,
        body,
        answer,
    }
}

pub(super) const OPERATIONS: &[Operation] = &[
    plain("get", "/healthz", "Whether the server answers", TEXT),
    plain(
        "get",
        "/metrics",
        "What a monitor reads, as OpenMetrics",
        TEXT,
    ),
    plain("get", "/api/openapi.json", "This description", JSON),
    plain("get", "/health", "The same in MLflow's words", TEXT),
    plain(
        "get",
        "/version",
        "The version of MLflow whose clients are understood",
        TEXT,
    ),
    plain("get", "/api/gcs_healthz", "The same in Ray's words", TEXT),
    plain(
        "get",
        "/api/authentication_mode",
        "Whether a token is needed",
        JSON,
    ),
    plain(
        "post",
        "/api/authenticate",
        "Checks a token, and makes it a cookie",
        JSON,
    ),
    plain(
        "get",
        "/api/version",
        "The version of Ray whose clients are understood",
        JSON,
    ),
    plain("get", "/api/ray/version", "The same", JSON),
    plain("get", "/api/jobs/", "All jobs", JSON),
    told(
        "/api/jobs/",
        "Submits a job",
        &[
            ("entrypoint!", "string"),
            ("submission_id", "string"),
            ("runtime_env", "object"),
            ("metadata", "words"),
            ("entrypoint_num_cpus", "number"),
            ("entrypoint_num_gpus", "number"),
            ("entrypoint_memory", "integer"),
            ("entrypoint_resources", "object"),
            ("entrypoint_label_selector", "words"),
        ],
    ),
    plain("get", "/api/jobs", "All jobs", JSON),
    told(
        "/api/jobs",
        "Submits a job",
        &[
            ("entrypoint!", "string"),
            ("submission_id", "string"),
            ("runtime_env", "object"),
            ("metadata", "words"),
            ("entrypoint_num_cpus", "number"),
            ("entrypoint_num_gpus", "number"),
            ("entrypoint_memory", "integer"),
            ("entrypoint_resources", "object"),
            ("entrypoint_label_selector", "words"),
        ],
    ),
    plain("get", "/api/jobs/{id}", "One job", JSON),
    plain(
        "delete",
        "/api/jobs/{id}",
        "Forgets a job that has ended",
        JSON,
    ),
    plain("post", "/api/jobs/{id}/stop", "Stops a job", JSON),
    plain("get", "/api/jobs/{id}/logs", "A job's whole log", JSON),
    plain(
        "get",
        "/api/jobs/{id}/logs/tail",
        "A job's log as it grows, over a web socket",
        TEXT,
    ),
    plain(
        "get",
        "/api/packages/{protocol}/{name}",
        "Whether a package is here",
        TEXT,
    ),
    plain(
        "put",
        "/api/packages/{protocol}/{name}",
        "Sends a package: a zip file",
        TEXT,
    ),
    asks(
        "/nodes",
        "This machine, as Ray's dashboard has it",
        &[("view", "string")],
        JSON,
    ),
    asks(
        "/api/cluster_status",
        "What jobs may use, and what they do",
        &[("format", "string")],
        JSON,
    ),
    plain("get", "/api/v1/overview", "What the first page shows", JSON),
    asks(
        "/api/v1/runs",
        "Runs, chosen and sorted",
        &[
            ("filter", "string"),
            ("sort", "string"),
            ("ascending", "boolean"),
            ("columns", "string"),
            ("offset", "integer"),
            ("limit", "integer"),
        ],
        JSON,
    ),
    plain(
        "get",
        "/api/v1/runs/names",
        "What runs can be chosen and sorted by",
        JSON,
    ),
    plain("get", "/api/v1/runs/{name}", "One run", JSON),
    told(
        "/api/v1/runs/{name}/tags",
        "Sets what is said of a run",
        &[("tags!", "words"), ("note!", "string")],
    ),
    asks(
        "/api/v1/runs/{name}/log",
        "A worker's log",
        &[
            ("rank!", "integer"),
            ("from", "integer"),
            ("to", "integer"),
            ("most", "integer"),
        ],
        JSON,
    ),
    plain(
        "get",
        "/api/v1/runs/{name}/evaluation",
        "What the model came to on the test set",
        JSON,
    ),
    plain(
        "get",
        "/api/v1/runs/{name}/mistakes",
        "Pictures of what the model was most wrong about",
        BYTES,
    ),
    asks(
        "/api/v1/curves",
        "Points of runs, thinned out",
        &[
            ("runs!", "string"),
            ("names", "string"),
            ("system", "boolean"),
            ("by", "string"),
            ("width", "integer"),
            ("from", "number"),
            ("to", "number"),
        ],
        JSON,
    ),
    asks(
        "/api/v1/jobs",
        "Jobs, chosen",
        &[
            ("status", "string"),
            ("text", "string"),
            ("offset", "integer"),
            ("limit", "integer"),
        ],
        JSON,
    ),
    told(
        "/api/v1/jobs/actions",
        "Stops, forgets or submits jobs once more",
        &[("action!", "string"), ("ids!", "texts")],
    ),
    plain("get", "/api/v1/jobs/{id}", "One job", JSON),
    asks(
        "/api/v1/jobs/{id}/log",
        "A piece of a job's log",
        &[("from", "integer"), ("to", "integer"), ("most", "integer")],
        JSON,
    ),
    plain("get", "/api/v1/models", "Models", JSON),
    plain(
        "get",
        "/api/v1/models/{name}",
        "One model with its versions",
        JSON,
    ),
    plain(
        "get",
        "/api/v1/cluster",
        "This machine and what it does",
        JSON,
    ),
    plain(
        "get",
        "/api/v1/cluster/elsewhere",
        "The Ray cluster and the Kubernetes namespace that the server was pointed at",
        JSON,
    ),
    plain(
        "get",
        "/api/v1/benchmarks",
        "Benchmarks that were measured",
        JSON,
    ),
    plain("get", "/api/v1/benchmarks/{name}", "One of them", JSON),
    asks(
        "/api/v1/live",
        "News as they happen, as server-sent events",
        &[
            ("runs", "string"),
            ("job", "string"),
            ("machine", "boolean"),
        ],
        TEXT,
    ),
    told(
        "/api/2.0/mlflow/experiments/create",
        "Makes an experiment",
        &[("name!", "string"), ("tags", "pairs")],
    ),
    asks(
        "/api/2.0/mlflow/experiments/get",
        "One experiment",
        &[("experiment_id!", "string")],
        JSON,
    ),
    asks(
        "/api/2.0/mlflow/experiments/get-by-name",
        "One experiment",
        &[("experiment_name!", "string")],
        JSON,
    ),
    asks(
        "/api/2.0/mlflow/experiments/search",
        "Experiments, chosen and sorted",
        &[
            ("filter", "string"),
            ("max_results", "integer"),
            ("page_token", "string"),
            ("order_by", "string"),
            ("view_type", "string"),
        ],
        JSON,
    ),
    told(
        "/api/2.0/mlflow/experiments/search",
        "Experiments, chosen and sorted",
        &[
            ("filter", "string"),
            ("max_results", "integer"),
            ("page_token", "string"),
            ("order_by", "texts"),
            ("view_type", "string"),
        ],
    ),
    told(
        "/api/2.0/mlflow/experiments/update",
        "Renames an experiment",
        &[("experiment_id!", "string"), ("new_name", "string")],
    ),
    told(
        "/api/2.0/mlflow/experiments/delete",
        "Puts an experiment into the bin",
        &[("experiment_id!", "string")],
    ),
    told(
        "/api/2.0/mlflow/experiments/restore",
        "Takes an experiment out of the bin",
        &[("experiment_id!", "string")],
    ),
    told(
        "/api/2.0/mlflow/experiments/set-experiment-tag",
        "Sets a tag of an experiment",
        &[
            ("experiment_id!", "string"),
            ("key!", "string"),
            ("value", "string"),
        ],
    ),
    told(
        "/api/2.0/mlflow/experiments/delete-experiment-tag",
        "Removes a tag of an experiment",
        &[("experiment_id!", "string"), ("key!", "string")],
    ),
    told(
        "/api/2.0/mlflow/runs/create",
        "Makes a run",
        &[
            ("experiment_id", "string"),
            ("run_name", "string"),
            ("start_time", "integer"),
            ("user_id", "string"),
            ("tags", "pairs"),
        ],
    ),
    asks(
        "/api/2.0/mlflow/runs/get",
        "One run",
        &[("run_id!", "string")],
        JSON,
    ),
    told(
        "/api/2.0/mlflow/runs/update",
        "Says how a run is",
        &[
            ("run_id!", "string"),
            ("status", "string"),
            ("end_time", "integer"),
            ("run_name", "string"),
        ],
    ),
    told(
        "/api/2.0/mlflow/runs/delete",
        "Puts a run into the bin",
        &[("run_id!", "string")],
    ),
    told(
        "/api/2.0/mlflow/runs/restore",
        "Takes a run out of the bin",
        &[("run_id!", "string")],
    ),
    told(
        "/api/2.0/mlflow/runs/search",
        "Runs, chosen and sorted",
        &[
            ("experiment_ids!", "texts"),
            ("filter", "string"),
            ("run_view_type", "string"),
            ("max_results", "integer"),
            ("order_by", "texts"),
            ("page_token", "string"),
        ],
    ),
    told(
        "/api/2.0/mlflow/runs/log-metric",
        "Adds a point to a metric",
        &[
            ("run_id!", "string"),
            ("key!", "string"),
            ("value!", "number"),
            ("timestamp", "integer"),
            ("step", "integer"),
        ],
    ),
    told(
        "/api/2.0/mlflow/runs/log-parameter",
        "Sets a parameter, once",
        &[
            ("run_id!", "string"),
            ("key!", "string"),
            ("value", "string"),
        ],
    ),
    told(
        "/api/2.0/mlflow/runs/log-batch",
        "Points, parameters and tags at once",
        &[
            ("run_id!", "string"),
            ("metrics", "points"),
            ("params", "pairs"),
            ("tags", "pairs"),
        ],
    ),
    told(
        "/api/2.0/mlflow/runs/log-inputs",
        "Says what a run learns from",
        &[("run_id!", "string"), ("datasets", "tables")],
    ),
    told(
        "/api/2.0/mlflow/runs/set-tag",
        "Sets a tag of a run",
        &[
            ("run_id!", "string"),
            ("key!", "string"),
            ("value", "string"),
        ],
    ),
    told(
        "/api/2.0/mlflow/runs/delete-tag",
        "Removes a tag of a run",
        &[("run_id!", "string"), ("key!", "string")],
    ),
    asks(
        "/api/2.0/mlflow/metrics/get-history",
        "All points of a metric",
        &[
            ("run_id!", "string"),
            ("metric_key!", "string"),
            ("max_results", "integer"),
            ("page_token", "string"),
        ],
        JSON,
    ),
    told(
        "/api/2.0/mlflow/logged-models/search",
        "MLflow's models: none",
        &[("experiment_ids", "texts")],
    ),
    asks(
        "/api/2.0/mlflow/artifacts/list",
        "Files of a run",
        &[("run_id!", "string"), ("path", "string")],
        JSON,
    ),
    asks(
        "/api/2.0/mlflow-artifacts/artifacts",
        "Files of a run, by EXPERIMENT/RUN/artifacts/PATH",
        &[("path!", "string")],
        JSON,
    ),
    plain(
        "get",
        "/api/2.0/mlflow-artifacts/artifacts/{path}",
        "A file of a run",
        BYTES,
    ),
    plain(
        "put",
        "/api/2.0/mlflow-artifacts/artifacts/{path}",
        "Sends a file of a run",
        JSON,
    ),
    plain(
        "delete",
        "/api/2.0/mlflow-artifacts/artifacts/{path}",
        "Removes a file of a run",
        JSON,
    ),
    asks(
        "/get-artifact",
        "A file of a run",
        &[("run_uuid!", "string"), ("path!", "string")],
        BYTES,
    ),
];
