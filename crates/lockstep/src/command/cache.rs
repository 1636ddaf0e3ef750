//! `lockstep cache`: what lies in the cache folder, and room for something else.

use super::runs::row::ago;
use super::{check_terminal, confirmed, print, print_json};
use crate::args::{CacheCommand, CleanArgs};
use crate::view::{bytes, lines_of, plural};
use lockstep_base::fs::{CacheDir, CacheItem, surplus};
use lockstep_events::Recorded;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) fn run(command: &CacheCommand) -> anyhow::Result<ExitCode> {
    let cache = CacheDir::locate()?;
    match command {
        CacheCommand::List { json: true } => print_json(&cache.items()?)?,
        CacheCommand::List { json: false } => {
            let items = cache.items()?;
            if !items.is_empty() {
                print(table(&items))?;
            }
            let folder = cache.path().display();
            print(format!("{} in {folder}\n", bytes(size(&items))))?;
        }
        CacheCommand::Clean(args) => return clean(&cache, args),
    }
    Ok(ExitCode::SUCCESS)
}

fn clean(cache: &CacheDir, args: &CleanArgs) -> anyhow::Result<ExitCode> {
    let gone = surplus(cache.items()?, args.older, args.keep, SystemTime::now());
    let folder = cache.path().display();
    if gone.is_empty() {
        print(format!("nothing to remove in {folder}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let amount = bytes(size(&gone));
    if args.dry_run {
        print(table(&gone))?;
        print(format!("would make {amount} free in {folder}\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let what = format!("{} of {amount} in {folder}", plural(gone.len(), "item"));
    if !args.yes {
        check_terminal(&what)?;
        print(table(&gone))?;
        if !confirmed(&what)? {
            return Ok(ExitCode::FAILURE);
        }
    }
    gone.iter().try_for_each(CacheItem::remove)?;
    print(format!("removed {what}\n"))?;
    Ok(ExitCode::SUCCESS)
}

fn size(items: &[CacheItem]) -> u64 {
    items.iter().map(|item| item.bytes).sum()
}

fn table(items: &[CacheItem]) -> String {
    let now = Recorded::clock();
    let row = |item: &CacheItem| {
        let used = item.used.duration_since(UNIX_EPOCH).unwrap_or_default();
        vec![
            item.kind.to_owned(),
            item.name.clone(),
            bytes(item.bytes),
            ago(Some(used.as_secs_f64()), now),
        ]
    };
    let rows: Vec<_> = items.iter().map(row).collect();
    lines_of(&["what", "name", ">size", "last used"], &rows)
}
