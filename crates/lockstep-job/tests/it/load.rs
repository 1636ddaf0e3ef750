//! From a file on disk, and what the command line says, to a job.

use lockstep_job::{
    Bytes, Data, DataRef, Every, Job, JobAugment, JobCheckpoint, JobColumns, JobCopies,
    JobDecision, JobDevice, JobError, JobNetwork, JobOptimizer, JobPrecision, JobSchedule,
    JobTransport, Location, NetworkJob, NetworkTraining, Override, Recover, Split, Storage, Train,
    Validation, Workers, template,
};
use std::fs;
use std::path::{Path, PathBuf};

const MINIMAL: &str = r#"name = "x"
[data]
train = "fashion-mnist:train"
[model]
kind = "mlp"
hidden = [8]
[train]
epochs = 1
batch = 32
optimizer = { kind = "sgd" }
"#;

fn try_parse(text: &str, sets: &[&str], workers: Option<usize>) -> Result<Job, JobError> {
    let overrides: Vec<Override> = sets
        .iter()
        .map(|set| set.parse().expect("an override"))
        .collect();
    Job::parse(Path::new("/jobs/job.toml"), text, &overrides, workers)
}

fn parse(text: &str, sets: &[&str], workers: Option<usize>) -> Job {
    try_parse(text, sets, workers).unwrap_or_else(|error| panic!("{error}"))
}

/// What of a job is the network's own.
fn own(job: &Job) -> &NetworkJob {
    job.network(Path::new("job.toml")).expect("a network")
}

fn data(job: &Job) -> &Data {
    job.data.as_ref().expect("a network has data")
}

fn refusal(text: &str, sets: &[&str]) -> String {
    try_parse(text, sets, None)
        .expect_err("a mistake")
        .to_string()
}

#[test]
fn a_job_file_that_says_little_gets_the_documented_defaults() {
    let job = parse(MINIMAL, &[], None);
    assert_eq!(
        own(&job).train,
        Train {
            learner: NetworkTraining {
                epochs: 1,
                batch: 32,
                loss: None,
                label_smoothing: 0.0,
                class_weights: None,
                decision: JobDecision::default(),
                huber_delta: None,
                quantile_alpha: None,
                focal_gamma: None,
                optimizer: JobOptimizer::Sgd {
                    lr: 1e-3,
                    momentum: 0.0,
                    nesterov: false,
                    weight_decay: 0.0
                },
                schedule: JobSchedule::Constant { warmup_steps: 0 },
                freeze: Vec::new(),
                rates: Default::default(),
                clip_norm: None,
                average: None,
                precision: JobPrecision::F32,
                patience: None,
                min_change: None,
                onnx: false,
            },
            workers: Workers::exactly(1),
            lanes: 1,
            threads: None,
            device: JobDevice::Auto,
            gpu_data: Bytes(8 << 30),
            seed: 0,
        }
    );
    assert_eq!(data(&job).validation, Validation::Split(0.0));
    assert_eq!((&data(&job).test, &data(&job).normalise), (&None, &None));
    assert_eq!(data(&job).augment, None);
    let augment = |text: &str| data(&parse(MINIMAL, &[text], None)).augment.clone();
    let flip = JobAugment {
        flip: true,
        ..JobAugment::default()
    };
    assert_eq!(augment("data.augment.flip=true"), Some(flip));
    assert_eq!(augment("data.augment={}"), Some(JobAugment::default()));
    assert_eq!(job.run.store, Location::new("/jobs/runs"));
    assert_eq!(
        own(&job).checkpoint,
        JobCheckpoint {
            every: Every::Epochs(1),
            keep: 3,
            best: "loss".into()
        }
    );
    assert_eq!(
        job.recover,
        Recover {
            max_restarts: 3,
            min_workers: 1,
            copies: JobCopies::Auto
        }
    );
    assert_eq!(
        (job.gang.transport, job.gang.deadline_s),
        (JobTransport::Auto, 30.0)
    );
    let adam = |kind| parse(MINIMAL, &[&format!("train.optimizer.kind={kind}")], None);
    let (lr, betas, eps) = (1e-3, [0.9, 0.999], 1e-8);
    assert_eq!(
        own(&adam("adam")).train.learner.optimizer,
        JobOptimizer::Adam {
            lr,
            betas,
            eps,
            weight_decay: 0.0
        }
    );
    assert_eq!(
        own(&adam("adamw")).train.learner.optimizer,
        JobOptimizer::AdamW {
            lr,
            betas,
            eps,
            weight_decay: 0.01
        }
    );
}

#[test]
fn the_template_loads_and_shows_the_defaults() {
    let shown = parse(&template("x"), &[], None);
    let sets = [
        "train.epochs=10",
        "model.hidden=[512, 512]",
        "data.test=fashion-mnist:test",
        "data.normalise={ mean = [0.28604], std = [0.32025] }",
        // More than the default, so that the first `--workers 2` just works.
        "train.lanes=2",
    ];
    assert_eq!(shown, parse(MINIMAL, &sets, None));
    let template = template("x");
    for (key, _) in shown.rows() {
        let key = key.rsplit('.').next().expect("a key");
        assert!(
            template.contains(&format!("{key} = ")),
            "{key} is not in the template"
        );
    }
}

#[test]
fn the_example_loads_and_is_the_tutorials_network() {
    let path = Path::new(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/fashion-mnist.toml"
    ));
    let job = Job::load(path, &[], None).unwrap_or_else(|error| panic!("{error}"));
    let hidden = vec![512, 512];
    assert_eq!(
        own(&job).model.network,
        JobNetwork::Mlp {
            hidden,
            dropout: 0.25,
            batch_norm: false
        }
    );
    assert_eq!(
        (
            own(&job).train.learner.epochs,
            own(&job).train.learner.batch
        ),
        (10, 32)
    );
    assert_eq!((own(&job).train.workers.max, own(&job).train.lanes), (2, 2));
    let store = job.run.store.as_str();
    assert!(store.starts_with("/") && store.ends_with("examples/runs"));
}

#[test]
fn every_example_loads() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples"));
    let files = fs::read_dir(folder).expect("the examples");
    let paths = files.map(|file| file.expect("a file").path());
    let jobs: Vec<PathBuf> = paths
        .filter(|path| path.extension() == Some("toml".as_ref()))
        .collect();
    assert!(jobs.len() >= 5, "{jobs:?}");
    for path in jobs {
        let job = Job::load(&path, &[], None).unwrap_or_else(|error| panic!("{error}"));
        let name = path.file_stem().expect("a name").to_string_lossy();
        assert_eq!(job.name, name, "a job is named after its file");
    }
}

#[test]
fn the_number_of_workers_never_changes_the_lanes() {
    let file = format!("{MINIMAL}workers = 4\n");
    let counts = |sets: &[&str], flag| {
        let job = parse(&file, sets, flag);
        (job.workers().max, job.lanes())
    };
    assert_eq!(counts(&[], None), (4, 4));
    assert_eq!(counts(&[], Some(2)), (2, 4));
    assert_eq!(counts(&["train.workers=3"], None), (3, 4));
    assert_eq!(
        counts(&["train.workers={ min = 1, max = 3 }"], None),
        (3, 4)
    );
    assert_eq!(counts(&["train.workers=3"], Some(1)), (1, 4));
    assert_eq!(counts(&["train.lanes=6"], Some(5)), (5, 6));
    let error = Job::parse(Path::new("job.toml"), &file, &[], Some(5)).expect_err("5 > 4");
    let shown = error.to_string();
    assert!(shown.contains("| --workers 5\n"), "{shown}");
    // What lanes are, and both lines that would make it work.
    for words in [
        "is 5, but a batch has 4 lanes",
        "a lane is a part of every batch",
        "add `lanes = 5` to [train], or `--set train.lanes=5` to the command",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

#[test]
fn an_optimizer_and_a_schedule_may_be_their_kind_alone() {
    let with = |optimizer: &str, schedule: &str| {
        let line = "optimizer = { kind = \"sgd\" }";
        assert!(MINIMAL.contains(line), "{MINIMAL}");
        MINIMAL.replace(
            line,
            &format!("optimizer = {optimizer}\nschedule = {schedule}"),
        )
    };
    let tables = with("{ kind = \"adamw\" }", "{ kind = \"cosine\" }");
    let words = with("\"adamw\"", "\"cosine\"");
    let shown = |text: &str, sets: &[&str]| parse(text, sets, None).to_toml();
    assert_eq!(shown(&words, &[]), shown(&tables, &[]));
    // A change of one key goes into the table that the word stands for.
    let change = ["train.optimizer.lr=0.5"];
    assert_eq!(shown(&words, &change), shown(&tables, &change));
    // So does a word of the command line, and what follows it.
    let sets = ["train.optimizer=adamw", "train.optimizer.lr=0.25"];
    let table = ["train.optimizer={ kind = 'adamw', lr = 0.25 }"];
    assert_eq!(shown(MINIMAL, &sets), shown(MINIMAL, &table));
}

#[test]
fn later_overrides_win_and_flags_are_shown_as_flags() {
    let job = parse(
        MINIMAL,
        &["train.epochs=2", "train.epochs=3", "name=abc"],
        None,
    );
    assert_eq!(
        (own(&job).train.learner.epochs, job.name.as_str()),
        (3, "abc")
    );
    let flags = [
        Override::integer("--epochs", "train.epochs", 7),
        Override::text("--name", "name", "2024"),
    ];
    let job = Job::parse(Path::new("job.toml"), MINIMAL, &flags, None).expect("good flags");
    assert_eq!(
        (own(&job).train.learner.epochs, job.name.as_str()),
        (7, "2024")
    );
    let flags = [Override::integer("--epochs", "train.epochs", 0)];
    let error = Job::parse(Path::new("job.toml"), MINIMAL, &flags, None).expect_err("no epochs");
    assert!(
        error
            .to_string()
            .contains("| --epochs 0\n  |          ^ must"),
        "{error}"
    );
}

#[test]
fn relative_paths_are_taken_from_the_jobs_folder_and_known_names_are_not_paths() {
    let sets = [
        "data.train=mnist/train-images-idx3-ubyte.gz",
        "data.val={ images = \"a:b\", labels = \"/l\" }",
        "data.test=./a:b",
        "run.store=../out",
    ];
    let job = parse(MINIMAL, &sets, None);
    let idx = |images: &str, labels: Option<&str>| DataRef::Idx {
        images: images.into(),
        labels: labels.map(PathBuf::from),
    };
    assert_eq!(
        data(&job).train,
        idx("/jobs/mnist/train-images-idx3-ubyte.gz", None)
    );
    assert_eq!(
        data(&job).validation,
        Validation::Set(idx("/jobs/a:b", Some("/l")))
    );
    assert_eq!(data(&job).test, Some(idx("/jobs/a:b", None)));
    assert_eq!(job.run.store, Location::new("/jobs/../out"));
    let sets = [
        "data.train={ cifar = \"batches\", split = \"train\" }",
        "data.test={ cifar = [\"a.bin\", \"/b.bin\"] }",
    ];
    let job = parse(MINIMAL, &sets, None);
    let (folder, split) = ("/jobs/batches".into(), Split::Train);
    assert_eq!(data(&job).train, DataRef::CifarFolder { folder, split });
    let files = vec!["/jobs/a.bin".into(), "/b.bin".into()];
    assert_eq!(data(&job).test, Some(DataRef::CifarFiles { files }));
    let sets = [
        "data.train=photos/",
        "data.val=s3://bucket/val",
        "data.test=a/rows.parquet",
    ];
    let job = parse(MINIMAL, &sets, None);
    let pictures = |folder: &str| DataRef::Pictures {
        folder: Location::new(folder),
    };
    assert_eq!(data(&job).train, pictures("/jobs/photos"));
    assert_eq!(
        data(&job).validation,
        Validation::Set(pictures("s3://bucket/val"))
    );
    let files = Location::new("/jobs/a/rows.parquet");
    let columns = JobColumns::default();
    assert_eq!(data(&job).test, Some(DataRef::Parquet { files, columns }));
    let known = data(&parse(MINIMAL, &[], None)).train.clone();
    let (name, split) = ("fashion-mnist".into(), "train".into());
    assert_eq!(known, DataRef::Known { name, split });
}

#[test]
fn what_is_embedded_is_pictures_and_nothing_else() {
    let embed = "embed={ model = \"clip\", store = \"s3://b/vectors\" }";
    let job = parse(MINIMAL, &["data.train=photos", embed], None);
    let folder = Location::new("/jobs/photos");
    assert_eq!(data(&job).train, DataRef::Pictures { folder });
    let embed_section = job.embed().unwrap();
    assert_eq!((embed_section.batch, embed_section.part), (16, 512));
    assert_eq!(embed_section.model.to_string(), "/jobs/clip");
    let refused = |sets: &[&str]| refusal(MINIMAL, sets);
    let known = refused(&[embed]);
    assert!(
        known.contains("`data.train` must be a folder of pictures"),
        "{known}"
    );
    let scheme = refused(&["data.train=s4://photos"]);
    assert!(
        scheme.contains("`s4://`") && scheme.contains("s3"),
        "{scheme}"
    );
    let scale = refused(&["data.train=photos", embed, "data.normalise=clip"]);
    assert!(scale.contains("[embed]"), "{scale}");
    let store = refused(&["data.train=photos", "embed.model=clip"]);
    assert!(store.contains("missing key `store` in [embed]"), "{store}");
    let memory = refused(&["data.memory=lots"]);
    assert!(memory.contains("512 MiB"), "{memory}");
}

#[test]
fn a_scale_has_a_name_or_numbers() {
    let job = parse(MINIMAL, &["data.normalise=imagenet"], None);
    assert_eq!(
        data(&job).normalise.as_ref().unwrap().mean,
        [0.485, 0.456, 0.406]
    );
}

#[test]
fn a_cnn_gets_the_exercises_defaults_and_shows_them() {
    let rows = |sets: &[&str]| {
        let job = parse(MINIMAL, sets, None);
        let rows = job.rows().into_iter();
        let rows = rows.filter(|(key, _)| key.starts_with("model."));
        rows.map(|(key, value)| format!("{key}: {value}"))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        rows(&["model={ kind = \"cnn\" }"]),
        [
            "model.kind: cnn",
            "model.channels: [32, 64, 128]",
            "model.dropout: [0.2, 0.3, 0.4]",
            "model.dense: 128",
            "model.dense_dropout: 0.5",
        ]
    );
    let deeper = rows(&["model={ kind = \"cnn\", channels = [1, 2, 3, 4, 5] }"]);
    assert_eq!(deeper[2], "model.dropout: [0.2, 0.3, 0.4, 0.5, 0.5]");
    assert_eq!(
        rows(&["model={ kind = \"resnet18\", weights = \"r.safetensors\" }"]),
        [
            "model.kind: resnet18",
            "model.small_stem: false",
            "model.weights: /jobs/r.safetensors",
        ]
    );
}

#[test]
fn layers_of_a_stack_get_pytorchs_defaults() {
    let stack = "model={ layers = [{ kind = \"conv2d\", out = 8, kernel = 3 }, \
         { kind = \"max-pool\", kernel = [2, 3] }, { kind = \"avg-pool\", kernel = 3, padding = 1 }, \
         { kind = \"residual\", body = [{ kind = \"batch-norm\" }] }, { kind = \"linear\" }] }";
    let same = stack.replace(
        "kernel = 3 }",
        "kernel = [3, 5], padding = \"same\", groups = 4 }",
    );
    let shown = parse(MINIMAL, &[&same], None).rows().remove(6).1;
    assert!(shown.contains("padding = [1, 2], groups = 4,"), "{shown}");
    let job = parse(MINIMAL, &[stack], None);
    assert!(
        own(&job).model.network.uses_batch_norm(),
        "inside the residual"
    );
    let shown: Vec<String> = job.rows().into_iter().map(|(_, value)| value).collect();
    assert_eq!(
        shown[6..11],
        [
            "{ kind = \"conv2d\", out = 8, kernel = 3, stride = 1, padding = 0, bias = true }",
            "{ kind = \"max-pool\", kernel = [2, 3], stride = [2, 3], padding = 0 }",
            "{ kind = \"avg-pool\", kernel = 3, stride = 3, padding = 1 }",
            "{ kind = \"residual\", body = [{ kind = \"batch-norm\" }], shortcut = [] }",
            "{ kind = \"linear\" }",
        ]
    );
}

#[test]
fn rows_are_in_the_files_order_with_paths_that_can_be_set() {
    let stack = "model={ layers = [{ kind = \"relu\" }, { kind = \"linear\", out = 2 }] }";
    let test = "data.test={ cifar = \"/c\", split = \"test\" }";
    let sets = [stack, test, "data.augment={ crop_padding = 4 }"];
    let rows = parse(MINIMAL, &sets, None).rows();
    let shown: Vec<String> = rows.iter().map(|(k, v)| format!("{k}: {v}")).collect();
    let expected = [
        "name: x",
        "data.train: fashion-mnist:train",
        "data.val_split: 0.0",
        "data.test.cifar: /c",
        "data.test.split: test",
        "data.augment.crop_padding: 4",
        "data.augment.flip: false",
        "data.max_bad: 0.01",
        "data.memory: 1 GiB",
        "model.kind: stack",
        "model.layers[0]: { kind = \"relu\" }",
        "model.layers[1]: { kind = \"linear\", out = 2 }",
        "train.epochs: 1",
        "train.batch: 32",
        "train.optimizer.kind: sgd",
        "train.optimizer.lr: 0.001",
        "train.optimizer.momentum: 0.0",
        "train.optimizer.nesterov: false",
        "train.optimizer.weight_decay: 0.0",
        "train.schedule.kind: constant",
        "train.schedule.warmup_steps: 0",
        "train.onnx: false",
        "train.workers: 1",
        "train.lanes: 1",
        "train.device: auto",
        "train.gpu_data: 8 GiB",
        "train.seed: 0",
        "run.store: /jobs/runs",
        "checkpoint.every: 1 epoch",
        "checkpoint.keep: 3",
        "checkpoint.best: loss",
        "gang.transport: auto",
        "gang.encrypt: true",
        "gang.deadline_s: 30.0",
        "gang.start_deadline_s: 30.0",
        "gang.lease_s: 15.0",
        "recover.max_restarts: 3",
        "recover.min_workers: 1",
        "recover.copies: auto",
    ];
    assert_eq!(shown, expected);
}

fn load_bytes(bytes: &[u8]) -> Result<Job, JobError> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("job.toml");
    fs::write(&path, bytes).expect("a temporary file");
    Job::load(&path, &[], None)
}

#[test]
fn a_missing_file_is_named_with_what_to_do() {
    let error = Job::load(Path::new("/nowhere/job.toml"), &[], None).expect_err("no file");
    assert!(matches!(error, JobError::Missing { .. }));
    let shown = error.to_string();
    assert!(
        shown.contains("/nowhere/job.toml") && shown.contains("lockstep init"),
        "{shown}"
    );
    let folder = tempfile::tempdir().expect("a temporary folder");
    let error = Job::load(folder.path(), &[], None).expect_err("a folder");
    assert!(matches!(error, JobError::NotAFile { .. }), "{error}");
}

#[test]
fn windows_line_ends_and_a_byte_order_mark_change_nothing() {
    let crlf = MINIMAL.replace('\n', "\r\n");
    let marked = format!("\u{feff}{crlf}");
    let name = load_bytes(marked.as_bytes()).map(|job| job.name);
    assert_eq!(name.unwrap_or_else(|error| panic!("{error}")), "x");
    let bad = marked
        .replace("name = ", "nam = ")
        .replace("epochs = 1", "epochs = 0");
    let error = load_bytes(bad.as_bytes()).expect_err("two mistakes");
    let positions: Vec<_> = error.diagnostics().iter().map(|d| d.position()).collect();
    assert_eq!(positions, [Some((8, 10)), Some((1, 1))]);
    assert!(!error.to_string().contains(['\r', '\u{feff}']));
}

#[test]
fn a_file_that_is_not_utf8_is_refused_with_the_place() {
    let mut bytes = MINIMAL.as_bytes().to_vec();
    bytes[17] = 0xe9;
    let shown = load_bytes(&bytes).expect_err("latin-1").to_string();
    assert!(shown.contains("not UTF-8: found the byte 0xe9"), "{shown}");
    assert!(shown.contains("job.toml:2:7\n"), "{shown}");
    let shown = load_bytes(&[0xff, 0xfe, b'n', 0])
        .expect_err("UTF-16")
        .to_string();
    assert!(shown.contains("UTF-16"), "{shown}");
}

#[test]
fn how_a_bucket_is_reached_can_be_said_without_a_job_file() {
    let storage = |sets: &[&str]| {
        let overrides: Vec<Override> = sets.iter().map(|set| set.parse().unwrap()).collect();
        Storage::of_overrides(&overrides)
    };
    assert_eq!(storage(&["train.epochs=3"]).unwrap(), Storage::default());
    let found = storage(&["storage.endpoint=http://127.0.0.1:9", "storage.retries=2"]).unwrap();
    assert_eq!(found.endpoint.as_deref(), Some("http://127.0.0.1:9"));
    assert_eq!((found.retries, found.anonymous), (2, false));
    let error = storage(&["storage.endpont=x"]).unwrap_err().to_string();
    assert!(
        error.contains("endpont") && error.contains("endpoint"),
        "{error}"
    );
}

#[test]
fn a_network_needs_no_settings() {
    let least =
        "name = 'x'\n[data]\ntrain = 'fashion-mnist:train'\n[model]\nkind = 'mlp'\n[train]\n";
    let same = "name = 'x'\n[data]\ntrain = 'fashion-mnist:train'\n[model]\nkind = 'mlp'\nhidden = [128]\n\
                [train]\nepochs = 100\nbatch = 32\noptimizer = 'adamw'\n";
    assert_eq!(parse(least, &[], None), parse(same, &[], None));
    assert_eq!(parse(least, &["train.lanes=4"], Some(2)).workers().max, 2);
}
