//! The configuration and the end of a run, for TensorBoard's table of hyperparameters.

use super::proto::{
    Any, AnyKind, Datum, Dim, Experiment, HParamInfo, HParams, HParamsData, Metadata, MetricInfo,
    MetricName, Plugin, SessionEnd, SessionStart, Shape, Tensor, Value,
};
use super::write::tag;
use lockstep_events::event::{Started, Status};
use lockstep_events::metric_name;
use prost::Message;

/// Sections of the job that say nothing about what is learned.
const LEFT_OUT: [&str; 8] = [
    "track.", "notify.", "kube.", "storage.", "run.", "gang.", "recover.", "name",
];

/// What a run begins with.
pub(super) fn start(started: &Started, user: &str, time: f64) -> [Value; 2] {
    let config = started.config.iter();
    let config: Vec<(&str, Any)> = config
        .filter(|(key, _)| !LEFT_OUT.iter().any(|prefix| key.starts_with(prefix)))
        .map(|(key, value)| (key.as_str(), any(value)))
        .collect();
    let info = |(name, value): &(&str, Any)| HParamInfo {
        name: (*name).to_owned(),
        kind: match value.kind {
            Some(AnyKind::Number(_)) => 3,
            Some(AnyKind::Boolean(_)) => 2,
            _ => 1,
        },
    };
    let sets = [
        ("train", true),
        ("val", started.val_samples > 0),
        ("test", started.test_samples > 0),
    ];
    let mut metrics = Vec::new();
    for (set, _) in sets.iter().filter(|(_, there)| *there) {
        metrics.extend(started.metrics.iter().map(|name| MetricInfo {
            name: Some(MetricName {
                tag: tag(&metric_name(set, name)),
            }),
        }));
    }
    let experiment = HParamsData::Experiment(Experiment {
        name: started.run.clone(),
        user: user.to_owned(),
        time_created_secs: time,
        hparam_infos: config.iter().map(info).collect(),
        metric_infos: metrics,
    });
    let session = HParamsData::Start(SessionStart {
        hparams: config
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect(),
        group_name: started.run.clone(),
        start_time_secs: time,
    });
    [
        value("_hparams_/experiment", experiment),
        value("_hparams_/session_start_info", session),
    ]
}

/// How it ended. One that was interrupted has not.
pub(super) fn end(status: Status, time: f64) -> Option<Value> {
    let status = match status {
        Status::Succeeded => 1,
        Status::Failed => 2,
        Status::Interrupted => return None,
    };
    let end = HParamsData::End(SessionEnd {
        status,
        end_time_secs: time,
    });
    Some(value("_hparams_/session_end_info", end))
}

fn any(text: &str) -> Any {
    let kind = match (text, text.parse::<f64>()) {
        ("true" | "false", _) => AnyKind::Boolean(text == "true"),
        (_, Ok(number)) if number.is_finite() => AnyKind::Number(number),
        _ => AnyKind::Text(text.to_owned()),
    };
    Any { kind: Some(kind) }
}

fn value(tag: &str, data: HParamsData) -> Value {
    let content = HParams {
        version: 0,
        data: Some(data),
    };
    Value {
        tag: tag.to_owned(),
        metadata: Some(Metadata {
            plugin: Some(Plugin {
                name: "hparams".to_owned(),
                content: content.encode_to_vec(),
            }),
        }),
        // A tensor of floats without any.
        datum: Some(Datum::Tensor(Tensor {
            dtype: 1,
            shape: Some(Shape {
                dim: vec![Dim { size: 0 }],
            }),
        })),
    }
}
