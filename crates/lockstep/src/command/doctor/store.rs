//! A store of runs: written, read, listed, and how fast.

use super::check::{Check, State};
use crate::view::bytes;
use lockstep_base::fs::random_letters;
use lockstep_engine::describe;
use lockstep_job::{Location, Storage};
use lockstep_place::{Place, PlaceError};
use lockstep_resolve::place;
use std::time::Instant;

/// What is written and read.
const SIZE: usize = 8 << 20;
/// A store that is slower than this makes checkpoints of large networks last.
const SLOW: f64 = 5e6;

pub(super) fn checks(location: &Location, storage: &Storage) -> Vec<Check> {
    let help = match location.is_url() {
        true => {
            "look at the bucket's name, at [storage] in the job file (endpoint, region), and at the credentials in the \
             environment, such as AWS_ACCESS_KEY_ID"
        }
        false => {
            "make the folder and give yourself the right to write in it, or name another with run.store"
        }
    };
    let tried = place(location, storage).and_then(|store| try_out(&store));
    vec![match tried {
        Err(error) => Check::wrong(State::Problem, "store", describe(&error), help),
        Ok(Tried { at, wrote, read }) => {
            let rate = |seconds: f64| SIZE as f64 / seconds.max(1e-6);
            let found = format!(
                "{at} can be written ({}/s), read ({}/s) and listed",
                bytes(rate(wrote) as u64),
                bytes(rate(read) as u64)
            );
            match rate(wrote) < SLOW || rate(read) < SLOW {
                false => Check::ok("store", found),
                true => Check::wrong(
                    State::Warning,
                    "store",
                    found,
                    "it is slow: choose a store that is nearer, or write checkpoints less often (checkpoint.every)",
                ),
            }
        }
    }]
}

/// How a store did.
struct Tried {
    at: String,
    /// Seconds.
    wrote: f64,
    read: f64,
}

fn try_out(store: &Place) -> Result<Tried, PlaceError> {
    let was_there = store.local().is_none_or(|path| path.exists());
    store.make_folder()?;
    let letters = random_letters::<8>().unwrap_or_else(|_| std::process::id().to_string());
    let folder = store.join(&format!("doctor-{letters}"))?;
    let file = folder.join("trial")?;
    let tried = (|| -> Result<(f64, f64, bool), PlaceError> {
        folder.make_folder()?;
        let content: Vec<u8> = (0..SIZE).map(|at| (at * 31 % 251) as u8).collect();
        let begin = Instant::now();
        file.write(&content)?;
        let wrote = begin.elapsed().as_secs_f64();
        let begin = Instant::now();
        let found = file.read()?;
        let read = begin.elapsed().as_secs_f64();
        let listed = folder.list()?;
        let whole = found == content && listed.iter().any(|entry| entry.size == SIZE as u64);
        Ok((wrote, read, whole))
    })();
    // Whatever came of it, nothing stays.
    let removed = folder.delete_all();
    if let (false, Some(path)) = (was_there, store.local()) {
        let _ = std::fs::remove_dir(path);
    }
    let (wrote, read, whole) = tried?;
    removed?;
    let at = store.to_string();
    match whole {
        true => Ok(Tried { at, wrote, read }),
        false => Err(PlaceError::Setting {
            place: at,
            why: "what was written did not come back as it was".to_owned(),
        }),
    }
}
