//! The models that are held: opened when they are first asked for, replaced when their alias moves, and given back when
//! nobody has asked them for a while.
//!
//! A new version is opened beside the old one, and takes its place when it is ready. Requests that the old one has, it
//! answers; so none is lost. A version that cannot be opened is said in the log, and the old one goes on.

use crate::live::Live;
use crate::metrics::Counters;
use crate::source::{ModelSource, NamedVersion};
use crate::{Refusal, ServingError, ServingSettings};
use lockstep_runs::registry::RegistryError;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// How often it is looked at what aliases point to, and which models nobody asks.
const TICK: Duration = Duration::from_secs(1);

/// The models that are held. A clone holds the same ones.
#[derive(Debug, Clone)]
pub struct HeldModels(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: ModelSource,
    settings: ServingSettings,
    counters: Arc<Counters>,
    held: Mutex<BTreeMap<String, Held>>,
    /// Held by whoever opens a model.
    opening: tokio::sync::Mutex<()>,
    /// Bodies that are read at a time, and take a while.
    reading: Semaphore,
    watched: Once,
}

/// A model that is held.
#[derive(Debug)]
struct Held {
    named: NamedVersion,
    live: Arc<Live>,
    asked: Instant,
    /// What could not be opened in its place, so that it is said once.
    failed: Option<String>,
}

impl HeldModels {
    /// An empty one.
    pub fn new(source: ModelSource, settings: ServingSettings) -> Self {
        let cores = thread::available_parallelism().map_or(1, |cores| cores.get());
        Self(Arc::new(Inner {
            source,
            settings,
            counters: Arc::default(),
            held: Mutex::default(),
            opening: tokio::sync::Mutex::default(),
            reading: Semaphore::new(cores),
            watched: Once::new(),
        }))
    }

    /// How predictions are served.
    pub fn settings(&self) -> &ServingSettings {
        &self.0.settings
    }

    /// What a monitor reads, as OpenMetrics text without its end.
    pub fn metrics(&self) -> String {
        let held = self.0.held();
        let titles = held.values().map(|held| held.live.about.title()).collect();
        drop(held);
        let titles: Vec<String> = titles;
        self.0.counters.text(&titles)
    }

    /// Opens a model under a name that it is asked by. Blocks until it is ready.
    ///
    /// # Errors
    /// When there is no such model, or its files cannot be used.
    pub fn open(&self, name: &str, named: NamedVersion) -> Result<(), ServingError> {
        let inner = &self.0;
        let live = inner
            .source
            .open(&named, &inner.settings, &inner.counters)?;
        let mut held = inner.held();
        held.insert(
            name.to_owned(),
            Held {
                named,
                live: Arc::new(live),
                asked: Instant::now(),
                failed: None,
            },
        );
        while held.len() > inner.settings.max_models.max(1) {
            let others = held.iter().filter(|(other, _)| *other != name);
            let oldest = others.min_by_key(|(_, held)| held.asked);
            let Some(oldest) = oldest.map(|(name, _)| name.clone()) else {
                break;
            };
            held.remove(&oldest);
        }
        drop(held);
        let watched = Arc::downgrade(inner);
        inner.watched.call_once(|| watch(watched));
        Ok(())
    }

    /// The title of what is held under a name now, such as `digits@3`.
    pub fn title(&self, name: &str) -> Option<String> {
        let held = self.0.held();
        held.get(name).map(|held| held.live.about.title())
    }

    /// The model of this name if it is held. It counts as asked.
    fn held(&self, name: &str) -> Option<Arc<Live>> {
        let mut held = self.0.held();
        let held = held.get_mut(name)?;
        held.asked = Instant::now();
        Some(Arc::clone(&held.live))
    }

    /// The model of this name: a version of the registry, as in `NAME@ALIAS`, which is opened first if it is not held.
    ///
    /// # Errors
    /// When there is no such model, or its files cannot be used.
    pub(crate) async fn live(&self, name: &str) -> Result<Arc<Live>, Refusal> {
        if let Some(live) = self.held(name) {
            return Ok(live);
        }
        let _one = self.0.opening.lock().await;
        if let Some(live) = self.held(name) {
            return Ok(live);
        }
        let reference = name.parse();
        let reference =
            reference.map_err(|error: RegistryError| Refusal::bad(error.to_string()))?;
        let (models, own) = (self.clone(), name.to_owned());
        let named = NamedVersion::Registered(reference);
        let opened = tokio::task::spawn_blocking(move || models.open(&own, named)).await;
        match opened.map_err(Refusal::internal)? {
            Ok(()) => self.held(name).ok_or_else(Refusal::busy),
            Err(error @ ServingError::Registry(_)) => Err(Refusal::missing(error.whole())),
            // One that is none of Lockstep's, or is damaged: whoever asks for it is told so.
            Err(error @ ServingError::Model { .. }) => Err(Refusal::bad(error.whole())),
            Err(error) => Err(Refusal::internal(error.whole())),
        }
    }

    /// Room to read a body that takes a while.
    pub(crate) fn reading(&self) -> &Semaphore {
        &self.0.reading
    }

    pub(crate) fn counters(&self) -> &Counters {
        &self.0.counters
    }
}

impl Inner {
    fn held(&self) -> MutexGuard<'_, BTreeMap<String, Held>> {
        // Every change of it is whole.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives back what nobody has asked for a while.
    fn drop_idle(&self) {
        if let Some(idle) = self.settings.idle {
            self.held().retain(|_, held| held.asked.elapsed() < idle);
        }
    }

    /// Looks at what is meant by each name now, and opens it if that has changed.
    fn follow(&self) {
        let held = self.held();
        let moving = held.iter().filter(|(_, held)| held.named.moves());
        let moving = moving.map(|(name, held)| (name.clone(), held.named.clone()));
        let moving: Vec<(String, NamedVersion)> = moving.collect();
        drop(held);
        for (name, named) in moving {
            if let Err(error) = self.follow_one(&name, &named) {
                let words = error.whole();
                let mut held = self.held();
                if let Some(held) = held.get_mut(&name)
                    && held.failed.as_ref() != Some(&words)
                {
                    let old = held.live.about.title();
                    eprintln!("warning: {words}; {old} goes on");
                    held.failed = Some(words);
                }
            }
        }
    }

    fn follow_one(&self, name: &str, named: &NamedVersion) -> Result<(), ServingError> {
        let Some(version) = self.source.version(named)? else {
            return Ok(());
        };
        let is_same = |held: &Held| {
            let about = &held.live.about;
            about.version == Some(version.number) && about.files == version.folder
        };
        match self.held().get_mut(name) {
            Some(held) if is_same(held) => {
                held.failed = None;
                return Ok(());
            }
            None => return Ok(()),
            Some(_) => (),
        }
        let live = self.source.open(named, &self.settings, &self.counters)?;
        let mut all = self.held();
        if let Some(held) = all.get_mut(name) {
            eprintln!("{name} is {} now", live.about.title());
            held.live = Arc::new(live);
            held.failed = None;
        }
        Ok(())
    }
}

/// Looks after the held models as long as somebody has them.
fn watch(models: Weak<Inner>) {
    let looking = move || {
        loop {
            thread::sleep(TICK);
            let Some(models) = models.upgrade() else {
                return;
            };
            models.drop_idle();
            models.follow();
        }
    };
    let started = thread::Builder::new()
        .name("models".to_owned())
        .spawn(looking);
    if let Err(error) = started {
        eprintln!("warning: aliases that move are not followed: {error}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{SUMS, run};
    use lockstep_place::{Access, Place};
    use lockstep_runs::registry::Registry;

    fn models(settings: ServingSettings) -> HeldModels {
        let store = Place::parse("/nowhere", &Access::default()).unwrap();
        let source = ModelSource {
            registry: Registry::of(&store).unwrap(),
            learners: SUMS,
        };
        HeldModels::new(source, settings)
    }

    #[test]
    fn a_model_that_nobody_asks_is_given_back() {
        let models = models(ServingSettings {
            idle: Some(Duration::from_secs(3600)),
            ..ServingSettings::default()
        });
        models.open("a", NamedVersion::Run(run())).unwrap();
        models.0.drop_idle();
        assert_eq!(models.title("a").as_deref(), Some("run"));
        let long_ago = Instant::now()
            .checked_sub(Duration::from_secs(3601))
            .unwrap();
        models.0.held().get_mut("a").unwrap().asked = long_ago;
        models.0.drop_idle();
        assert_eq!(models.title("a"), None);
    }

    #[test]
    fn of_more_models_than_may_be_held_the_one_asked_longest_ago_goes() {
        let models = models(ServingSettings {
            max_models: 2,
            ..ServingSettings::default()
        });
        for name in ["a", "b"] {
            models.open(name, NamedVersion::Run(run())).unwrap();
        }
        assert!(models.held("a").is_some());
        models.open("c", NamedVersion::Run(run())).unwrap();
        let held = ["a", "b", "c"].map(|name| models.title(name).is_some());
        assert_eq!(held, [true, false, true]);
    }
}
