//! The runs of the store, as up to date as somebody needs them.
//!
//! The index of the store is read; what has changed in the folders is heard through inotify, so that nothing is looked
//! at while nothing changes. Of a run that goes on only its own folder is read again. A store that cannot be heard, such
//! as a bucket, is looked through every few seconds while somebody asks.

use super::folder_watch::FolderWatch;
use crate::Refusal;
use lockstep_base::fs::CacheDir;
use lockstep_index::{Index, IndexError, Keys, Run, State};
use lockstep_place::Place;
use lockstep_runs::RunDir;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// Folders are not read again within this time.
const GAP: Duration = Duration::from_millis(400);
/// A process may be gone without a word: runs that go on are looked after so often.
const SILENCE: Duration = Duration::from_secs(10);
/// A store that cannot be heard is looked through so often.
const UNHEARD: Duration = Duration::from_secs(5);
/// How the files of the index begin.
const INDEX: &str = "index.sqlite";

/// The runs of the store.
#[derive(Debug)]
pub(super) struct RunStore {
    place: Place,
    cache: CacheDir,
    heard: Option<FolderWatch>,
    state: Mutex<Known>,
    /// Told when there are news.
    pub(super) told: Notify,
}

#[derive(Debug, Default)]
struct Known {
    index: Option<Index>,
    /// When folders were read, and when all of them were.
    read: Option<Instant>,
    read_all: Option<Instant>,
    /// The number by which the store's folder is watched.
    watch: Option<i32>,
    /// Runs that go on, by the number by which their folders are watched, or by a negative one.
    going: BTreeMap<i32, String>,
    others: i64,
    /// A hash of all runs that have ended.
    ended: u64,
    news: News,
}

/// What has changed since somebody asked for news.
#[derive(Debug, Default, Clone)]
pub(super) struct News {
    /// Runs appeared, ended, went or were tagged.
    pub(super) list: bool,
    /// Runs that go on and have got further.
    pub(super) runs: BTreeSet<String>,
}

impl RunStore {
    pub(super) fn new(place: Place, cache: CacheDir) -> RunStore {
        let heard = place.local().and_then(|_| FolderWatch::new().ok());
        RunStore {
            place,
            cache,
            heard,
            state: Mutex::default(),
            told: Notify::new(),
        }
    }

    /// What says that something has changed, if the store can be heard.
    pub(super) fn heard(&self) -> Option<&FolderWatch> {
        self.heard.as_ref()
    }

    /// Ends all waiting for changes.
    pub(super) fn end(&self) {
        if let Some(heard) = &self.heard {
            heard.end();
        }
    }

    /// The store.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The folder of a run that is in the index: nobody's words become a path otherwise.
    pub(super) fn run(&self, name: &str) -> Result<RunDir, Refusal> {
        let known = self.read(|index| Ok(index.details(name)?.is_some()))?;
        match (known, self.place.join(name)) {
            (true, Ok(place)) => Ok(RunDir::named(name, place)),
            _ => Err(no_run(name)),
        }
    }

    /// Asks the index something, once it is up to date.
    pub(super) fn read<T>(
        &self,
        question: impl Fn(&mut Index) -> Result<T, IndexError>,
    ) -> Result<T, Refusal> {
        let mut known = self.lock();
        self.update(&mut known).map_err(Refusal::internal)?;
        let index = known.index.as_mut();
        let index = index.ok_or_else(|| Refusal::internal("the index is not open"))?;
        index.ask(question).map_err(Refusal::internal)
    }

    /// What has changed since the last time, and whether any run goes on.
    pub(super) fn news(&self) -> Result<(News, bool), Refusal> {
        let mut known = self.lock();
        self.update(&mut known).map_err(Refusal::internal)?;
        Ok((mem::take(&mut known.news), !known.going.is_empty()))
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        // What a panicking thread left is brought up to date again.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn update(&self, known: &mut Known) -> Result<(), IndexError> {
        if known.index.is_none() {
            known.index = Some(Index::open(&self.place, Some(&self.cache))?);
            if let (Some(heard), Some(path)) = (&self.heard, self.place.local()) {
                known.watch = heard.notice().of_all(path).ok();
            }
            return self.read_all(known);
        }
        if known.read.is_some_and(|last| last.elapsed() < GAP) {
            return Ok(());
        }
        let rest = match (known.watch, known.going.is_empty()) {
            (None, _) => UNHEARD,
            (Some(_), false) => SILENCE,
            (Some(_), true) => Duration::MAX,
        };
        let mut all = known.read_all.is_none_or(|last| last.elapsed() > rest);
        let (mut grown, mut written) = (BTreeSet::new(), false);
        for change in self.heard.iter().flat_map(|heard| heard.notice().changes()) {
            match known.going.get(&change.watch) {
                Some(name) => drop(grown.insert(name.clone())),
                None if change.name.starts_with(INDEX) => written = true,
                // Names with a dot are being made, or are the server's own.
                None if change.name.starts_with('.') => {}
                None => all = true,
            }
        }
        if all {
            return self.read_all(known);
        }
        let Some(index) = known.index.as_mut() else {
            return Ok(());
        };
        for name in &grown {
            if let Ok(place) = self.place.join(name) {
                index.ask(|index| index.refresh(&RunDir::named(name, place.clone())))?;
                let going = index.ask(|index| index.details(name))?;
                let going = going.is_some_and(|details| details.run.state == State::Running);
                written |= !going;
            }
        }
        if !grown.is_empty() {
            known.read = Some(Instant::now());
            known.news.runs.extend(grown);
            self.told.notify_one();
        }
        match written {
            true => self.look(known),
            false => Ok(()),
        }
    }

    fn read_all(&self, known: &mut Known) -> Result<(), IndexError> {
        if let Some(index) = known.index.as_mut() {
            index.ask(|index| index.refresh_all())?;
        }
        known.read_all = Some(Instant::now());
        known.read = known.read_all;
        known.others = 0;
        self.look(known)
    }

    /// Finds out which runs go on, and whether any other has changed.
    fn look(&self, known: &mut Known) -> Result<(), IndexError> {
        let Some(index) = known.index.as_mut() else {
            return Ok(());
        };
        let others = index.ask(|index| index.others_wrote())?;
        if mem::replace(&mut known.others, others) == others {
            // It was our own hand.
            let still: Vec<String> = known.going.values().cloned().collect();
            let details = index.ask(|index| still.iter().map(|name| index.details(name)).collect());
            let details: Vec<Option<lockstep_index::Details>> = details?;
            let going = |found: &Option<lockstep_index::Details>| {
                let state = found.as_ref().map(|details| details.run.state);
                state == Some(State::Running)
            };
            if details.iter().all(going) {
                return Ok(());
            }
        }
        let runs = index.ask(|index| index.runs(&Keys::Some(Vec::new())))?;
        let mut hasher = DefaultHasher::new();
        let mut going = BTreeSet::new();
        for run in &runs {
            match run.state {
                State::Running => drop(going.insert(run.name.clone())),
                _ => fingerprint(run, &mut hasher),
            }
        }
        let ended = hasher.finish();
        let before: BTreeSet<String> = known.going.values().cloned().collect();
        if mem::replace(&mut known.ended, ended) != ended || before != going {
            known.news.list = true;
            self.told.notify_one();
        }
        known.news.runs.extend(going.iter().cloned());
        self.watch(known, &going);
        Ok(())
    }

    /// Hears of the folders of these runs from now on, and of no others.
    fn watch(&self, known: &mut Known, going: &BTreeSet<String>) {
        let Some(notice) = self.heard.as_ref().map(FolderWatch::notice) else {
            let numbered = (1..).map(|number: i32| -number).zip(going.iter().cloned());
            known.going = numbered.collect();
            return;
        };
        let over = |(_, name): &(&i32, &String)| !going.contains(*name);
        let over: Vec<i32> = known.going.iter().filter(over).map(|(n, _)| *n).collect();
        for number in over {
            known.going.remove(&number);
            notice.forget(number);
        }
        for (at, name) in going.iter().enumerate() {
            if !known.going.values().any(|known| known == name) {
                let path = self.place.local().map(|path| path.join(name));
                let watch = path.and_then(|path| notice.of_all(&path).ok());
                let unheard = || -i32::try_from(at).unwrap_or(0) - 2;
                known
                    .going
                    .insert(watch.unwrap_or_else(unheard), name.clone());
            }
        }
    }
}

/// What of a run that has ended may still change.
fn fingerprint(run: &Run, hasher: &mut DefaultHasher) {
    (&run.name, run.state.word(), &run.tags, &run.note).hash(hasher);
    (run.ended.map(f64::to_bits), run.bytes, run.metrics.len()).hash(hasher);
}

/// There is no such run.
pub(super) fn no_run(name: &str) -> Refusal {
    Refusal::missing(format!("there is no run {name:?} in this store"))
}
