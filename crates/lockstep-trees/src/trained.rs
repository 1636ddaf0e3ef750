//! Trees that a run ended with, ready to predict: all that is needed is the `model` folder of its run.

use crate::gradients::Objective;
use crate::model_file::without_names;
use crate::publish::Card;
use crate::xgboost::{
    Booster, Build, LibraryFile, Matrix, Predicted, Way, Xgboost, XgboostError, bring, find,
    find_all,
};
use crate::{TreesError, check_model, said, shard};
use lockstep_base::fs::{CacheDir, sha256};
use lockstep_data::{Dataset, InputColumn, StoredElement, TargetKind};
use lockstep_learner::{LearnerError, TrainedModel};
use lockstep_model::{BLOCK_ROWS, Block, Outputs, inputs};
use lockstep_resolve::TreesDevice;
use lockstep_runs::{RunDir, files};
use std::ops::Range;
use std::path::PathBuf;

/// Trees that a run ended with.
#[derive(Debug)]
pub(crate) struct TrainedTrees {
    xgboost: Xgboost,
    booster: Booster,
    card: Card,
    inputs: Vec<InputColumn>,
    objective: Objective,
    outputs: Outputs,
    place: String,
    threads: usize,
}

/// Whether the model that a run ended with is trees.
///
/// # Errors
/// When the run's files cannot be read.
pub(crate) fn is_of_trees(run: &RunDir) -> Result<bool, TreesError> {
    Ok(Card::read(run)?.is_some())
}

/// Loads XGBoost's library from where it is found.
///
/// # Errors
/// When there is none, or it is too old.
pub fn load_xgboost() -> Result<Xgboost, TreesError> {
    Ok(Xgboost::load(&find_xgboost()?.path)?)
}

/// Where XGBoost's library is found.
///
/// # Errors
/// When there is none.
pub fn find_xgboost() -> Result<LibraryFile, TreesError> {
    Ok(find(&caches(Build::ALL)?)?)
}

/// The folders of the cache that builds are brought into.
fn caches(builds: [Build; 2]) -> Result<Vec<PathBuf>, TreesError> {
    let cache = CacheDir::locate()?;
    let folders = builds.into_iter().map(|build| cache.folder(build.name()));
    Ok(folders.collect::<Result<_, _>>()?)
}

/// Loads the library for training on a device: where it is not found, it is brought into the cache, of which `progress` hears.
///
/// # Errors
/// When there is none and none can be had, it is too old, or it is for processors and a GPU is asked for.
pub(crate) fn load_or_bring_xgboost(
    device: TreesDevice,
    progress: &mut dyn FnMut(&str),
) -> Result<Xgboost, TreesError> {
    if device.is_gpu() {
        return load_or_bring_for_gpus(progress);
    }
    let looked = match load_xgboost() {
        Err(TreesError::Xgboost(XgboostError::NotFound { looked })) => looked,
        loaded => return loaded,
    };
    match bring(&CacheDir::locate()?, Build::Processor, progress) {
        Ok(library) => Ok(Xgboost::load(&library)?),
        // Of more use to whoever has it elsewhere.
        Err(XgboostError::NoPackage) => Err(XgboostError::NotFound { looked }.into()),
        Err(error) => Err(error.into()),
    }
}

/// The first of those that are found which can use a GPU; without any, the one that is published.
fn load_or_bring_for_gpus(progress: &mut dyn FnMut(&str)) -> Result<Xgboost, TreesError> {
    let (found, _) = find_all(&caches([Build::Cuda, Build::Processor])?)?;
    for file in found {
        let library = Xgboost::load(&file.path)?;
        if library.has_cuda()? {
            return Ok(library);
        }
        if file.way == Way::Named {
            return Err(XgboostError::NoCuda { path: file.path }.into());
        }
    }
    let library = bring(&CacheDir::locate()?, Build::Cuda, progress)?;
    Ok(Xgboost::load(&library)?)
}

impl TrainedTrees {
    /// Opens the trees that a run ended with, to predict with so many threads.
    ///
    /// # Errors
    /// When the run has none, its files are damaged, or XGBoost is not here.
    pub(crate) fn open(run: &RunDir, threads: usize) -> Result<Self, TreesError> {
        let place = run.model().to_string();
        let refused = |reason: String| TreesError::saved(&place, reason);
        let card = Card::read(run)?;
        let card = card.ok_or_else(|| refused("there are no trees".to_owned()))?;
        let objective = card.objective();
        let objective = objective
            .ok_or_else(|| refused(format!("its objective {:?} is unknown", card.objective)))?;
        let model = run.trees().read()?;
        if sha256(&without_names(&model)) != card.weights_sha256 {
            return Err(refused(format!(
                "{} holds other trees than it says",
                run.trees()
            )));
        }
        let columns = check_model(&model)
            .map_err(|problem| refused(format!("{} cannot be used: {problem}", run.trees())))?;
        if columns != card.columns {
            return Err(refused(format!(
                "{} has {columns} columns, and {} says {}",
                run.trees(),
                files::MODEL_CARD,
                card.columns
            )));
        }
        let xgboost = load_xgboost()?;
        let mut booster = Booster::new(&xgboost, &[])?;
        booster.load(&model)?;
        booster.set("nthread", &threads.to_string())?;
        Ok(Self {
            outputs: card.outputs(),
            inputs: inputs(card.inputs.clone(), &card.column_names),
            xgboost,
            booster,
            objective,
            place,
            threads,
            card,
        })
    }

    /// Checks that rows of `set` are what the trees take.
    ///
    /// # Errors
    /// When they have other columns, or other things are known of them than the trees predict.
    fn check_set(&self, set: &Dataset) -> Result<(), TreesError> {
        let refused = |reason: String| TreesError::saved(&self.place, reason);
        let name = set.name();
        if set.is_labelled() && set.target_kind() != self.outputs.kind {
            let (kind, found) = (self.outputs.kind, set.target_kind());
            let reason = format!("it predicts {kind}, and {name} has {found}");
            return Err(refused(reason));
        }
        match (self.card.columns, set.sample_len()) {
            (columns, found) if columns == found => Ok(()),
            (columns, found) => Err(refused(format!(
                "its rows have {columns} numbers each, those of {name} have {found}"
            ))),
        }
    }

    /// What the trees say of some rows of `set`, the first of which is the first of a block. With `all`, the
    /// probabilities of all classes too.
    ///
    /// # Errors
    /// When XGBoost refuses.
    fn predict_rows(
        &mut self,
        set: &Dataset,
        rows: Range<usize>,
        all: bool,
    ) -> Result<Block, TreesError> {
        let first = rows.start;
        let indices: Vec<u32> = rows.map(|row| row as u32).collect();
        let values = shard::values(set, &indices);
        let matrix = Matrix::plain(&self.xgboost, &values, self.card.columns, self.threads)?;
        let (margins, width) = self.booster.predict(&matrix, Predicted::Margin)?;
        let objective = self.objective;
        if width != objective.outputs() {
            return Err(TreesError::Saved {
                place: self.place.clone(),
                reason: format!(
                    "its trees have {width} outputs, and its objective {}",
                    objective.outputs()
                ),
            });
        }
        let known = set.is_labelled();
        let labels: Vec<u32> = match known && self.outputs.kind == TargetKind::Classes {
            true => indices
                .iter()
                .map(|&row| set.labels()[row as usize])
                .collect(),
            false => vec![u32::MAX; indices.len()],
        };
        let outputs = objective.outputs();
        let losses = indices.chunks(BLOCK_ROWS).enumerate().map(|(block, rows)| {
            let rows = rows.iter().enumerate().filter(|_| known);
            let losses = rows.filter_map(|(at, &row)| {
                let at = block * BLOCK_ROWS + at;
                let target = shard::target(set, row);
                let counts = self.outputs.kind != TargetKind::Classes
                    || (target as usize) < self.outputs.names.len();
                counts.then(|| objective.loss(&margins[at * outputs..][..outputs], target))
            });
            losses.sum()
        });
        let losses = losses.collect();
        let mut predictions = said::predictions(objective, &margins, &labels);
        self.outputs.decide(&mut predictions);
        Ok(Block {
            first,
            losses,
            predictions,
            probabilities: match all && self.outputs.kind == TargetKind::Classes {
                true => said::probabilities(objective, &margins),
                false => Vec::new(),
            },
        })
    }
}

impl TrainedModel for TrainedTrees {
    fn outputs(&self) -> &Outputs {
        &self.outputs
    }

    fn inputs(&self) -> (&[InputColumn], bool) {
        (&self.inputs, true)
    }

    fn sample(&self) -> (StoredElement, [usize; 3]) {
        (StoredElement::F32, [self.card.columns, 1, 1])
    }

    fn check(&self, set: &Dataset) -> Result<(), LearnerError> {
        Ok(self.check_set(set)?)
    }

    fn predict(
        &mut self,
        set: &Dataset,
        rows: Range<usize>,
        all: bool,
    ) -> Result<Block, LearnerError> {
        Ok(self.predict_rows(set, rows, all)?)
    }

    fn contribution_names(&self) -> Option<Vec<String>> {
        let name = |column: usize| match self.card.column_names.get(column) {
            Some(name) => name.clone(),
            None => format!("f{column}"),
        };
        let columns = (0..self.card.columns).map(name);
        let columns: Vec<String> = columns.chain(["base".to_owned()]).collect();
        if self.objective.outputs() == 1 {
            return Some(columns);
        }
        let of_class = |class: &String| {
            let columns = columns.iter();
            let names = columns.map(|column| format!("{class}_{column}"));
            names.collect::<Vec<_>>()
        };
        Some(self.card.classes.iter().flat_map(of_class).collect())
    }

    fn contributions(
        &mut self,
        set: &Dataset,
        rows: Range<usize>,
    ) -> Result<Vec<f32>, LearnerError> {
        let indices: Vec<u32> = rows.map(|row| row as u32).collect();
        let values = shard::values(set, &indices);
        let columns = self.card.columns;
        let matrix = Matrix::plain(&self.xgboost, &values, columns, self.threads);
        let matrix = matrix.map_err(TreesError::from)?;
        let said = self.booster.predict(&matrix, Predicted::Contributions);
        Ok(said.map_err(TreesError::from)?.0)
    }
}
