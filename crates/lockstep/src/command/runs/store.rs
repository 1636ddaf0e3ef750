//! A store of runs that is looked at: its index, brought up to date, and its runs by their names.

use crate::args::{StoreArgs, overrides};
use crate::view::from_here;
use anyhow::{Context, bail};
use lockstep_base::fs::CacheDir;
use lockstep_base::nearest::nearest;
use lockstep_events::Recorded;
use lockstep_index::filter::{Filter, Names, Resolved};
use lockstep_index::{Index, IndexError, Keys, Run};
use lockstep_job::{Location, Storage};
use lockstep_place::Place;
use lockstep_resolve::place;
use lockstep_runs::{RunDir, pick};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Runs that could not be read and are named one by one; of more, only how many.
const NAMED: usize = 3;

/// A store whose index is up to date.
pub(in crate::command) struct Store {
    pub(in crate::command) place: Place,
    index: Index,
    /// The time that all answers are of.
    pub(in crate::command) now: f64,
}

/// The place of a store.
pub(in crate::command) fn store_place(args: &StoreArgs) -> anyhow::Result<Place> {
    let storage = Storage::of_overrides(&overrides(&args.set)?)?;
    Ok(place(&Location::new(&args.store), &storage)?)
}

/// The store of a run that is given by the path or URL of its folder; nothing if it is given in another way.
fn store_of(given: &str) -> Option<String> {
    let (store, name) = given.trim_end_matches('/').rsplit_once('/')?;
    let is_folder = given.contains("://") || Path::new(given).is_dir();
    let store = if store.is_empty() { "/" } else { store };
    (is_folder && !name.is_empty()).then(|| store.to_owned())
}

impl Store {
    /// Opens the store that these runs lie in: the one that was named, unless they are given by folders of another.
    pub(in crate::command) fn holding(args: &StoreArgs, runs: &[String]) -> anyhow::Result<Self> {
        let of_run = |run: &String| {
            let store = store_of(run).unwrap_or_else(|| args.store.clone());
            let whole = std::fs::canonicalize(&store).unwrap_or_else(|_| store.clone().into());
            (whole, store)
        };
        let stores: BTreeMap<PathBuf, String> = runs.iter().map(of_run).collect();
        let stores: Vec<&str> = stores.values().map(String::as_str).collect();
        match stores[..] {
            [] => Self::open(args),
            [store] => Self::open(&StoreArgs {
                store: store.to_owned(),
                set: args.set.clone(),
            }),
            _ => bail!(
                "these runs lie in several stores: {}; name runs of one store at a time",
                stores.join(", ")
            ),
        }
    }

    /// Opens the store, and reads what is new in it.
    pub(in crate::command) fn open(args: &StoreArgs) -> anyhow::Result<Self> {
        let place = store_place(args)?;
        if let Some(path) = place.local().filter(|path| path.is_file()) {
            bail!("{} is a file, not a store of runs", from_here(path));
        }
        // Without a cache folder the index of a bucket lies in memory.
        let cache = CacheDir::locate().ok();
        let mut index = Index::open(&place, cache.as_ref())?;
        let refreshed = index.ask(Index::refresh_all)?;
        for note in index.notes() {
            crate::command::tell(format_args!("note: {note}"));
        }
        let unreadable = &refreshed.unreadable;
        for (name, why) in unreadable.iter().take(NAMED) {
            eprintln!("warning: {name} cannot be read: {why}");
        }
        if unreadable.len() > NAMED {
            eprintln!("warning: {} more cannot be read", unreadable.len() - NAMED);
        }
        Ok(Self {
            place,
            index,
            now: Recorded::clock(),
        })
    }

    /// Asks the index something.
    pub(in crate::command) fn ask<T>(
        &mut self,
        question: impl Fn(&mut Index) -> Result<T, IndexError>,
    ) -> anyhow::Result<T> {
        Ok(self.index.ask(question)?)
    }

    /// The store's name, for people.
    pub(in crate::command) fn name(&self) -> String {
        self.place.local().map_or(self.place.to_string(), from_here)
    }

    /// All names that a filter may use.
    pub(in crate::command) fn names(&mut self) -> anyhow::Result<Names> {
        self.ask(|index| index.names())
    }

    /// The runs that a filter chooses, or all, the newest first, with these parameters.
    pub(in crate::command) fn choose(
        &mut self,
        filter: Option<&str>,
        names: &Names,
        keys: Keys,
    ) -> anyhow::Result<Vec<Run>> {
        let Some(text) = filter else {
            return self.ask(|index| index.runs(&keys));
        };
        let filter = Filter::parse(text)?;
        // Nothing has a name where nothing is, and that is no mistake.
        let is_empty = self
            .ask(|index| index.runs(&Keys::Some(Vec::new())))?
            .is_empty();
        if is_empty {
            return Ok(Vec::new());
        }
        let resolved: Resolved = filter.resolve(names)?;
        let keys = match keys {
            Keys::All => Keys::All,
            Keys::Some(mut keys) => {
                keys.extend(resolved.params());
                Keys::Some(keys)
            }
        };
        let now = self.now;
        let mut runs = self.ask(|index| index.runs(&keys))?;
        resolved.check(&runs)?;
        runs.retain(|run| resolved.holds(run, now));
        Ok(runs)
    }

    /// The name of a run that is given by it, by `latest` or its job's name if it is the newest, by what its client calls it,
    /// by a part that no other has, or by its folder.
    pub(in crate::command) fn find(&mut self, given: &str) -> anyhow::Result<String> {
        let runs = self.ask(|index| index.runs(&Keys::Some(Vec::new())))?;
        let folder = Path::new(given.trim_end_matches('/')).file_name();
        let last = folder.and_then(|name| name.to_str()).unwrap_or(given);
        let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
        if !names.contains(&last)
            && let Some(newest) = RunDir::newest_called(&self.place, last)?
        {
            return Ok(newest.name);
        }
        if let Some(name) = pick(last, names.iter().copied())? {
            return Ok(name.to_owned());
        }
        let called: Vec<&Run> = runs.iter().filter(|run| run.run_name == given).collect();
        if let [one] = called[..] {
            return Ok(one.name.clone());
        }
        let store = self.name();
        if names.is_empty() {
            bail!("there are no runs in {store}");
        }
        match nearest(given, &names) {
            Some(near) => bail!("no run in {store} is called `{given}`; did you mean {near}?"),
            None => bail!(
                "no run in {store} is called `{given}`; `lockstep runs list` shows those there are"
            ),
        }
    }

    /// The run of this name.
    pub(in crate::command) fn run(&self, name: &str) -> anyhow::Result<RunDir> {
        let place = self.place.join(name).context("the run's name")?;
        Ok(RunDir::named(name, place))
    }

    /// Brings the index up to date with a run that was changed here.
    pub(in crate::command) fn refresh(&mut self, run: &RunDir) -> anyhow::Result<()> {
        self.ask(|index| index.refresh(run))
    }
}
