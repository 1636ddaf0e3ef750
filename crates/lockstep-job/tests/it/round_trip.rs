//! A job is the same job after it was written down and read again.

use lockstep_job::{
    Bytes, ClassWeights, Comparison, Condition, Data, DataRef, Embed, Every, Features, Job,
    JobAugment, JobBest, JobCheckpoint, JobColumnType, JobColumns, JobCopies, JobCsv, JobDecision,
    JobDevice, JobEncoding, JobFilter, JobGang, JobLayer, JobLoss, JobMetrics, JobModel,
    JobNetwork, JobNormalise, JobOptimizer, JobPrecision, JobSchedule, JobSplit, JobThreshold,
    JobTransform, JobTransport, Keep, Kube, Label, LearnerJob, Location, NetworkJob,
    NetworkTraining, Notify, Occasion, Pair, Placement, PositiveClass, Recover, Resources, Run,
    Split, Storage, TensorBoard, ThresholdRule, Toleration, Track, Train, Validation, Volume,
    VolumeSource, WeightRule, Workers,
};
use lockstep_measure::{Best, OwnMetric};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use std::path::{Path, PathBuf};

fn data_ref() -> impl Strategy<Value = DataRef> {
    prop_oneof![
        Just(DataRef::Known {
            name: "fashion-mnist".into(),
            split: "test".into()
        }),
        ("/[a-zé:/ ~'\"]{1,9}", option::of("/[a-z:]{1,9}")).prop_map(|(images, labels)| {
            DataRef::Idx {
                images: images.into(),
                labels: labels.map(PathBuf::from),
            }
        }),
        ("/[a-zé:/ ~'\"]{1,9}", any::<bool>()).prop_map(|(folder, train)| DataRef::CifarFolder {
            folder: folder.into(),
            split: if train { Split::Train } else { Split::Test },
        }),
        vec("/[a-zé:/ ~'\"]{1,9}", 1..4).prop_map(|files| DataRef::CifarFiles {
            files: files.into_iter().map(PathBuf::from).collect(),
        }),
        location().prop_map(|folder| DataRef::Pictures { folder }),
        (location(), columns()).prop_map(|(files, columns)| DataRef::Parquet { files, columns }),
        (location(), columns(), vec("[a-z/#-]{1,4}", 0..3)).prop_map(|(files, columns, na)| {
            DataRef::JsonLines {
                files,
                columns: JobColumns { na, ..columns },
            }
        }),
        (
            location(),
            columns(),
            option::of(proptest::sample::select(vec![',', ';', '\t'])),
            any::<bool>(),
        )
            .prop_map(|(file, columns, delimiter, more)| DataRef::Csv {
                file,
                columns: JobColumns {
                    decimal: if delimiter == Some(';') { ',' } else { '.' },
                    thousands: more.then_some(' '),
                    na: if more {
                        vec!["-999".into()]
                    } else {
                        Vec::new()
                    },
                    ..columns
                },
                written: JobCsv {
                    delimiter,
                    encoding: more.then_some(JobEncoding::Latin1),
                    comment: more.then_some('#'),
                },
            }),
    ]
}

fn location() -> impl Strategy<Value = Location> {
    let names = [
        "/photos",
        "/a.parquet",
        "/b:c/d.csv",
        "s3://bucket/photos",
        "https://host/x.csv",
    ];
    proptest::sample::select(names.to_vec()).prop_map(Location::new)
}

fn columns() -> impl Strategy<Value = JobColumns> {
    // No column is named twice, and none is to be predicted: such columns are refused.
    let several = proptest::collection::btree_set("[A-Z É]{1,5}", 1..4);
    let features = prop_oneof![
        "[A-Z É]{1,5}".prop_map(Features::List),
        several.prop_map(|names| Features::Numbers(names.into_iter().collect())),
    ];
    let label = prop_oneof![
        "[a-z]{1,5}".prop_map(Label::One),
        Just(Label::Several(vec!["red".into(), "round".into()])),
    ];
    let types = [
        JobColumnType::Category,
        JobColumnType::Embedding,
        JobColumnType::Text,
    ];
    let types = proptest::sample::select(types.to_vec());
    let types = proptest::collection::btree_map("[a-z é]{1,5}", types, 0..3);
    let column = || option::of("[a-z]{1,5}");
    let others = (column(), column(), column());
    let drop = vec("[a-z é]{1,5}", 0..3);
    (option::of(features), label, others, types, drop).prop_map(
        |(features, label, (path, weight, group), types, drop)| JobColumns {
            drop: if features.is_some() { Vec::new() } else { drop },
            features,
            label,
            path,
            weight,
            group,
            types,
            ..JobColumns::default()
        },
    )
}

/// Changes a job to one that embeds pictures.
fn embedding(mut job: Job, embed: Embed) -> Job {
    let folder = Location::new("gs://bucket/pictures");
    let pictures = DataRef::Pictures { folder };
    if let (Some(data), LearnerJob::Network(network)) = (&mut job.data, &mut job.learner) {
        data.train = pictures.clone();
        data.validation = Validation::Set(pictures.clone());
        data.stratify = false;
        data.test = Some(pictures);
        (data.normalise, data.augment) = (None, None);
        data.standardise = None;
        network.embed = Some(embed);
    }
    job
}

fn pair(range: std::ops::Range<usize>) -> impl Strategy<Value = Pair> {
    (range.clone(), range).prop_map(|(height, width)| Pair { height, width })
}

fn layer() -> impl Strategy<Value = JobLayer> {
    let flat = prop_oneof![
        (1..9999usize).prop_map(|out| JobLayer::Linear { out: Some(out) }),
        (
            1..9999usize,
            pair(1..9),
            pair(1..9),
            pair(0..9),
            option::of(1..9usize),
            any::<bool>()
        )
            .prop_map(
                |(out, kernel, stride, padding, groups, bias)| JobLayer::Conv2d {
                    out,
                    kernel,
                    stride,
                    padding,
                    groups,
                    bias
                }
            ),
        Just(JobLayer::BatchNorm),
        Just(JobLayer::Relu),
        Just(JobLayer::Gelu),
        (0.0..0.99).prop_map(|slope| JobLayer::LeakyRelu { slope }),
        Just(JobLayer::Silu),
        Just(JobLayer::Sigmoid),
        Just(JobLayer::Tanh),
        Just(JobLayer::LayerNorm),
        (1..9usize).prop_map(|groups| JobLayer::GroupNorm { groups }),
        (pair(2..9), pair(1..9), pair(0..2)).prop_map(|(kernel, stride, padding)| {
            JobLayer::MaxPool {
                kernel,
                stride,
                padding,
            }
        }),
        (pair(2..9), pair(1..9), pair(0..2)).prop_map(|(kernel, stride, padding)| {
            JobLayer::AvgPool {
                kernel,
                stride,
                padding,
            }
        }),
        Just(JobLayer::GlobalPool),
        (0.0..0.99).prop_map(|p| JobLayer::Dropout { p }),
        Just(JobLayer::Flatten),
        (1..9usize, 1..9usize, any::<bool>()).prop_map(|(out, kernel, bias)| JobLayer::Conv1d {
            out,
            kernel,
            bias,
            stride: kernel,
            padding: kernel / 2,
            groups: bias.then_some(2),
        }),
        (1..9usize).prop_map(|kernel| JobLayer::MaxPool1d { kernel, stride: 2 }),
        (1..9usize).prop_map(|kernel| JobLayer::AvgPool1d {
            kernel,
            stride: kernel
        }),
        vec(1..99usize, 2..4).prop_map(|shape| JobLayer::Unflatten { shape }),
    ];
    flat.prop_recursive(2, 9, 3, |layer| {
        (vec(layer.clone(), 1..3), vec(layer, 0..3))
            .prop_map(|(body, shortcut)| JobLayer::Residual { body, shortcut })
    })
}

fn network() -> impl Strategy<Value = JobNetwork> {
    let hidden = vec(1..9999usize, 1..4);
    let blocks = vec((1..9999usize, 0.0..0.99), 1..4);
    prop_oneof![
        (hidden, 0.0..0.99, any::<bool>()).prop_map(|(hidden, dropout, batch_norm)| {
            JobNetwork::Mlp {
                hidden,
                dropout,
                batch_norm,
            }
        }),
        (blocks, 1..9999usize, 0.0..0.99).prop_map(|(blocks, dense, dense_dropout)| {
            let (channels, dropout) = blocks.into_iter().unzip();
            JobNetwork::Cnn {
                channels,
                dropout,
                dense,
                dense_dropout,
            }
        }),
        any::<bool>().prop_map(|small_stem| JobNetwork::ResNet18 { small_stem }),
        (vec(layer(), 0..4), option::of(1..99usize)).prop_map(|(mut layers, out)| {
            layers.push(JobLayer::Linear { out });
            JobNetwork::Stack { layers }
        }),
    ]
}

fn model() -> impl Strategy<Value = JobModel> {
    (network(), option::of("/[a-zé:/ ~'\"]{1,9}")).prop_map(|(network, weights)| JobModel {
        network,
        weights: weights.map(PathBuf::from),
    })
}

fn optimizer() -> impl Strategy<Value = JobOptimizer> {
    let number = || 1e-9..0.99f64;
    prop_oneof![
        (number(), number(), any::<bool>(), number()).prop_map(
            |(lr, momentum, nesterov, weight_decay)| JobOptimizer::Sgd {
                lr,
                momentum,
                nesterov,
                weight_decay
            }
        ),
        (number(), [number(), number()], number(), number()).prop_map(
            |(lr, betas, eps, weight_decay)| JobOptimizer::Adam {
                lr,
                betas,
                eps,
                weight_decay
            }
        ),
        (number(), [number(), number()], number(), number()).prop_map(
            |(lr, betas, eps, weight_decay)| JobOptimizer::AdamW {
                lr,
                betas,
                eps,
                weight_decay
            }
        ),
        (number(), number(), number(), number(), number()).prop_map(
            |(lr, alpha, eps, momentum, weight_decay)| JobOptimizer::RmsProp {
                lr,
                alpha,
                eps,
                momentum,
                weight_decay
            }
        ),
        (number(), [number(), number()], number()).prop_map(|(lr, betas, weight_decay)| {
            JobOptimizer::Lion {
                lr,
                betas,
                weight_decay,
            }
        }),
    ]
}

fn schedule() -> impl Strategy<Value = JobSchedule> {
    prop_oneof![
        (0..99u64).prop_map(|warmup_steps| JobSchedule::Constant { warmup_steps }),
        (1..99u32, 1e-9..2.0, 0..99u64).prop_map(|(every_epochs, gamma, warmup_steps)| {
            JobSchedule::Step {
                every_epochs,
                gamma,
                warmup_steps,
            }
        }),
        (option::of(100..999u64), 0..99u64).prop_map(|(steps, warmup_steps)| {
            JobSchedule::Cosine {
                min_lr: 1e-9,
                steps,
                warmup_steps,
            }
        }),
        (1e-9..0.99, 1..99u32, 0.0..9.0).prop_map(|(factor, patience, min_change)| {
            JobSchedule::Plateau {
                factor,
                patience,
                min_change,
                min_lr: 1e-9,
                warmup_steps: 7,
            }
        }),
        (0.0..1.0, 1e-9..99.0, option::of(1..999u64)).prop_map(|(pct_start, div_factor, steps)| {
            JobSchedule::OneCycle {
                pct_start,
                div_factor,
                final_div_factor: 1e4,
                steps,
            }
        }),
    ]
}

fn checkpoint() -> impl Strategy<Value = JobCheckpoint> {
    let every = prop_oneof![
        (1..=i64::MAX as u64).prop_map(Every::Steps),
        (1..9u64).prop_map(Every::Epochs),
        (1e-9..1e6).prop_map(Every::Seconds),
        Just(Every::None),
    ];
    let best = proptest::sample::select(vec!["loss", "average_precision", "cost"]);
    let best = best.prop_map(JobBest::from);
    (every, 1..9usize, best).prop_map(|(every, keep, best)| JobCheckpoint { every, keep, best })
}

fn metrics() -> JobMetrics {
    let metric = |name: &str, best| OwnMetric {
        name: name.to_owned(),
        formula: "mean(label != predicted) ** 0.5".parse().unwrap(),
        best,
    };
    JobMetrics(vec![
        metric("cost", Some(Best::Lowest)),
        metric("errors", None),
    ])
}

prop_compose! {
    fn job()(
        data in (data_ref(), option::of(data_ref()), 0.0..0.99, option::of(data_ref())),
        model in model(),
        optimizer in optimizer(),
        schedule in schedule(),
        clip_norm in option::of(1e-9..9.0),
        loss in option::of(proptest::sample::select(vec![JobLoss::CrossEntropy, JobLoss::Mse, JobLoss::Bce, JobLoss::Huber, JobLoss::Quantile, JobLoss::Focal])),
        (lanes, max, min) in (1..9usize)
            .prop_flat_map(|lanes| (Just(lanes), 1..=lanes))
            .prop_flat_map(|(lanes, max)| (Just(lanes), Just(max), 1..=max)),
        seed in 0..=i64::MAX as u64,
        normalise in option::of((-9.0..9.0, 1e-9..9.0)),
        augment in option::of((0..9usize, any::<bool>())),
        deadline_s in 1e-9..600.0,
        checkpoint in checkpoint(),
        store in "/[a-zé: ]{1,9}",
        transform in option::of((option::of(1..999u32), option::of([1..999u32, 1..999u32]))),
        embed in option::of((1..99usize, 1..99usize)),
    ) -> Job {
        let (train, val, share, test) = data;
        let validation = val.map_or(Validation::Split(share), Validation::Set);
        let normalise = normalise.map(|(mean, std)| JobNormalise {
            mean: vec![mean],
            std: vec![std],
        });
        let stratify = matches!(validation, Validation::Split(share) if share > 0.5);
        let augment = augment.map(|(crop_padding, flip)| JobAugment {
            crop_padding,
            flip,
            resized_crop: flip.then_some([deadline_s / 700.0, 1.0]),
            rotation: Some(deadline_s / 4.0),
            brightness: Some(deadline_s),
            contrast: Some(deadline_s),
            saturation: None,
            erase: flip.then_some(deadline_s / 700.0),
            mixup: flip.then_some(1.0),
            cutmix: Some(0.1 + deadline_s / 700.0),
        });
        let transform = transform.map(|(resize, crop)| JobTransform {
            resize: resize.map(|side| side.max(crop.map_or(0, |[height, width]| height.min(width)))),
            crop,
            filter: JobFilter::Lanczos,
        });
        let storage = match &test {
            Some(_) => Storage { anonymous: true, region: Some("eu".into()), ..Storage::default() },
            None => Storage::default(),
        };
        let data = Data {
            train, validation, stratify, balance: stratify, test, normalise: normalise.clone(), augment, transform,
            standardise: (lanes > 4).then_some(lanes > 6),
            test_split: if max > 4 { (1.0 - share) / 2.0 } else { 0.0 },
            split: (lanes > 3).then(|| JobSplit {
                by: (!stratify && lanes == 4).then(|| "day".to_owned()),
                group: (!stratify && lanes == 5).then(|| "shop".to_owned()),
                folds: (lanes > 5).then_some(lanes),
                fold: (lanes > 5).then_some(max),
            }),
            max_bad: 0.25, memory: Bytes(lanes as u64 * 100_000_000),
        };
        let job = Job {
            name: "x".into(),
            data: Some(data),
            storage,
            learner: LearnerJob::Network(Box::new(NetworkJob { embed: None, metrics: metrics(), model, checkpoint, train: Train {
                learner: NetworkTraining {
                    epochs: 3, batch: 64, loss, optimizer, schedule, clip_norm, onnx: lanes % 2 == 0,
                    label_smoothing: deadline_s / 1000.0,
                    class_weights: match lanes {
                        1 => None,
                        2 => Some(ClassWeights::Rule(WeightRule::Balanced)),
                        _ => Some(ClassWeights::Each(vec![deadline_s, 1.0])),
                    },
                    huber_delta: (loss == Some(JobLoss::Huber)).then_some(deadline_s),
                    quantile_alpha: (loss == Some(JobLoss::Quantile)).then_some(deadline_s / 1000.0),
                    focal_gamma: (loss == Some(JobLoss::Focal)).then_some(deadline_s),
                    decision: JobDecision {
                        positive: match lanes {
                            1 => Some(PositiveClass::Number(1)),
                            2 => Some(PositiveClass::Name("yes".to_owned())),
                            3 => Some(PositiveClass::Truth(true)),
                            _ => None,
                        },
                        threshold: match lanes {
                            1 => Some(JobThreshold::At(deadline_s / 1000.0)),
                            2 => Some(JobThreshold::By(ThresholdRule::F1)),
                            3 => Some(JobThreshold::By(ThresholdRule::BalancedAccuracy)),
                            _ => None,
                        },
                    },
                    average: clip_norm.map(|norm| norm / 10.0),
                    precision: if lanes > 2 { JobPrecision::Fixed16 } else { JobPrecision::F32 },
                    freeze: clip_norm.map(|_| "layers.0".to_owned()).into_iter().collect(),
                    rates: clip_norm.map(|norm| ("layer4.1".to_owned(), norm)).into_iter().collect(),
                    patience: clip_norm.map(|_| 7),
                    min_change: clip_norm.map(|norm| norm / 100.0),
                },
                workers: Workers { min, max }, lanes, threads: Some(2), device: JobDevice::Cuda((lanes > 2).then_some(1)), gpu_data: Bytes(3 << 20), seed,
            } })),
            run: Run {
                store: Location::new(store),
                keep: match lanes {
                    1 => None,
                    2 => Some(Keep::newest(7)),
                    _ => Some(Keep { newest: None, days: Some(30), best: Some(2), by: Some("val.loss".into()) }),
                },
                register: (lanes > 2).then(|| "digits.v1".to_owned()),
            },
            kube: match embed {
                Some(_) => Kube {
                    image: Some("registry:5000/a/b:c".to_owned()),
                    tolerations: vec![Toleration {
                        key: "gpu".to_owned(),
                        value: None,
                        effect: Some("NoSchedule".to_owned()),
                    }],
                    volumes: [(
                        "/data".to_owned(),
                        Volume { source: VolumeSource::Claim("d".to_owned()), read_only: true },
                    )].into(),
                    patch: [("Job".to_owned(), serde_json::json!({"spec": {"suspend": true}}))].into(),
                    ..Kube::default()
                },
                None => Kube::default(),
            },
            resources: match embed {
                Some(_) => Resources {
                    cpus: deadline_s,
                    memory: Some(Bytes(1 << 30)),
                    place: Placement::StrictSpread,
                    labels: [("zone".to_owned(), "a".to_owned())].into(),
                    ..Resources::default()
                },
                None => Resources::default(),
            },
            track: match embed {
                Some(_) => Track {
                    mlflow: Some("http://127.0.0.1:5000".to_owned()),
                    register: Some("digits".to_owned()),
                    alias: Some("champion".to_owned()),
                    tensorboard: TensorBoard::Folder("/boards".into()),
                    uncommitted: true,
                    wait_s: deadline_s,
                    ..Track::default()
                },
                None => Track { tensorboard: TensorBoard::Switch(true), ..Track::default() },
            },
            notify: match embed {
                Some(_) => Notify {
                    command: vec!["notify-send".to_owned(), "done".to_owned()],
                    on: vec![Occasion::Failure],
                    when: vec![Condition {
                        metric: "val.loss".to_owned(),
                        comparison: Comparison::AtLeast,
                        value: deadline_s,
                    }],
                    ..Notify::default()
                },
                None => Notify::default(),
            },
            gang: JobGang { transport: JobTransport::Tcp, deadline_s, ..JobGang::default() },
            recover: Recover { max_restarts: 7, min_workers: 2, copies: JobCopies::EveryStep },
        };
        match embed {
            Some((batch, part)) => {
                let store = Location::new("az://container/vectors");
                embedding(job, Embed { model: "efficientnet-lite0".to_owned().into(), batch, device: JobDevice::Cuda(Some(1)), precision: if part > 500 { JobPrecision::Fixed16 } else { JobPrecision::F32 }, part, store, normalise })
            }
            None => job,
        }
    }
}

proptest! {
    #[test]
    fn a_job_survives_toml_and_json_to_the_bit(job in job()) {
        let text = job.to_toml();
        let again = Job::parse(Path::new("/elsewhere/job.toml"), &text, &[], None);
        let again = again.map_err(|error| TestCaseError::fail(format!("{error}\n{text}")))?;
        prop_assert_eq!(&again, &job);
        let json = serde_json::to_string(&job).expect("JSON");
        let again: Job = serde_json::from_str(&json).expect("JSON");
        prop_assert_eq!(&again, &job);
    }
}
