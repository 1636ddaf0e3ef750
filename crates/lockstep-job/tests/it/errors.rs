//! What a user sees when a job is wrong: the place, the offending text, and what would be right.

use lockstep_job::{Job, JobError, Override};
use std::path::Path;

/// A job file with nothing but what it needs; tests change a line of it.
const GOOD: &str = r#"name = "digits"
[data]
train = "fashion-mnist:train"
[model]
kind = "mlp"
hidden = [512, 512]
[train]
epochs = 10
batch = 32
optimizer = { kind = "sgd", lr = 1e-3 }
"#;

fn parse(text: &str, sets: &[&str], workers: Option<usize>) -> Result<Job, JobError> {
    let overrides = sets.iter().map(|set| set.parse());
    let overrides: Vec<Override> = overrides.collect::<Result<_, _>>()?;
    Job::parse(Path::new("job.toml"), text, &overrides, workers)
}

/// The errors of [`GOOD`] with one line exchanged.
fn refusal(right: &str, wrong: &str) -> String {
    let text = GOOD.replace(right, wrong);
    assert_ne!(text, GOOD, "{right:?} is not in the good job");
    match parse(&text, &[], None) {
        Ok(_) => panic!("this was accepted: {wrong}"),
        Err(error) => error.to_string(),
    }
}

fn set_refusal(sets: &[&str]) -> String {
    match parse(GOOD, sets, None) {
        Ok(_) => panic!("this was accepted: {sets:?}"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn an_unknown_key_is_shown_with_the_nearest_right_one() {
    assert_eq!(
        refusal("epochs = 10", "epoch = 10"),
        "unknown key `epoch` in [train]\n \
         --> job.toml:8:1\n  \
           |\n\
         8 | epoch = 10\n  \
           | ^^^^^ did you mean `epochs`?"
    );
}

#[test]
fn an_override_is_shown_as_it_was_typed() {
    assert_eq!(
        set_refusal(&["train.epochs=abc"]),
        "`train.epochs` must be an integer, found a string\n \
         --> command line\n  \
           |\n  \
           | --set train.epochs=abc\n  \
           |                    ^^^ expected an integer"
    );
}

/// What is exchanged in the good job, the place of the mistake, the message and the remedy.
type Case = (
    &'static str,
    &'static str,
    &'static str,
    &'static str,
    &'static str,
);

#[test]
fn every_mistake_is_named_at_its_place_with_what_would_be_right() {
    let model = "kind = \"mlp\"\nhidden = [512, 512]";
    let optimizer = "optimizer = { kind = \"sgd\", lr = 1e-3 }";
    let train = "\"fashion-mnist:train\"";
    #[rustfmt::skip]
    let cases: &[Case] = &[
        // Syntax.
        ("epochs = 10", "epochs = ", "8:10", "not valid TOML", ""),
        ("epochs = 10", "epochs = 10\nepochs = 11", "9:1", "duplicate key", "given above"),
        ("[train]", "[train", "7:7", "unclosed table", "expected `]`"),
        // Keys.
        ("epochs = 10", "epochs = 10\ncolour = 3", "9:1", "unknown key `colour`", "use one of `epochs`, `batch`"),
        ("[train]", "[trian]", "7:2", "unknown key `trian` in the job file", "`train`"),
        (model, "knd = \"mlp\"", "5:1", "unknown key `knd` in [model]", "`kind`"),
        (model, "", "4:1", "missing key `kind`", "`layers`"),
        // Types.
        ("epochs = 10", "epochs = \"ten\"", "8:10", "must be an integer, found a string", ""),
        ("epochs = 10", "epochs = 10.0", "8:10", "must be an integer, found a float", ""),
        ("epochs = 10", "epochs = 1979-05-27", "8:10", "found a date", ""),
        ("hidden = [512, 512]", "hidden = 512", "6:10", "must be an array", ""),
        ("hidden = [512, 512]", "hidden = [512, true]", "6:16", "`model.hidden[1]` must be an integer", ""),
        (optimizer, "optimizer = 3", "10:13", "must be a table, found an integer", ""),
        ("batch = 32", "batch = 32\ndropout = true", "10:1", "unknown key `dropout`", ""),
        ("[model]", "[model]\nbatch_norm = 1", "5:14", "must be true or false", ""),
        // The name.
        ("\"digits\"", "\"\"", "1:8", "`name` cannot be \"\"", "letters, digits"),
        ("\"digits\"", "\"a/b\"", "1:8", "`name`", ""),
        ("\"digits\"", "\"..\"", "1:8", "`name`", "begin with"),
        ("\"digits\"", "\"a\\u001b\"", "1:8", "`name`", ""),
        // Metrics of one's own.
        ("[train]", "[metrics]\ncost = \"mean(labl == predicted)\"\n[train]", "8:8", "`metrics.cost` is no formula, at `labl`", "did you mean `label`?"),
        ("[train]", "[metrics]\ncost = \"label == predicted\"\n[train]", "8:8", "`metrics.cost` is no formula", "mean(...)"),
        ("[train]", "[metrics]\naccuracy = \"mean(label == predicted)\"\n[train]", "8:12", "`metrics.accuracy` is measured in another way", "another name"),
        ("[train]", "[metrics]\n\"my cost\" = \"mean(label == predicted)\"\n[train]", "8:13", "cannot be a metric's name", "letters"),
        ("[train]", "[metrics]\ncost = { formula = \"mean(1)\" }\n[train]", "8:8", "missing key `best`", "lowest"),
        ("[train]", "[metrics]\ncost = \"sum(1)\"\n[checkpoint]\nbest = \"cost\"\n[train]", "10:8", "better high or low", "cost = { formula = \"sum(1)\", best = \"lowest\" }"),
        ("[train]", "[checkpoint]\nbest = \"acuracy\"\n[train]", "8:8", "`checkpoint.best` cannot be \"acuracy\"", "`accuracy`"),
        // Data.
        (train, "\"fashon-mnist:train\"", "3:9", "unknown data set `fashon-mnist`", "`fashion-mnist`"),
        (train, "\"fashion-mnist:tran\"", "3:9", "unknown split `tran`", "`train`"),
        (train, "\"fashion-mnist\"", "3:9", "needs a split", "\"fashion-mnist:train\""),
        (train, "\"hdfs://host/x\"", "3:9", "`data.train` cannot be a `hdfs://` URL", "s3"),
        (train, "{ csv = \"a.csv\", delimiter = \"::\" }", "3:38", "one ASCII character", ""),
        (train, "{ parquet = \"a\", features = [] }", "3:37", "must not be empty", "column"),
        (train, "{ pictures = \"a\", label = \"b\" }", "3:27", "unknown key `label`", ""),
        ("[data]", "[storage]\nendpoint = \"host:9000\"\n[data]", "3:12", "must be a web address", ""),
        ("[data]", "[track]\nmlflow = \"sqlite:///mlflow.db\"\n[data]", "3:10", "must be a web address", "http://"),
        ("[data]", "[track]\nalias = \"champion\"\n[data]", "3:9", "is for a registered model", "register"),
        ("[data]", "[track]\nregister = \"team/digits\"\n[data]", "3:12", "cannot be", "none of them `/` or `:`"),
        ("[data]", "[track]\nregister = \"a\"\nalias = \"v1\"\n[data]", "4:9", "cannot be", "nor `v` and a number"),
        ("[data]", "[track]\ntensorboard = 3\n[data]", "3:15", "must be true or false", ""),
        ("[data]", "[notify]\nwebhook = \"host\"\n[data]", "3:11", "must be a web address or `env:NAME`", "env:"),
        ("[data]", "[notify]\nwhen = [\"loss = 3\"]\n[data]", "3:9", "`notify.when[0]` cannot be", "val.loss > 10"),
        ("[data]", "[notify]\non = [\"sucess\"]\n[data]", "3:7", "cannot be \"sucess\"", "success"),
        ("[data]", "[storage]\nexternal_id = \"x\"\n[data]", "3:15", "is for a role", ""),
        (train, "{ images = \"https://x/y\" }", "3:20", "`data.train.images` cannot be a `https://`", ""),
        (train, "\"~/x\"", "3:9", "`~`", "in full"),
        (train, "\"\"", "3:9", "must be a path", ""),
        (train, "{ image = \"x\" }", "3:11", "unknown key `image`", "`images`"),
        (train, "3", "3:9", "found an integer", ""),
        (train, "\"cifar-10\"", "3:9", "needs a split", "\"cifar-10:train\""),
        (train, "\"cifar-10:val\"", "3:9", "unknown split `val`", "`train`"),
        (train, "{ csv = \"a.csv\", target = \"b\" }", "3:26", "unknown key `target`", "here it is called `label`"),
        (train, "{ csv = \"a.csv\", types = \"categorical\" }", "3:34", "found a string", "types = { COLUMN = \"category\" }"),
        (train, "{ csv = \"a.csv\", types = { b = \"categorical\" } }", "3:40", "cannot be \"categorical\"", "`category`"),
        (train, "{ path = \"houses.csv\" }", "3:18", "`data.train.path` does not say what it holds", "write `csv = \"houses.csv\"`"),
        (train, "{ file = \"a.parquet\", label = \"b\" }", "3:18", "does not say what it holds", "write `parquet = \"a.parquet\"`"),
        (train, "{ path = \"photos\" }", "3:18", "does not say what it holds", "`pictures`"),
        ("[train]", "[training]", "7:2", "unknown key `training` in the job file", "here it is called `train`"),
        ("optimizer = { kind = \"sgd\", lr = 1e-3 }", "optimizer = \"adamm\"", "10:13", "cannot be \"adamm\"", "`adam`"),
        ("batch = 32", "batch = 32\nschedule = \"step\"", "10:12", "missing key `every_epochs`", "every_epochs = 10"),
        (train, "{ cifr = \"x\" }", "3:11", "unknown key `cifr`", "`cifar`"),
        (train, "{ cifar = \"x\" }", "3:9", "missing key `split` in `data.train`", "add `split = \"train\"`"),
        (train, "{ cifar = \"x\", split = \"val\" }", "3:32", "cannot be \"val\"", "`train`"),
        (train, "{ cifar = \"s3://x\", split = \"test\" }", "3:19", "`data.train.cifar` cannot be a `s3://`", ""),
        (train, "{ cifar = 3 }", "3:19", "must be the path of a folder or an array of files, found an integer", ""),
        (train, "{ cifar = [] }", "3:19", "must not be empty", "at least one"),
        (train, "{ cifar = [\"a\", 3] }", "3:25", "`data.train.cifar[1]` must be a string", ""),
        (train, "{ cifar = [\"a\"], split = \"test\" }", "3:34", "is for a folder", "leave it out"),
        (train, "{ cifar = \"x\", split = \"test\", labels = \"y\" }", "3:40", "unknown key `labels`", ""),
        ("[model]", "val_split = 1.0\n[model]", "4:13", "less than 1, found 1.0", ""),
        ("[model]", "val_split = 0.5\nval = \"a/b\"\n[model]", "4:13", "together with `data.val`", ""),
        ("[model]", "normalise = { mean = [1], std = [0.0] }\n[model]", "4:34", "other than 0", ""),
        ("[model]", "normalise = { mean = [1], std = [1, 2] }\n[model]", "4:33", "as long as `mean` (1), found 2", ""),
        ("[model]", "normalise = { mean = [inf], std = [1] }\n[model]", "4:23", "finite", ""),
        ("[model]", "normalise = { mean = [], std = [] }\n[model]", "4:22", "must not be empty", ""),
        ("[model]", "augment = { crop_padding = -1 }\n[model]", "4:28", "at least 0, found -1", ""),
        ("[model]", "augment = { crop_padding = 1.5 }\n[model]", "4:28", "must be an integer", ""),
        ("[model]", "augment = { crop_padding = 99999 }\n[model]", "4:28", "at most 65535", ""),
        ("[model]", "augment = { flip = 1 }\n[model]", "4:20", "must be true or false", ""),
        ("[model]", "augment = { flips = true }\n[model]", "4:13", "unknown key `flips` in `data.augment`", "`flip`"),
        ("[model]", "augment = true\n[model]", "4:11", "must be a table", ""),
        // The model.
        ("[512, 512]", "[]", "6:10", "must not be empty", ""),
        ("[512, 512]", "[0]", "6:11", "at least 1", ""),
        ("[512, 512]", "[99999999]", "6:11", "at most 16777216", ""),
        ("[model]", "[model]\ndropout = 1", "5:11", "less than 1", ""),
        ("[model]", "[model]\ndropout = -0.1", "5:11", "at least 0", ""),
        ("[model]", "[model]\ndropout = 0.9999999999", "5:11", "less than 1 as a 32-bit float", ""),
        ("\"mlp\"", "\"mpl\"", "5:8", "cannot be \"mpl\"", "`mlp`"),
        ("[model]", "[model]\nlayers = []", "5:1", "unknown key `layers` in [model] of kind `mlp`", ""),
        (model, "layers = []", "5:10", "must not be empty", ""),
        (model, "layers = [{ kind = \"relu\" }]", "5:11", "must be linear, since it is the last", "{ kind = \"linear\" }"),
        (model, "layers = [{ kind = \"linear\" }, { kind = \"linear\" }]", "5:11", "missing key `out`", "`out = 512`"),
        (model, "layers = [{ kind = \"dropuot\" }, { kind = \"linear\" }]", "5:20", "\"dropuot\"", "`dropout`"),
        (model, "layers = [{ kind = \"dropout\", p = 2 }, { kind = \"linear\" }]", "5:35", "less than 1", ""),
        (model, "layers = [\n  3,\n  { kind = \"linear\" }]", "6:3", "`model.layers[0]` must be a table", ""),
        (model, "kind = \"cnn\"\nhidden = [3]", "6:1", "unknown key `hidden` in [model] of kind `cnn`", "`channels`"),
        (model, "kind = \"cnn\"\nchannels = []", "6:12", "must not be empty", "[32, 64, 128]"),
        (model, "kind = \"cnn\"\nchannels = [65537]", "6:13", "at most 65536", ""),
        (model, "kind = \"cnn\"\ndropout = [0.1]", "6:11", "as long as `channels` (3), found 1", "a block"),
        (model, "kind = \"cnn\"\ndropout = 0.1", "6:11", "must be an array", ""),
        (model, "kind = \"cnn\"\ndense_dropuot = 0.1", "6:1", "unknown key `dense_dropuot`", "`dense_dropout`"),
        (model, "kind = \"resnet-18\"", "5:8", "cannot be \"resnet-18\"", "`resnet18`"),
        (model, "kind = \"resnet18\"\nsmall-stem = true", "6:1", "unknown key `small-stem`", "`small_stem`"),
        (model, "kind = \"resnet18\"\nsmall_stem = 1", "6:14", "must be true or false", ""),
        (model, "kind = \"resnet18\"\nweights = \"s3://b/w\"", "6:11", "`model.weights` cannot be a `s3://` URL", ""),
        (model, "kind = \"resnet18\"\nweight = \"w\"", "6:1", "unknown key `weight`", "`weights`"),
        (model, "layers = [{ kind = \"conv2d\", out = 8 }, { kind = \"linear\" }]", "5:11", "missing key `kernel` in `model.layers[0]` of kind `conv2d`", "`kernel = 3`"),
        (model, "layers = [{ kind = \"conv2d\", kernel = 3 }, { kind = \"linear\" }]", "5:11", "missing key `out`", "`out = 32`"),
        (model, "layers = [{ kind = \"conv\", kernel = 3 }, { kind = \"linear\" }]", "5:20", "cannot be \"conv\"", "`conv2d`"),
        (model, "layers = [{ kind = \"conv2d\", out = 8, kernel = 0 }, { kind = \"linear\" }]", "5:48", "`model.layers[0].kernel` must be at least 1", ""),
        (model, "layers = [{ kind = \"conv2d\", out = 8, kernel = [3, 0] }, { kind = \"linear\" }]", "5:52", "`model.layers[0].kernel[1]` must be at least 1", ""),
        (model, "layers = [{ kind = \"conv2d\", out = 8, kernel = [3] }, { kind = \"linear\" }]", "5:48", "one number or two, found 1", "[height, width]"),
        (model, "layers = [{ kind = \"conv2d\", out = 8, kernel = 3, stride = 0 }, { kind = \"linear\" }]", "5:60", "at least 1", ""),
        (model, "layers = [{ kind = \"conv2d\", out = 8, kernel = 3, dilation = 2 }, { kind = \"linear\" }]", "5:51", "unknown key `dilation`", "`stride`"),
        (model, "layers = [{ kind = \"max-pool\", kernel = 3, padding = 2 }, { kind = \"linear\" }]", "5:54", "at most half of the kernel", "smaller"),
        (model, "layers = [{ kind = \"avg-pool\", kernel = [4, 2], padding = [2, 2] }, { kind = \"linear\" }]", "5:59", "at most half of the kernel", ""),
        (model, "layers = [{ kind = \"gelu\", p = 1 }, { kind = \"linear\" }]", "5:28", "unknown key `p` in `model.layers[0]` of kind `gelu`", ""),
        (model, "layers = [{ kind = \"residual\" }, { kind = \"linear\" }]", "5:11", "missing key `body`", "`body = [...]`"),
        (model, "layers = [{ kind = \"residual\", body = [] }, { kind = \"linear\" }]", "5:39", "must not be empty", ""),
        (model, "layers = [{ kind = \"residual\", body = [{ kind = \"linear\" }] }, { kind = \"linear\" }]", "5:40", "missing key `out` in `model.layers[0].body[0]`", ""),
        (model, "layers = [{ kind = \"residual\", body = [{ kind = \"relu\" }], shortcut = [{ kind = \"relo\" }] }, { kind = \"linear\" }]", "5:81", "`model.layers[0].shortcut[0].kind` cannot be \"relo\"", "`relu`"),
        // Checkpoints.
        ("[model]", "[checkpoint]\nevery = \"500 stpes\"\n[model]", "5:9", "`checkpoint.every` cannot be \"500 stpes\"", "did you mean `500 steps`?"),
        ("[model]", "[checkpoint]\nevery = \"500\"\n[model]", "5:9", "cannot be \"500\"", "a number needs a unit"),
        ("[model]", "[checkpoint]\nevery = 500\n[model]", "5:9", "must be a string, found an integer", ""),
        ("[model]", "[checkpoint]\nevery = \"0 epochs\"\n[model]", "5:9", "cannot be \"0 epochs\"", "1 or more"),
        ("[model]", "[checkpoint]\nkeep = 0\n[model]", "5:8", "at least 1, found 0", ""),
        ("[model]", "[checkpoint]\nbest = \"acuracy\"\n[model]", "5:8", "cannot be \"acuracy\"", "`accuracy`"),
        ("[model]", "[checkpoints]\n[model]", "4:2", "unknown key `checkpoints`", "`checkpoint`"),
        ("[model]", "[checkpoint]\nevry = \"none\"\n[model]", "5:1", "unknown key `evry` in [checkpoint]", "`every`"),
        // Training.
        ("epochs = 10", "epochs = 0", "8:10", "at least 1, found 0", ""),
        ("epochs = 10", "epochs = 4294967296", "8:10", "at most 4294967295", ""),
        ("epochs = 10", "epochs = 999999999999999999999999999999999999999999", "8:10", "at most", ""),
        ("batch = 32", "batch = 0", "9:9", "at least 1", ""),
        ("batch = 32", "batch = 32\nlanes = 33", "9:9", "at least `train.lanes` (33), found 32", "every lane"),
        ("batch = 32", "batch = 32\nlanes = 2\nworkers = 4", "11:11", "is 4, but `train.lanes` is 2", "set to 4 or more"),
        ("batch = 32", "batch = 32\nworkers = 0", "10:11", "at least 1", ""),
        ("batch = 32", "batch = 32\nlanes = 0", "10:9", "at least 1", ""),
        ("batch = 32", "batch = 32\nthreads = 0", "10:11", "at least 1", ""),
        ("batch = 32", "batch = 32\ndevice = \"gpu\"", "10:10", "cannot be \"gpu\"", "\"cuda:1\" for the second GPU"),
        ("batch = 32", "batch = 32\nseed = -1", "10:8", "at least 0, found -1", ""),
        ("batch = 32", "batch = 32\nclip_norm = 0", "10:13", "greater than 0", ""),
        ("batch = 32", "batch = 32\nonnx = \"model.onnx\"", "10:8", "true or false", ""),
        ("lr = 1e-3", "lr = 0.0", "10:34", "greater than 0", ""),
        ("lr = 1e-3", "lr = nan", "10:34", "greater than 0, found NaN", ""),
        ("lr = 1e-3", "lr = 1e-60", "10:34", "as a 32-bit float, found 1e-60", ""),
        ("lr = 1e-3", "lr = 1e999", "10:34", "must be a finite number, found inf", ""),
        ("lr = 1e-3", "lr = -inf", "10:34", "greater than 0, found -inf", ""),
        ("lr = 1e-3", "lr = 1e300", "10:34", "at most 3.4028235e38, the limit of a 32-bit float, found 1e300", ""),
        ("lr = 1e-3", "momentum = 1.5", "10:40", "less than 1", ""),
        ("lr = 1e-3", "nesterov = true", "10:40", "needs momentum", ""),
        ("lr = 1e-3", "weight_decay = -1", "10:44", "0 or greater", ""),
        ("lr = 1e-3", "betas = [0.9, 0.9]", "10:29", "unknown key `betas` in `train.optimizer` of kind `sgd`", ""),
        ("\"sgd\", lr = 1e-3", "\"adam\", momentum = 0.9", "10:30", "of kind `adam`", "`weight_decay`"),
        ("\"sgd\", lr = 1e-3", "\"adam\", betas = [0.9, 1]", "10:44", "less than 1", ""),
        ("\"sgd\", lr = 1e-3", "\"adam\", betas = [0.9]", "10:38", "two numbers, found 1", ""),
        ("\"sgd\", lr = 1e-3", "\"adamw\", eps = 0", "10:37", "greater than 0", ""),
        ("\"sgd\"", "\"sdg\"", "10:22", "cannot be \"sdg\"", "`sgd`"),
        (optimizer, "[train.optimizer]\nkind = \"adam\"\nnesterov = true", "12:1", "unknown key `nesterov`", ""),
        ("batch = 32", "batch = 32\nschedule = { kind = \"step\", gamma = 0.1 }", "10:12", "missing key `every_epochs`", ""),
        ("batch = 32", "batch = 32\nschedule = { kind = \"constant\", gamma = 0.1 }", "10:33", "unknown key `gamma`", ""),
        ("batch = 32", "batch = 32\nschedule = { kind = \"cosine\", min_lr = 1 }", "10:40", "above the optimizer's lr", "at most 0.001"),
        ("batch = 32", "batch = 32\nschedule = { kind = \"cosine\", steps = 5, warmup_steps = 5 }", "10:39", "more than the 5 warm-up steps", ""),
        // Where and how.
        ("[data]", "[run]\nstore = \"ftp://b/p\"\n[data]", "3:9", "`run.store`", ""),
        ("[data]", "[run]\nkeep = 0\n[data]", "3:8", "`run.keep`", ""),
        ("[data]", "[run]\nkeep = { best = 3 }\n[data]", "3:8", "`best` and `by` together", "accuracy"),
        ("[data]", "[run]\nkeep = {}\n[data]", "3:8", "keeps nothing", "days"),
        ("[data]", "[run]\nregister = \"a/b\"\n[data]", "3:12", "`run.register`", "letters"),
        ("[data]", "[gang]\ntransport = \"udp\"\n[data]", "3:13", "cannot be \"udp\"", ""),
        ("[data]", "[recover]\nmin_workers = 0\n[data]", "3:15", "min_workers", ""),
        ("[data]", "[resources]\ncpus = 0\n[data]", "3:8", "greater than 0", ""),
        ("[data]", "[resources]\nmemory = \"4\"\n[data]", "3:10", "cannot be \"4\"", "2 GiB"),
        ("[data]", "[resources]\nplace = \"strict\"\n[data]", "3:9", "cannot be \"strict\"", "strict-spread"),
        ("[data]", "[resources]\nlabels = { zone = 1 }\n[data]", "3:19", "`resources.labels.zone`", ""),
        ("[data]", "[kube]\nimage = \"Team/x\"\n[data]", "3:9", "`kube.image` cannot be \"Team/x\"", "registry.example.com"),
        ("[data]", "[kube]\nengine = \"kubernetes\"\n[data]", "3:10", "cannot be \"kubernetes\"", "kube"),
        ("[data]", "[kube]\nnamespace = \"My_Team\"\n[data]", "3:13", "`kube.namespace`", "small letters"),
        ("[data]", "[kube]\ntolerations = [\"gpu:Never\"]\n[data]", "3:16", "`kube.tolerations[0]`", "NoSchedule"),
        ("[data]", "[kube]\nvolumes = { \"/data\" = \"disk\" }\n[data]", "3:23", "`kube.volumes./data`", "claim:"),
        ("[data]", "[kube]\nvolumes = { data = \"claim:d\" }\n[data]", "3:20", "absolute path", "/data"),
        ("[data]", "[kube]\nlabels = { \"lockstep.dev/run\" = \"x\" }\n[data]", "3:10", "set already", "pods by"),
        ("[data]", "[kube]\nkueue_queue = \"a\"\nvolcano_queue = \"b\"\n[data]", "4:17", "together with `kueue_queue`", "leave one out"),
        ("[data]", "[kube]\nray_version = \"2\"\n[data]", "3:15", "cannot be \"2\"", "2.60.0"),
        ("[data]", "[kube.patch.Pod.spec]\na = 1\n[data]", "2:13", "`kube.patch.Pod`", "RayJob"),
        (optimizer, "optimizer = { kind = \"sgd\" }\nmin_change = 0.1", "11:14", "`train.patience`, which is not set", "patience = 5"),
        (optimizer, "optimizer = { kind = \"sgd\" }\npatience = 0", "11:12", "at least 1", ""),
        (optimizer, "optimizer = { kind = \"sgd\" }\naverage = 0.0", "11:11", "greater than 0", "0.999"),
        (optimizer, "optimizer = { kind = \"sgd\" }\nlabel_smoothing = 1.0", "11:19", "less than 1", ""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nprecision = \"bf16\"", "11:13", "fixed16", ""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nclass_weights = \"even\"", "11:17", "cannot be \"even\"", "balanced"),
        (optimizer, "optimizer = { kind = \"sgd\" }\nclass_weights = 2", "11:17", "\"balanced\" or an array", "[1.0, 2.5]"),
        (optimizer, "optimizer = { kind = \"sgd\" }\nclass_weights = [1, 0]", "11:21", "greater than 0", ""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nhuber_delta = 1.0", "11:15", "is for the loss \"huber\"", "loss = \"huber\""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nloss = \"mae\"\nfocal_gamma = 1.0", "12:15", "is for the loss \"focal\"", "leave this out"),
        (optimizer, "optimizer = { kind = \"sgd\" }\nloss = \"quantile\"\nquantile_alpha = 0.0", "12:18", "greater than 0", "0.9"),
        (optimizer, "optimizer = { kind = \"sgd\" }\npositive = 0.5", "11:12", "the name of a class, found 0.5", "\"fraud\""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nthreshold = 0.0", "11:13", "greater than 0", "\"f1\""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nthreshold = 1", "11:13", "less than 1", ""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nthreshold = \"f2\"", "11:13", "cannot be \"f2\"", "f1"),
        (optimizer, "optimizer = { kind = \"lion\", betas = [0.9] }", "10:38", "two numbers", "[0.9, 0.999]"),
        (optimizer, "optimizer = { kind = \"sgd\" }\nschedule = { kind = \"plateau\", factor = 0 }", "11:41", "greater than 0", "0.1"),
        (optimizer, "optimizer = { kind = \"sgd\" }\nschedule = { kind = \"plateau\", min_lr = 1 }", "11:41", "above the optimizer's lr", ""),
        (optimizer, "optimizer = { kind = \"sgd\" }\nschedule = { kind = \"one-cycle\", pct_start = 2 }", "11:46", "at most 1", ""),
        (model, "layers = [{ kind = \"conv2d\", out = 2, kernel = 2, padding = \"same\" }, { kind = \"linear\" }]", "5:61", "with an even kernel", "odd"),
        (model, "layers = [{ kind = \"conv2d\", out = 2, kernel = 3, stride = 2, padding = \"same\" }, { kind = \"linear\" }]", "5:73", "with a stride", ""),
        (model, "layers = [{ kind = \"conv2d\", out = 2, kernel = 3, padding = \"valid\" }, { kind = \"linear\" }]", "5:61", "cannot be \"valid\"", "same"),
        (model, "layers = [{ kind = \"group-norm\" }, { kind = \"linear\" }]", "5:11", "missing key `groups`", "groups = 8"),
        (train, "\"fashion-mnist:train\"\naugment = { mixup = 0 }", "4:21", "at least 0.05", ""),
        (train, "\"fashion-mnist:train\"\naugment = { rotation = 200 }", "4:24", "at most 180", ""),
        (train, "\"fashion-mnist:train\"\naugment = { resized_crop = [0.5, 0.1] }", "4:28", "two shares", "[0.08, 1.0]"),
        (train, "\"fashion-mnist:train\"\nstratify = true", "4:12", "which are not set", "val_split = 0.1"),
        ("[data]", "[gang]\ndeadline_s = 0\n[data]", "3:14", "greater than 0", ""),
    ];
    for (right, wrong, place, message, label) in cases {
        let shown = refusal(right, wrong);
        let first = shown.split("\n\n").next().unwrap_or_default();
        let at = format!("--> job.toml:{place}\n");
        assert!(
            first.contains(&at),
            "{wrong} should be at {place}:\n{shown}"
        );
        assert!(
            first.contains(message),
            "{wrong} should say {message}:\n{shown}"
        );
        let mark = first.lines().last().unwrap_or_default();
        assert!(
            mark.contains('^') && mark.contains(label),
            "{wrong} should suggest {label}:\n{shown}"
        );
    }
}

#[test]
fn a_key_without_its_table_is_told_where_it_is_and_nothing_else_is_missed() {
    let shown = set_refusal(&["lr=3"]);
    assert!(shown.contains("--set lr=3\n"), "{shown}");
    assert!(
        shown.contains("it is the key `train.optimizer.lr`"),
        "{shown}"
    );
    // What is called otherwise is there.
    let shown = refusal("[train]", "[training]");
    assert!(!shown.contains("missing key"), "{shown}");
}

#[test]
fn an_override_that_does_not_fit_the_file_is_the_one_that_is_named() {
    let shown = set_refusal(&["train.lanes=1000"]);
    assert!(shown.contains("--set train.lanes=1000\n"), "{shown}");
    assert!(
        shown.contains("`train.lanes` must be at most `train.batch` (32), found 1000"),
        "{shown}"
    );
    let shown = set_refusal(&["train.lanes=20", "model.batch_norm=true"]);
    assert!(shown.contains("--set train.lanes=20\n"), "{shown}");
    assert!(shown.contains("must be at most 16"), "{shown}");
    let defaults = GOOD.replace("batch = 32", "lanes = 64");
    let shown = parse(&defaults, &[], None)
        .expect_err("32 < 64")
        .to_string();
    assert!(
        shown.contains("`train.lanes` must be at most `train.batch` (32), found 64"),
        "{shown}"
    );
    let both = set_refusal(&["train.batch=4", "train.lanes=8"]);
    assert!(both.contains("--set train.batch=4\n"), "{both}");
    let file = GOOD.replace("batch = 32", "batch = 32\nworkers = 4");
    let shown = parse(&file, &["train.lanes=2"], None)
        .expect_err("2 < 4")
        .to_string();
    assert!(
        shown.contains("`train.lanes` is 2, but `train.workers` is 4"),
        "{shown}"
    );
}

#[test]
fn what_is_not_a_regular_file_is_refused_without_waiting_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let fifo = folder.path().join("fifo");
    let made = std::process::Command::new("mkfifo").arg(&fifo).status();
    assert!(made.expect("mkfifo").success());
    for (path, kind) in [
        (fifo.as_path(), "is a FIFO, not a regular file"),
        (folder.path(), "is a folder, not a regular file"),
        (Path::new("/dev/null"), "is a device, not a regular file"),
    ] {
        let shown = Job::load(path, &[], None).expect_err(kind).to_string();
        assert!(shown.contains(kind), "{shown}");
        assert!(shown.contains(&format!("{path:?}")), "{shown}");
    }
}

#[test]
fn batch_norm_needs_two_samples_in_every_lane() {
    let sets = ["train.batch=6", "train.lanes=4", "model.batch_norm=true"];
    let shown = set_refusal(&sets);
    assert!(shown.contains("--set train.batch=6"), "{shown}");
    assert!(
        shown.contains("must be at least 8: two samples a lane"),
        "{shown}"
    );
    assert!(parse(GOOD, &sets[..2], None).is_ok());
    assert!(parse(GOOD, &["train.batch=8", sets[1], sets[2]], None).is_ok());
}

#[test]
fn an_override_goes_through_the_same_checks() {
    for (set, mark, message) in [
        (
            "train.epoch=3",
            "            ^^^^^ did you mean `epochs`?",
            "unknown key `epoch`",
        ),
        (
            "trian.epochs=3",
            "      ^^^^^ did you mean `train`?",
            "unknown key `trian`",
        ),
        (
            "model.hidden=[1, true]",
            "                       ^^^^ expected",
            "`model.hidden[1]`",
        ),
        (
            "train.epochs.x=3",
            "                   ^ set",
            "inside an integer",
        ),
        (
            "train=3",
            "            ^ expected a table",
            "`train` must be a table",
        ),
        (
            "train.schedule.gamma=3",
            "            ^^^^^^^^ add `kind",
            "missing key `kind`",
        ),
        (
            "data.val=ftp://x",
            "               ^^^^^^^ ",
            "`data.val` cannot be",
        ),
    ] {
        let shown = set_refusal(&[set]);
        assert!(shown.contains(&format!("| --set {set}\n")), "{shown}");
        assert!(shown.contains(&format!("| {mark}")), "{shown}");
        assert!(shown.contains(message), "{shown}");
    }
}

#[test]
fn all_mistakes_are_reported_in_one_go() {
    let text = GOOD
        .replace("epochs = 10", "epochs = 0\nclip_norm = -1")
        .replace("\"mlp\"", "\"mlp\"\ndropout = 2");
    let error = parse(&text, &["run.stroe=x"], None).expect_err("four mistakes");
    let positions: Vec<_> = error.diagnostics().iter().map(|d| d.position()).collect();
    assert_eq!(
        positions,
        [Some((6, 11)), Some((9, 10)), Some((10, 13)), None]
    );
    assert_eq!(error.to_string().matches("\n\nerror: ").count(), 3);
}

#[test]
fn an_empty_job_is_told_what_it_lacks() {
    let shown = parse("", &[], None).expect_err("empty").to_string();
    for key in ["name", "data", "model", "train"] {
        assert!(
            shown.contains(&format!("missing key `{key}` in the job file")),
            "{shown}"
        );
    }
}

mod never {
    use super::{GOOD, parse};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_damaged_job_panics(at in 0..GOOD.len(), cut in 0..9usize, put in ".{0,6}") {
            let end = (at + cut).min(GOOD.len());
            let text = format!("{}{put}{}", &GOOD[..at], &GOOD[end..]);
            if let Err(error) = parse(&text, &[], None) {
                prop_assert!(!error.to_string().is_empty());
            }
        }

        #[test]
        fn a_strange_override_panics(text in "(train|model|data)?[.a-z]{0,9}=?.{0,12}") {
            if let Err(error) = parse(GOOD, &[&text], Some(1)) {
                prop_assert!(!error.to_string().is_empty());
            }
        }
    }
}
