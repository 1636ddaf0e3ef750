//! What the learner of trees is told, and the sets that it learns from.

use crate::TreesError;
use crate::ranks::by_group;
use lockstep_base::fs::CacheDir;
use lockstep_data::{DataError, Dataset, DecodedSet, TargetKind, leak_note};
use lockstep_model::{Decision, OwnMetrics};
use lockstep_place::Access;
use lockstep_resolve::{SetSources, TreesSettings};
use serde::{Deserialize, Serialize};

/// What the learner of trees is told in an assignment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TreesPart {
    /// How to grow trees.
    pub settings: TreesSettings,
    /// Where the sets come from, for a host that has not decoded them.
    pub sources: SetSources,
    /// How the run's places are reached.
    pub access: Access,
    /// Where the sets were found when the job was prepared.
    pub found: FoundTables,
}

/// A job's sets as they were found when it was prepared: where each lies decoded, and what it holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundTables {
    train: DecodedSet,
    val: Option<DecodedSet>,
    test: Option<DecodedSet>,
}

impl FoundTables {
    /// The sets by what they are used for.
    pub fn by_use(&self) -> impl Iterator<Item = (&'static str, &DecodedSet)> {
        let val = self.val.iter().map(|set| ("val", set));
        let test = self.test.iter().map(|set| ("test", set));
        std::iter::once(("train", &self.train))
            .chain(val)
            .chain(test)
    }

    /// What the samples that are learned from and chosen by are known by.
    pub fn sha256(&self) -> Vec<String> {
        let of_use = self.by_use().filter(|(name, _)| *name != "test");
        of_use.map(|(_, set)| set.sha256.clone()).collect()
    }
}

/// The sets that trees are grown on and measured on.
#[derive(Debug)]
pub struct Tables {
    /// What is trained on.
    pub train: Dataset,
    /// The rows of it that are, in the order of the set.
    pub train_rows: Vec<u32>,
    /// What rounds are compared on, if that is a set of its own.
    val: Option<Dataset>,
    /// The rows that rounds are compared on.
    pub val_rows: Vec<u32>,
    /// What the result is measured on.
    pub test: Option<Dataset>,
    /// How the model decides, if it tells two classes apart.
    pub decision: Option<Decision>,
    /// Metrics of the job's own.
    pub metrics: OwnMetrics,
}

impl Tables {
    /// Opens the sets where they come from. Says through `progress` what may take a while.
    ///
    /// # Errors
    /// When a set is missing or damaged, or they do not fit each other.
    pub fn open(
        settings: &TreesSettings,
        sources: &SetSources,
        cache: &CacheDir,
        progress: &mut dyn FnMut(&str),
    ) -> Result<Self, TreesError> {
        let train = Dataset::open_telling(&sources.train, cache, progress)?;
        let mut open = |source| Dataset::open_beside(source, &train, cache, progress);
        let val = sources.val.as_ref().map(&mut open).transpose()?;
        let test = sources.test.as_ref().map(&mut open).transpose()?;
        Self::of(settings, train, val, test)
    }

    /// Opens what was found when the job was prepared; where it is gone, the sets are looked for again.
    pub(crate) fn of_part(part: &TreesPart, cache: &CacheDir) -> Result<Self, TreesError> {
        let reopen = |set: &Option<DecodedSet>| set.as_ref().map(Dataset::reopen).transpose();
        let found = &part.found;
        let all = || {
            let sets = [reopen(&found.val)?, reopen(&found.test)?];
            Ok((Dataset::reopen(&found.train)?, sets))
        };
        match all() {
            Ok((train, [val, test])) => Self::of(&part.settings, train, val, test),
            Err(DataError::DecodedGone { .. }) => {
                let tables = Self::open(&part.settings, &part.sources, cache, &mut |_| {})?;
                match tables.found().sha256() == found.sha256() {
                    true => Ok(tables),
                    false => Err(TreesError::OtherRows {
                        set: tables.train.name().to_owned(),
                    }),
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn of(
        settings: &TreesSettings,
        train: Dataset,
        val: Option<Dataset>,
        test: Option<Dataset>,
    ) -> Result<Self, TreesError> {
        let (train_rows, aside) = match train.groups() {
            Some(groups) => split_groups(groups, settings.val_share, settings.seed),
            None => train.split(settings.val_share, settings.stratify, settings.seed),
        };
        let val_rows = match &val {
            Some(set) => {
                let rows = (0..set.len() as u32).collect();
                match set.groups() {
                    Some(groups) => by_group(groups, rows),
                    None => rows,
                }
            }
            None => aside,
        };
        if train_rows.is_empty() {
            return Err(TreesError::NoRows {
                set: train.name().to_owned(),
            });
        }
        let counts = |weights: &[f32]| train_rows.iter().any(|&row| weights[row as usize] > 0.0);
        if train.weights().is_some_and(|weights| !counts(weights)) {
            let reason =
                "the column of weights is 0 in all rows that are trained on: none of them counts";
            return Err(TreesError::misfit("data.train.weight", reason));
        }
        if train.target_kind() != TargetKind::Classes && train.outputs() > 1 {
            let labels = train.output_names().iter();
            let labels: Vec<String> = labels.map(|label| format!("`{label}`")).collect();
            return Err(TreesError::SeveralTargets {
                set: train.name().to_owned(),
                labels: labels.join(", "),
            });
        }
        let decision = Decision::of(
            &settings.decision,
            (&train, &train_rows),
            !val_rows.is_empty(),
        )?;
        let (kind, names) = (train.target_kind(), train.output_names());
        if let (Some(metric), Some(_)) = (settings.metrics.first(), train.groups()) {
            let key = format!("metrics.{}", metric.name);
            let reason =
                "a ranking is measured by its groups, and no formula knows these; leave it out";
            return Err(TreesError::misfit(&key, reason));
        }
        Ok(Self {
            decision,
            metrics: OwnMetrics::bind(&settings.metrics, kind, names)?,
            train,
            train_rows,
            val,
            val_rows,
            test,
        })
    }

    /// For each number of a row, whether it is a category.
    pub(crate) fn categorical(&self) -> Vec<bool> {
        let columns = &self.train.table().columns;
        let each = columns.iter().flat_map(|column| {
            let kind = &column.column.kind;
            std::iter::repeat_n(kind.is_category(), kind.width())
        });
        let known: Vec<bool> = each.collect();
        match known.is_empty() {
            true => vec![false; self.train.sample_len()],
            false => known,
        }
    }

    /// What was read of the tables by a job of these settings, each a sentence.
    pub(crate) fn notes(&self, settings: &TreesSettings) -> Vec<String> {
        let mut notes = self.train.table().notes();
        let rows = (&self.train, &self.train_rows[..]);
        notes.extend((self.decision).map(|decision| decision.note(&settings.decision, rows)));
        if let Some(classes) = self.train.numbers_as_classes() {
            notes.push(format!(
                "the labels are {classes} different whole numbers, and each is a class; objective = \"reg:squarederror\" \
                 would predict them as numbers"
            ));
        }
        let found = self.train.classes_as_numbers();
        let is_said = settings.model.objective.is_some() || self.train.groups().is_some();
        if let Some(numbers) = found.filter(|_| !is_said) {
            notes.push(format!(
                "the labels are {numbers} different whole numbers, which are many, so they are numbers to predict; \
                 objective = \"multi:softprob\" would make each of them a class"
            ));
        }
        for set in self.others() {
            let unseen = set.table().unseen_notes().into_iter();
            notes.extend(unseen.map(|note| format!("{}: {note}", set.name())));
        }
        let train = (&self.train, &self.train_rows[..]);
        notes.extend(leak_note(train, (self.val_set(), &self.val_rows)));
        if let Some(test) = &self.test {
            let rows: Vec<u32> = (0..test.len() as u32).collect();
            notes.extend(leak_note(train, (test, &rows)));
        }
        notes
    }

    /// What others need to open these sets again.
    pub fn found(&self) -> FoundTables {
        FoundTables {
            train: self.train.decoded(),
            val: self.val.as_ref().map(Dataset::decoded),
            test: self.test.as_ref().map(Dataset::decoded),
        }
    }

    /// The sets beside the one that is trained on.
    pub(crate) fn others(&self) -> impl Iterator<Item = &Dataset> {
        self.val.iter().chain(&self.test)
    }

    /// The set that [`val_rows`](Self::val_rows) are of.
    pub(crate) fn val_set(&self) -> &Dataset {
        self.val.as_ref().unwrap_or(&self.train)
    }
}

/// Rows to train on, and a share of the groups that is set aside: the rows of a group stay together, and follow each other.
fn split_groups(groups: &[u32], share: f64, seed: u64) -> (Vec<u32>, Vec<u32>) {
    let count = groups.iter().max().map_or(0, |&last| last as usize + 1);
    let (_, aside) = lockstep_data::split(count, share, seed);
    let rows = by_group(groups, (0..groups.len() as u32).collect());
    let is_aside = |row: &u32| aside.binary_search(&groups[*row as usize]).is_ok();
    let (aside, train) = rows.into_iter().partition(is_aside);
    (train, aside)
}

#[cfg(test)]
mod tests {
    use super::split_groups;

    #[test]
    fn a_group_is_set_aside_whole_or_not_at_all() {
        let groups: Vec<u32> = (0..300).map(|row| row * 7 % 30).collect();
        let (train, aside) = split_groups(&groups, 0.2, 5);
        assert_eq!((train.len(), aside.len()), (240, 60));
        for row in &aside {
            let group = groups[*row as usize];
            assert!(train.iter().all(|other| groups[*other as usize] != group));
        }
        let of_train: Vec<u32> = train.iter().map(|&row| groups[row as usize]).collect();
        assert!(of_train.is_sorted());
        assert!(split_groups(&groups, 0.0, 5).1.is_empty());
    }
}
