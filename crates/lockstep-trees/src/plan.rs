//! From what a job says, and what its table holds, to how trees are grown.

use crate::gradients::{MOST_RELEVANT, Objective, RankBy};
use crate::part::Tables;
use crate::{BoostSettings, TreesError};
use lockstep_base::cores;
use lockstep_data::TargetKind;
use lockstep_events::event::WorkerThreads;
use lockstep_resolve::TreesSettings;

/// Parameters that exact trees have a way of their own for, or none.
const OWN: [&str; 7] = [
    "subsample",
    "colsample_bytree",
    "max_bin",
    "base_score",
    "scale_pos_weight",
    "objective",
    "quantile_alpha",
];

/// How the trees of a job are grown.
///
/// # Errors
/// When what the job says does not fit the table.
pub fn plan(settings: &TreesSettings, tables: &Tables) -> Result<BoostSettings, TreesError> {
    let objective = objective(settings, tables)?;
    let model = &settings.model;
    let positive = tables.decision.map_or(1, |decision| decision.positive);
    let positive_weight = model.positive_weight.unwrap_or(1.0);
    let mut class_weights = class_weights(settings, tables)?;
    // XGBoost's own parameter is of the second class.
    let weighs_first = !model.exact && positive == 0 && positive_weight != 1.0;
    if weighs_first {
        class_weights.resize(2, 1.0);
        class_weights[0] *= positive_weight as f32;
    }
    let is_own = |name: &str| match model.exact {
        true => OWN.contains(&name),
        false => weighs_first && name == "scale_pos_weight",
    };
    Ok(BoostSettings {
        objective,
        exact: model.exact,
        base_score: model.base_score,
        bins: model.bins.unwrap_or(256),
        row_share: model.row_share.unwrap_or(1.0),
        column_share: model.column_share.unwrap_or(1.0),
        positive: (positive as f32, positive_weight),
        class_weights,
        seed: settings.seed,
        device: settings.device,
        threads: threads(settings, tables.train_rows.len(), cores::usable()).count,
        parameters: (model.xgboost.iter())
            .filter(|(name, _)| !is_own(name))
            .cloned()
            .collect(),
    })
}

/// Rows that are worth a thread: with fewer, threads wait for each other longer than they work.
const ROWS_OF_A_THREAD: usize = 1024;

/// The threads of a worker that has so many cores, for a table of so many rows.
pub(crate) fn threads(settings: &TreesSettings, rows: usize, cores: usize) -> WorkerThreads {
    WorkerThreads::choose(settings.threads, cores, rows.div_ceil(ROWS_OF_A_THREAD))
}

/// How much a row of each class counts; empty where all count alike.
fn class_weights(settings: &TreesSettings, tables: &Tables) -> Result<Vec<f32>, TreesError> {
    let Some(weights) = &settings.class_weights else {
        return Ok(Vec::new());
    };
    let set = &tables.train;
    let misfit = |reason| Err(TreesError::misfit("train.class_weights", reason));
    if set.target_kind() != TargetKind::Classes {
        let (name, kind) = (set.name(), set.target_kind());
        return misfit(format!(
            "it is for classes, and {name} has {kind}; leave it out"
        ));
    }
    if let Some(reason) = weights.misfit(set.class_names()) {
        return misfit(reason);
    }
    let labels = tables.train_rows.iter();
    let labels = labels.map(|&row| set.labels()[row as usize]);
    Ok(weights.by_class(labels, set.classes()))
}

/// What is minimised: what the job says, or what the labels ask for.
fn objective(settings: &TreesSettings, tables: &Tables) -> Result<Objective, TreesError> {
    let set = &tables.train;
    let classes = set.classes();
    let kind = set.target_kind();
    let found = match (kind, classes) {
        _ if set.groups().is_some() => Objective::rank(RankBy::Ndcg),
        (TargetKind::Classes, 0 | 1) => {
            return Err(TreesError::OneClass {
                set: set.name().to_owned(),
                class: set.class_names().first().cloned().unwrap_or_default(),
            });
        }
        (TargetKind::Classes, 2) => Objective::Logistic,
        (TargetKind::Classes, classes) => Objective::Softmax { classes },
        (TargetKind::Numbers | TargetKind::Labels, _) => Objective::SquaredError,
    };
    let Some(said) = &settings.model.objective else {
        return ranked(settings, tables, found);
    };
    let misfit = |reason| TreesError::misfit("model.objective", reason);
    let share = settings.model.quantile;
    let objective = Objective::of_xgboost(said, classes, share.unwrap_or(0.5))
        .ok_or_else(|| misfit(format!("{said:?} is none that Lockstep knows")))?;
    let wants_classes = matches!(objective, Objective::Logistic | Objective::Softmax { .. });
    if wants_classes != (kind == TargetKind::Classes) {
        return Err(misfit(format!(
            "{said:?} does not fit {}, which has {kind}; leave it out, or use {:?}",
            set.name(),
            found.xgboost_name()
        )));
    }
    if matches!(objective, Objective::Quantile { .. }) && share.is_none() {
        let reason = format!("{said:?} needs it: which quantile is to be predicted, such as 0.9");
        return Err(TreesError::misfit("model.quantile_alpha", reason));
    }
    match objective {
        Objective::Logistic if classes != 2 => Err(misfit(format!(
            "{said:?} is for two classes, and {} has {classes}; use \"multi:softprob\", or leave it out",
            set.name()
        ))),
        objective => {
            numbers_fit(tables, objective)?;
            ranked(settings, tables, objective)
        }
    }
}

/// Checks that the numbers of all sets are such as the objective can have.
fn numbers_fit(tables: &Tables, objective: Objective) -> Result<(), TreesError> {
    let (fits, words): (fn(f32) -> bool, &str) = match objective {
        Objective::Poisson => (|number| number >= 0.0, "counts, which are 0 or greater"),
        Objective::Gamma => (|number| number > 0.0, "numbers greater than 0"),
        _ => return Ok(()),
    };
    for set in std::iter::once(&tables.train).chain(tables.others()) {
        if let Some(row) = set.numbers().iter().position(|&number| !fits(number)) {
            let (name, set_name) = (objective.xgboost_name(), set.name());
            let (row, found) = (row + 1, set.numbers()[row]);
            let reason =
                format!("{name:?} takes as labels {words}; row {row} of {set_name} has {found}");
            return Err(TreesError::misfit("model.objective", reason));
        }
    }
    Ok(())
}

/// Checks that what is ranked belongs to groups, and nothing else does.
fn ranked(
    settings: &TreesSettings,
    tables: &Tables,
    objective: Objective,
) -> Result<Objective, TreesError> {
    let set = &tables.train;
    let misfit = |key, reason: String| Err(TreesError::misfit(key, reason));
    let name = objective.xgboost_name();
    let Objective::Rank { by, top } = objective else {
        return match set.groups() {
            None => Ok(objective),
            Some(_) => misfit(
                "data.train.group",
                format!(
                    "rows are ranked within groups, and {name:?} ranks nothing; leave `group` out, or use \"rank:ndcg\", \
                     \"rank:map\" or \"rank:pairwise\""
                ),
            ),
        };
    };
    if set.groups().is_none() {
        return misfit(
            "data.train.group",
            format!(
                "{name:?} ranks rows within groups; name the column that says which rows belong together"
            ),
        );
    }
    if set.weights().is_some() {
        return misfit(
            "data.train.weight",
            format!("all groups count alike for {name:?}; leave `weight` out"),
        );
    }
    for set in std::iter::once(set).chain(tables.others()) {
        let most = if by == RankBy::Map {
            1.0
        } else {
            MOST_RELEVANT
        };
        let is_wrong = |&number: &f32| !(0.0..=most).contains(&number) || number.fract() != 0.0;
        if let Some(row) = set.numbers().iter().position(is_wrong) {
            return misfit(
                "model.objective",
                format!(
                    "{name:?} takes as label how relevant a row is, a whole number from 0 to {most}; row {} of {} has {}",
                    row + 1,
                    set.name(),
                    set.numbers()[row]
                ),
            );
        }
    }
    let own = settings.model.parameters.iter();
    let mut top = top;
    for (parameter, value) in own.filter(|_| settings.model.exact) {
        match parameter.as_str() {
            "lambdarank_pair_method" if value == "topk" => {}
            "lambdarank_num_pair_per_sample" => match value.parse() {
                Ok(pairs) if pairs > 0 => top = pairs,
                _ => {
                    return misfit(
                        "model.parameters",
                        format!("`{parameter}` must be a whole number from 1 on, found {value:?}"),
                    );
                }
            },
            other if other.starts_with("lambdarank_") || other == "ndcg_exp_gain" => {
                return misfit(
                    "model.parameters",
                    format!(
                        "exact trees do not know `{other} = {value}`; leave it out, or say `exact = false`"
                    ),
                );
            }
            _ => {}
        }
    }
    Ok(Objective::Rank { by, top })
}
