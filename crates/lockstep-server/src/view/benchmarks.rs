//! Comparisons: folders of the store that have a `comparison.json`.

use super::blocking;
use crate::{Refusal, Server};
use axum::extract::{Path, State};
use axum::response::IntoResponse;
use http::header;
use lockstep_place::Place;
use serde::de::IgnoredAny;

/// What a comparison is in.
const FILE: &str = "comparison.json";
/// The largest that is read.
const LARGEST: u64 = 256 << 10;
/// The most that one list has: the newest.
const MOST: usize = 100;

/// All comparisons, the newest first: their names end with the time.
pub(super) async fn list(State(server): State<Server>) -> Result<impl IntoResponse, Refusal> {
    let all = blocking(move || {
        let store = server.view().store.place();
        let names = store.folders().map_err(Refusal::internal)?;
        let found = names
            .iter()
            .rev()
            .filter_map(|name| comparison(store, name));
        Ok(found.take(MOST).collect::<Vec<String>>())
    });
    Ok(json(format!("[{}]", all.await?.join(","))))
}

pub(super) async fn show(
    State(server): State<Server>,
    Path(name): Path<String>,
) -> Result<impl IntoResponse, Refusal> {
    let found = blocking(move || {
        let missing = || Refusal::missing(format!("there is no comparison {name:?}"));
        let store = server.view().store.place();
        let known = store.folders().map_err(Refusal::internal)?;
        // Only what is listed is opened: a name is never a path.
        let known = known.contains(&name).then_some(&name).ok_or_else(missing)?;
        comparison(store, known).ok_or_else(missing)
    });
    Ok(json(found.await?))
}

fn json(text: String) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/json")], text)
}

/// The comparison of a folder, with its name, as JSON; nothing where there is none, or one that is no JSON. The file is
/// passed on as it is: as values it would take many times its room.
fn comparison(store: &Place, name: &str) -> Option<String> {
    let file = store.join(name).ok()?.join(FILE).ok()?;
    let text = String::from_utf8(file.read_at_most(LARGEST).ok()?).ok()?;
    serde_json::from_str::<IgnoredAny>(&text).ok()?;
    let name = serde_json::to_string(name).ok()?;
    Some(format!("{{\"name\":{name},\"comparison\":{text}}}"))
}
