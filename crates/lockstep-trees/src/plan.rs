//! From what a job says, and what its table holds, to how trees are grown.

use crate::gradients::Objective;
use crate::part::Tables;
use crate::{BoostSettings, TreesError};
use lockstep_data::TargetKind;
use lockstep_resolve::TreesSettings;

/// Parameters that exact trees have a way of their own for, or none.
const OWN: [&str; 6] = [
    "subsample",
    "colsample_bytree",
    "max_bin",
    "base_score",
    "scale_pos_weight",
    "objective",
];
/// Parameters by which chance depends on how the rows are divided.
const INEXACT: [&str; 5] = [
    "colsample_bylevel",
    "colsample_bynode",
    "num_parallel_tree",
    "sampling_method",
    "tree_method",
];

/// How the trees of a job are grown.
///
/// # Errors
/// When what the job says does not fit the table.
pub fn plan(settings: &TreesSettings, tables: &Tables) -> Result<BoostSettings, TreesError> {
    let objective = objective(settings, tables)?;
    let keys = &settings.model.xgboost;
    let own = settings.model.xgboost_parameters();
    if settings.model.exact {
        let inexact = settings.model.parameters.keys();
        if let Some(name) = inexact
            .into_iter()
            .find(|name| INEXACT.contains(&name.as_str()))
        {
            return Err(TreesError::Misfit {
                key: "model.parameters",
                reason: format!(
                    "`{name}` would make the model depend on the number of workers; leave it out, or say \
                     `exact = false`"
                ),
            });
        }
    }
    Ok(BoostSettings {
        objective,
        exact: settings.model.exact,
        base_score: keys.base_score,
        bins: keys.max_bin.unwrap_or(256),
        row_share: keys.subsample.unwrap_or(1.0),
        column_share: keys.colsample_bytree.unwrap_or(1.0),
        second_class_weight: keys.scale_pos_weight.unwrap_or(1.0),
        seed: settings.seed,
        threads: settings.threads,
        parameters: match settings.model.exact {
            true => own
                .into_iter()
                .filter(|(name, _)| !OWN.contains(&name.as_str()))
                .collect(),
            false => own,
        },
    })
}

/// What is minimised: what the job says, or what the labels ask for.
fn objective(settings: &TreesSettings, tables: &Tables) -> Result<Objective, TreesError> {
    let set = &tables.train;
    let classes = set.classes();
    let kind = set.target_kind();
    let found = match (kind, classes) {
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
        return Ok(found);
    };
    let misfit = |reason: String| TreesError::Misfit {
        key: "model.objective",
        reason,
    };
    let objective = Objective::of_xgboost(said, classes).ok_or_else(|| {
        misfit(format!(
            "{said:?} is none that Lockstep knows; it knows {}",
            Objective::NAMES.join(", ")
        ))
    })?;
    let wants_classes = matches!(objective, Objective::Logistic | Objective::Softmax { .. });
    if wants_classes != (kind == TargetKind::Classes) {
        return Err(misfit(format!(
            "{said:?} does not fit {}, which has {kind}; leave it out, or use {:?}",
            set.name(),
            found.xgboost_name()
        )));
    }
    match objective {
        Objective::Logistic if classes != 2 => Err(misfit(format!(
            "{said:?} is for two classes, and {} has {classes}; use \"multi:softprob\", or leave it out",
            set.name()
        ))),
        objective => Ok(objective),
    }
}
