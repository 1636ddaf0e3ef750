//! Jobs that grow boosted trees with XGBoost.
//!
//! A job file whose `[model]` has `kind = "xgboost"` describes no network. Its other sections mean what they mean to
//! every job.

use crate::field::{Field, Rule};
use crate::file::job_file;
use crate::keys::{Any, By, FromField, Table, keys, words};
use crate::metrics::SaysBest;
use crate::section::Section;
use crate::train::{MAX_SEED, MAX_THREADS};
use crate::xgboost_names::{OBJECTIVES, key_of};
use crate::{
    ClassWeights, Data, Every, JobBest, JobCheckpoint, JobDecision, JobDevice, JobMetrics, Workers,
};
use lockstep_measure::Measure;
use std::collections::BTreeMap;

/// More rounds than anybody waits for.
const MAX_ROUNDS: u32 = 10_000_000;
/// Deeper trees have more leaves than there are rows.
const MAX_DEPTH: u32 = 64;
/// More bins than distinct values can be told apart by.
const MAX_BINS: usize = 65_536;

job_file! {
    /// Which trees to grow, from which table, on how many workers, and where the result goes.
    TreesFile "TreesJob" of TreesJob in Trees given () {
        /// What to learn from.
        data = need("add a [data] section with `train = \"...\"`")
            => Table(|section: &mut Section<'_>| Data::read_keys(section, false)), plain_data;
        own {
            /// The trees.
            model: TreesModel = need("add a [model] section with `kind = \"xgboost\"`")
                => Any, |field, ()| TreesModel::read(field.section()?);
            /// On how many workers they are grown.
            train: TreesTraining = default(TreesTraining::default())
                => Table(TreesTraining::read_keys);
            /// Metrics of your own, each a formula over labels and predictions.
            #[serde(default)]
            metrics: JobMetrics = hidden(JobMetrics::default()) => Any;
        }
        /// When the run's state is written. An epoch is a round.
        checkpoint: TreesCheckpoint, |field, checkpoint: TreesCheckpoint| checkpoint.checked(field, metrics.as_ref());
        gang = " How the workers talk to each other.";
    }
}

keys! {
    /// Boosted trees.
    pub struct TreesModel {
        /// What grows them.
        kind: TreesKind = need("add `kind = \"xgboost\"`") => Any;
        /// How many rounds; each adds a tree, or one for every class.
        rounds: u32 = default(100) => 1..=MAX_ROUNDS;
        /// How deep a tree may be; 0 means that only `max_leaves` ends it.
        depth: u32 = default(6) => 0..=MAX_DEPTH;
        /// By how much each tree counts.
        eta: f64 = default(0.3) => Rule::POSITIVE;
        /// What is minimised, by XGBoost's name for it, such as `"binary:logistic"`. If left out, it follows from the
        /// labels: two classes, several classes, or numbers.
        objective: Option<String> = optional => By(objective);
        /// Whether the model is the same to the byte on any number of workers. If not, everything is left to XGBoost's own
        /// objectives and sketches.
        exact: bool = default(true) => Any;
        /// XGBoost's own parameters, by its names.
        #[serde(flatten)]
        xgboost: XgboostParameters = flat(XgboostParameters::read_keys) => Any;
        /// Any other of XGBoost's parameters, by its names.
        parameters: BTreeMap<String, String> = default(BTreeMap::new()) => By(scalars);
    }
}

words! {
    /// What grows trees.
    pub enum TreesKind {
        /// XGBoost.
        "xgboost" Xgboost
    }
}

keys! {
    /// Parameters of XGBoost that many jobs set, by its own names.
    pub struct XgboostParameters: all default {
        /// The least gain for which a leaf is split.
        gamma: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// The least sum of second derivatives in a leaf.
        min_child_weight: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// The largest step of a leaf's value; 0 means any.
        max_delta_step: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// How much large values of leaves cost, by their squares.
        lambda: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// How much large values of leaves cost, by their sizes.
        alpha: Option<f64> = optional => Rule::NOT_NEGATIVE;
        /// The most leaves of a tree; 0 means any.
        max_leaves: Option<usize> = optional => 0..=MAX_BINS;
        /// Which leaf is split next: `"depthwise"` or `"lossguide"`.
        grow_policy: Option<GrowPolicy> = optional => Any;
        /// The most bins that a column is cut into.
        max_bin: Option<usize> = optional => 2..=MAX_BINS;
        /// The share of the rows that a tree is grown on.
        subsample: Option<f64> = optional => Rule::SOME_SHARE;
        /// The share of the columns that a tree is grown on.
        colsample_bytree: Option<f64> = optional => Rule::SOME_SHARE;
        /// How much a row of the positive class counts, where there are two: see `train.positive`.
        scale_pos_weight: Option<f64> = optional => Rule::POSITIVE;
        /// What is predicted without any tree: a probability, or a number. If left out, the mean of the training rows; 0.5
        /// for several classes, and 0 for rankings.
        base_score: Option<f64> = optional => Rule::FINITE;
        /// Which quantile is predicted with the objective `"reg:quantileerror"`, such as 0.9.
        quantile_alpha: Option<f64> = optional => Rule::SHARE;
        /// Whether the prediction may only rise (1) or fall (-1) with each number of a row, such as `"(1,0,-1)"`.
        monotone_constraints: Option<String> = optional => Any;
        /// Which numbers of a row may be used together, by their positions from 0 on, such as `"[[0,1],[2,3]]"`.
        interaction_constraints: Option<String> = optional => Any;
        /// Up to how many categories a column is split one against the others.
        max_cat_to_onehot: Option<usize> = optional => 1..=MAX_BINS;
    }
}

words! {
    /// Which leaf is split next.
    pub enum GrowPolicy {
        /// Those nearest to the root.
        "depthwise" Depthwise
        /// The one with the largest gain.
        "lossguide" Lossguide
    }
}

keys! {
    /// On how many workers trees are grown.
    pub struct TreesTraining: all default {
        /// Worker processes. Any number gives the same model. With `{ min = 2, max = 8 }` the run begins with two, takes
        /// in others when they come, and goes on when some leave.
        workers: Workers = default(Workers::exactly(1)) => Any;
        /// Threads of a worker. Any number gives the same model. If left out, the workers of a machine share the cores
        /// that the run may use.
        threads: Option<usize> = optional => 1..=MAX_THREADS;
        /// What trees are grown on: `"cpu"`, or `"cuda"` or `"cuda:1"` for a GPU, on which XGBoost may grow others. `"auto"` is
        /// the processor.
        device: JobDevice = default(JobDevice::Auto) => Any;
        /// Where all random numbers of the run come from.
        seed: u64 = default(0) => 0..=MAX_SEED;
        /// End after so many rounds without a better value of `checkpoint.best` on validation data, and keep the best
        /// round's trees. If left out, all rounds are trained.
        patience: Option<u32> = optional => 1..=MAX_ROUNDS;
        /// How much each class counts: `"balanced"`, as if all had as many training rows, or a number for each, in their
        /// order. For classes only.
        class_weights: Option<ClassWeights> = optional => Any;
        /// Which of two classes is looked for, and when it is predicted.
        #[serde(flatten)]
        decision: JobDecision = flat(JobDecision::read_keys) => Any;
    }
}

keys! {
    /// When a run's state is written, how many stay, and what the best round is.
    pub struct TreesCheckpoint: all default {
        /// How often: `"20 steps"`, `"10 s"`, `"5 min"`, or `"none"`. A step is a round; many take milliseconds.
        every: Every = default(Every::Seconds(10.0)) => Any;
        /// How many of the newest stay.
        keep: usize = default(3) => 1..=MAX_BINS;
        /// The measure on validation data by which the best round is chosen, or a metric of `[metrics]`.
        best: JobBest = default(JobBest::Measure(Measure::Loss)) => Any;
    }
}

impl From<&TreesCheckpoint> for JobCheckpoint {
    fn from(trees: &TreesCheckpoint) -> Self {
        Self {
            every: trees.every,
            keep: trees.keep,
            best: trees.best.clone(),
        }
    }
}

impl TreesModel {
    fn read(mut section: Section<'_>) -> Option<Self> {
        section.is_of_kind("xgboost");
        let model = TreesModel::read_keys(&mut section);
        section.finish();
        model
    }

    /// XGBoost's parameters that the job sets, by its names, those with keys of their own first.
    pub fn xgboost_parameters(&self) -> Vec<(String, String)> {
        let keys = serde_json::to_value(&self.xgboost).expect("parameters are plain data");
        let keys = keys.as_object().into_iter().flatten();
        let set = keys.filter(|(_, value)| !value.is_null());
        let set = set.map(|(name, value)| {
            let text = value.as_str().map(str::to_owned);
            (name.clone(), text.unwrap_or_else(|| value.to_string()))
        });
        let own = [
            ("max_depth".to_owned(), self.depth.to_string()),
            ("eta".to_owned(), self.eta.to_string()),
        ];
        let other = self.parameters.iter();
        let other = other.map(|(name, value)| (name.clone(), value.clone()));
        own.into_iter().chain(set).chain(other).collect()
    }
}

impl TreesFile {
    /// Reads the whole file; `workers` is what the command line says about them.
    pub(crate) fn read(mut root: Section<'_>, workers: Option<Field<'_>>) -> Option<Self> {
        let folder = root.folder();
        let file = TreesFile::read_keys(&mut root, folder);
        root.finish();
        let mut file = file?;
        if let Some(field) = workers {
            file.train.workers = Workers::from_field(&field)?;
        }
        Some(file)
    }
}

/// Trees look at the order of a column's values alone, and pictures are nothing that they could learn from.
fn plain_data(field: &Field<'_>, data: Data) -> Option<Option<Data>> {
    let given = [
        ("normalise", data.normalise.is_some()),
        ("standardise", data.standardise.is_some()),
        ("augment", data.augment.is_some()),
        ("transform", data.transform.is_some()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        None => Some(Some(data)),
        Some((key, _)) => field.reject(
            format!("has `{key}`, which is for networks"),
            format!("leave `{key}` out: trees take numbers as they are"),
        ),
    }
}

/// One of the objectives that there are.
fn objective(field: &Field<'_>) -> Option<String> {
    field.one_of(&OBJECTIVES).map(str::to_owned)
}

/// A table of words, numbers and truths, as the words that XGBoost takes. What has a key of its own is set there.
fn scalars(field: &Field<'_>) -> Option<BTreeMap<String, String>> {
    let fields = field.section_or("a table such as { max_cat_threshold = 32 }")?;
    let mut scalars = BTreeMap::new();
    for (name, field) in fields.into_fields() {
        if let Some((table, key)) = key_of(name) {
            return field.reject(
                "cannot be set here: it has a key of its own",
                format!("use `{table}.{key}`"),
            );
        }
        let fixed = match name {
            "booster" => "the trees are those of `gbtree`",
            "num_class" => "it follows from the labels",
            _ => "",
        };
        if !fixed.is_empty() {
            return field.reject("cannot be set", format!("leave it out: {fixed}"));
        }
        let value = match field.json()? {
            serde_json::Value::String(text) => text,
            value @ (serde_json::Value::Number(_) | serde_json::Value::Bool(_)) => {
                value.to_string()
            }
            other => {
                return field.reject(
                    format!("must be a text, a number or a truth, found {other}"),
                    "write lists as XGBoost does, in a text: \"(1,0,-1)\"",
                );
            }
        };
        scalars.insert(name.to_owned(), value);
    }
    Some(scalars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Job, LearnerJob};
    use std::path::Path;

    const JOB: &str = "name = 'x'\n[data]\ntrain = { csv = 'a.csv' }\n[model]\nkind = 'xgboost'\n";

    fn load(text: &str) -> Result<Job, String> {
        let path = Path::new("/jobs/job.toml");
        let job = Job::parse(path, text, &[], None).map_err(|error| error.to_string())?;
        match job.learner {
            LearnerJob::Trees(_) => Ok(job),
            other => Err(format!("{other:?}")),
        }
    }

    fn trees(job: &Job) -> &TreesJob {
        match &job.learner {
            LearnerJob::Trees(trees) => trees,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_job_of_trees_has_defaults_for_all_but_its_data() {
        let job = load(JOB).unwrap();
        let own = trees(&job);
        assert_eq!((own.model.rounds, own.model.depth), (100, 6));
        assert_eq!(own.train, TreesTraining::default());
        let again = load(&job.to_toml()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(again, job);
    }

    #[test]
    fn parameters_reach_xgboost_by_its_names() {
        let job = load(&format!(
            "{JOB}depth = 3\nlambda = 2.5\ngrow_policy = 'lossguide'\nparameters = {{ max_cat_threshold = 9, x = true }}\n"
        ));
        let job = job.unwrap_or_else(|error| panic!("{error}"));
        let parameters = trees(&job).model.xgboost_parameters();
        for (name, value) in [
            ("max_depth", "3"),
            ("eta", "0.3"),
            ("lambda", "2.5"),
            ("grow_policy", "lossguide"),
            ("max_cat_threshold", "9"),
            ("x", "true"),
        ] {
            assert!(
                parameters.contains(&(name.to_owned(), value.to_owned())),
                "{name}: {parameters:?}"
            );
        }
        assert_eq!(load(&job.to_toml()).unwrap(), job);
    }

    #[test]
    fn what_trees_have_no_use_for_is_refused_by_name() {
        for (added, word) in [
            ("hidden = [3]\n", "hidden"),
            ("gama = 3\n", "gamma"),
            ("subsample = 2\n", "subsample"),
            ("subsample = 0\n", "greater than 0 and at most 1"),
            ("colsample_bytree = 0.0\n", "greater than 0 and at most 1"),
            ("max_bin = 1\n", "must be at least 2, found 1"),
            (
                "objective = 'reg:squarederro'\n",
                "did you mean `reg:squarederror`?",
            ),
            ("parameters = { a = [1] }\n", "parameters.a"),
            ("parameters = { eta = 1 }\n", "use `model.eta`"),
            ("parameters = { reg_alpha = 1 }\n", "use `model.alpha`"),
            ("parameters = { nthread = 2 }\n", "use `train.threads`"),
            ("parameters = { booster = 'dart' }\n", "parameters.booster"),
            (
                "[train]\nepochs = 3\n",
                "here it is called `rounds`, in [model]",
            ),
            ("[train]\neta = 0.1\n", "it belongs to [model]"),
            ("parameters = { device = 'cuda' }\n", "use `train.device`"),
            (
                "[train]\ngpu_data = '1 GiB'\n",
                "leave it out: XGBoost brings rows to a GPU in its own way",
            ),
            (
                "[train]\nearly_stopping_rounds = 3\n",
                "here it is called `patience`",
            ),
            (
                "early_stopping_rounds = 3\n",
                "here it is called `patience`, in [train]",
            ),
            (
                "eval_metric = 'auc'\n",
                "here it is called `best`, in [checkpoint]",
            ),
            ("learning_rate = 0.1\n", "here it is called `eta`"),
            ("n_estimators = 9\n", "here it is called `rounds`"),
            ("min_split_loss = 1\n", "here it is called `gamma`"),
            ("reg_lambda = 1\n", "here it is called `lambda`"),
            (
                "colsample_bylevel = 0.5\n",
                "write `parameters = { colsample_bylevel = ... }`, and `exact = false`",
            ),
        ] {
            let said = load(&format!("{JOB}{added}")).unwrap_err();
            assert!(said.contains(word), "{said}");
        }
        let said = load(&JOB.replace("[model]", "normalise = { mean = [0], std = [1] }\n[model]"));
        assert!(said.clone().unwrap_err().contains("normalise"), "{said:?}");
    }

    #[test]
    fn a_misspelt_kind_finds_that_of_trees() {
        let said = load(&JOB.replace("xgboost", "xgbost")).unwrap_err();
        assert!(said.contains("did you mean `xgboost`?"), "{said}");
        let said = load(&JOB.replace("xgboost", "forest")).unwrap_err();
        assert!(
            said.contains("`mlp`") && said.contains("`xgboost`"),
            "{said}"
        );
    }

    #[test]
    fn the_command_line_says_how_many_workers() {
        let path = Path::new("/jobs/job.toml");
        let job = Job::parse(path, JOB, &[], Some(3)).unwrap();
        assert_eq!(trees(&job).train.workers, Workers::exactly(3));
    }
}
