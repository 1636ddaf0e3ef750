//! `lockstep runs tag`: the user's own words for a run.

use super::row;
use super::store::Store;
use crate::args::TagArgs;
use crate::command::print;
use crate::view::harmless;
use anyhow::bail;
use lockstep_index::tags;

pub(super) fn run(args: &TagArgs) -> anyhow::Result<()> {
    let mut store = Store::holding(&args.store, std::slice::from_ref(&args.run))?;
    let name = store.find(&args.run)?;
    let run = store.run(&name)?;
    let mut given = Vec::new();
    for tag in &args.tags {
        let (key, value) = tag.split_once('=').unwrap_or((tag, ""));
        let fits = |c: char| c.is_alphanumeric() || "_-./".contains(c);
        if key.is_empty() || !key.chars().all(fits) {
            bail!("`{tag}`: the key of a tag is letters, digits, `_`, `-`, `.` and `/`");
        }
        given.push((key.to_owned(), value.to_owned()));
    }
    if given.is_empty() && args.remove.is_empty() && args.note.is_none() {
        let said = tags::read(&run)?;
        return say(&name, &said);
    }
    let known = tags::read(&run)?;
    if let Some(key) = args
        .remove
        .iter()
        .find(|key| !known.tags.contains_key(*key))
    {
        bail!("{name} has no tag `{key}`");
    }
    let said = tags::change(&run, &|said| {
        said.tags.extend(given.iter().cloned());
        for key in &args.remove {
            said.tags.remove(key);
        }
        if let Some(note) = &args.note {
            said.note.clone_from(note);
        }
    })?;
    store.refresh(&run)?;
    say(&name, &said)
}

fn say(name: &str, said: &tags::Tags) -> anyhow::Result<()> {
    let tags = match row::tags(&said.tags) {
        none if none.is_empty() => "no tags".to_owned(),
        tags => tags,
    };
    let note = match said.note.as_str() {
        "" => String::new(),
        note => format!("{}\n", harmless(note)),
    };
    Ok(print(format!("{name}: {tags}\n{note}"))?)
}
