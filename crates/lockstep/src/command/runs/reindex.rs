//! `lockstep runs reindex`: the index made again from the folders.

use super::store::{Store, store_place};
use crate::args::StoreArgs;
use crate::command::print;
use crate::view::plural;
use lockstep_base::fs::CacheDir;
use lockstep_index::{Index, Keys};

pub(super) fn run(args: &StoreArgs) -> anyhow::Result<()> {
    let place = store_place(args)?;
    Index::clear(&place, CacheDir::locate().ok().as_ref())?;
    let mut store = Store::open(args)?;
    let runs = store
        .ask(|index| index.runs(&Keys::Some(Vec::new())))?
        .len();
    let lies = store.ask(|index| Ok(index.place()))?;
    Ok(print(format!("{} indexed, {lies}\n", plural(runs, "run")))?)
}
