//! Where models come from: versions of the registry of a store, or single runs.

use crate::ServingError;
use crate::live::{Live, ToOpen};
use crate::metrics::Counters;
use crate::settings::ServingSettings;
use lockstep_learner::Learners;
use lockstep_runs::RunDir;
use lockstep_runs::registry::{Pick, Reference, Registry, Version};
use std::fmt;
use std::sync::Arc;

/// Which model is meant.
#[derive(Debug, Clone)]
pub enum NamedVersion {
    /// The model of a run.
    Run(RunDir),
    /// A version of the registry.
    Registered(Reference),
}

/// Where models come from.
#[derive(Clone)]
pub struct ModelSource {
    /// The models of the store.
    pub registry: Registry,
    /// The learners that models are known to.
    pub learners: Learners,
}

impl fmt::Debug for ModelSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelSource")
            .field("registry", &self.registry)
            .finish_non_exhaustive()
    }
}

impl NamedVersion {
    /// Whether it may come to mean another version.
    pub(crate) fn moves(&self) -> bool {
        match self {
            Self::Run(_) => false,
            Self::Registered(reference) => !matches!(reference.pick, Pick::Number(_)),
        }
    }
}

impl ModelSource {
    /// The version that is meant now; nothing of a run.
    ///
    /// # Errors
    /// When there is none, or the registry cannot be read.
    pub(crate) fn version(&self, named: &NamedVersion) -> Result<Option<Version>, ServingError> {
        match named {
            NamedVersion::Run(_) => Ok(None),
            NamedVersion::Registered(reference) => Ok(Some(self.registry.find(reference)?)),
        }
    }

    /// Opens what is meant now. Blocks until it is ready.
    ///
    /// # Errors
    /// When there is no such model, or its files cannot be used.
    pub(crate) fn open(
        &self,
        named: &NamedVersion,
        settings: &ServingSettings,
        counters: &Arc<Counters>,
    ) -> Result<Live, ServingError> {
        let to_open = match (named, self.version(named)?) {
            (_, Some(version)) => ToOpen {
                run: self.registry.run(&version)?,
                name: version.name,
                version: Some(version.number),
                files: version.folder,
            },
            (NamedVersion::Run(run), None) => of_run(run),
            (NamedVersion::Registered(_), None) => unreachable!("a reference has a version"),
        };
        let live = Live::open(to_open, self.learners, settings, Arc::clone(counters))?;
        counters.opened();
        Ok(live)
    }
}

fn of_run(run: &RunDir) -> ToOpen {
    ToOpen {
        name: run.name.clone(),
        version: None,
        files: run.name.clone(),
        run: run.clone(),
    }
}
