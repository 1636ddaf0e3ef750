//! Sets that are parts of one: which rows of the training set are validated and tested on instead.

use crate::ResolveError;
use lockstep_data::{Fold, PartSource, Source, SplitBy, SplitPart, SplitRule};
use lockstep_job::Data;

/// How the training set of a job is parted. There is no rule where only a share of it is drawn for validation, which its
/// learner does by itself.
pub(crate) fn split_rule(data: &Data, seed: u64) -> Option<SplitRule> {
    let split = data.split.as_ref();
    if data.test_split == 0.0 && split.is_none() {
        return None;
    }
    let column = split.map(|split| (split.by.clone(), split.group.clone()));
    let fold = split.and_then(|split| Some((split.fold?, split.folds?)));
    Some(SplitRule {
        by: match column {
            Some((Some(by), _)) => SplitBy::Order(by),
            Some((_, Some(group))) => SplitBy::Group(group),
            // Folds have few rows of rare classes as it is.
            _ if data.stratify || fold.is_some() => SplitBy::Classes,
            _ => SplitBy::Chance,
        },
        val: data.validation.share(),
        test: data.test_split,
        fold: fold.map(|(number, of)| Fold { number, of }),
        seed,
    })
}

/// A part of `whole`, in which the column that parts it is there to be looked at.
pub(crate) fn part_of(
    mut whole: Source,
    rule: &SplitRule,
    part: SplitPart,
) -> Result<Source, ResolveError> {
    let mut without = Vec::new();
    if let SplitBy::Order(column) | SplitBy::Group(column) = &rule.by {
        let Source::Table(table) = &mut whole else {
            let column = column.clone();
            return Err(ResolveError::NoColumns { column });
        };
        let columns = &mut table.columns;
        match &rule.by {
            SplitBy::Group(group) => match &columns.group {
                Some(ranked) if ranked != group => {
                    return Err(ResolveError::TwoGroups {
                        split: group.clone(),
                        ranked: ranked.clone(),
                    });
                }
                Some(_) => {}
                None => {
                    columns.group = Some(group.clone());
                    without.push(group.clone());
                }
            },
            _ => {
                let is_dropped = columns.drop.contains(column);
                let is_left_out =
                    !columns.features.is_empty() && !columns.features.contains(column);
                if is_dropped {
                    columns.drop.retain(|name| name != column);
                }
                if is_left_out {
                    columns.features.push(column.clone());
                }
                if is_dropped || is_left_out {
                    without.push(column.clone());
                }
            }
        }
    }
    Ok(Source::Part(PartSource {
        whole: Box::new(whole),
        rule: rule.clone(),
        part,
        without,
        expected: Vec::new(),
    }))
}
