//! What must be known of a job of trees before its workers start.

use crate::measure::measures;
use crate::part::{FoundTables, Tables};
use crate::{TreesError, load_or_bring_xgboost, metric_names, plan};
use lockstep_base::fs::CacheDir;
use lockstep_events::event::UsedLibrary;
use lockstep_measure::BestBy;
use lockstep_resolve::ResolvedTrees;

/// A job of trees, checked against its data.
#[derive(Debug)]
pub struct PreparedTrees {
    /// Rows to train on.
    pub train_rows: usize,
    /// Rows to compare rounds on.
    pub val_rows: usize,
    /// Rows of the test set.
    pub test_rows: usize,
    /// What rounds are measured by.
    pub metrics: Vec<String>,
    /// The library that grows the trees.
    pub library: UsedLibrary,
    /// Where the sets were found.
    pub found: FoundTables,
    /// What a person may want to know.
    pub notes: Vec<String>,
}

/// Finds the library, opens the sets and checks that all fits.
///
/// # Errors
/// When something is missing, damaged, or does not fit.
pub fn prepare(
    job: &ResolvedTrees,
    cache: &CacheDir,
    progress: &mut dyn FnMut(&str),
) -> Result<PreparedTrees, TreesError> {
    let xgboost = load_or_bring_xgboost(job.settings.device, progress)?;
    let tables = Tables::open(&job.settings, &job.sets, cache, progress)?;
    let settings = plan(&job.settings, &tables)?;
    if job.settings.patience.is_some() && tables.val_rows.is_empty() {
        let reason = "there are no validation rows to see by whether rounds get better; add data.val or \
                      data.val_split";
        return Err(TreesError::misfit("train.patience", reason));
    }
    let metrics = metric_names(settings.objective);
    let measures = measures(settings.objective);
    if let BestBy::Measure(best) = job.settings.checkpoint.best
        && !measures.contains(&best)
    {
        let words: Vec<&str> = measures.iter().map(|measure| measure.word()).collect();
        let (best, words) = (best.word(), words.join(", "));
        let reason = format!("\"{best}\" is not measured here; use one of {words}");
        return Err(TreesError::misfit("checkpoint.best", reason));
    }
    Ok(PreparedTrees {
        train_rows: tables.train_rows.len(),
        val_rows: tables.val_rows.len(),
        test_rows: tables.test.as_ref().map_or(0, lockstep_data::Dataset::len),
        metrics: (metrics.iter().copied())
            .chain(tables.metrics.names())
            .map(str::to_owned)
            .collect(),
        library: UsedLibrary {
            name: "XGBoost".to_owned(),
            version: xgboost.version().to_string(),
            sha256: xgboost.sha256().unwrap_or_default(),
        },
        found: tables.found(),
        notes: {
            let library = format!(
                "XGBoost {} ({}), {}",
                xgboost.version(),
                xgboost.path().display(),
                settings.objective.xgboost_name()
            );
            let on_gpu = job.settings.device.is_gpu().then(|| {
                "the trees are grown on a GPU, where XGBoost may come to others than on a processor".to_owned()
            });
            std::iter::once(library)
                .chain(on_gpu)
                .chain(tables.notes(&job.settings))
                .collect()
        },
    })
}
