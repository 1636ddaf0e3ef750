//! What `ray list` asks a head for: jobs and nodes, chosen by filters. What there is none of here, such as actors, is an
//! empty list.

use super::cluster::{node_row, told};
use super::details::details;
use super::with_queue;
use crate::{Caller, Refusal, Role, Server};
use axum::Json;
use axum::extract::{Path, RawQuery, State};
use serde_json::{Value, json};
use url::form_urlencoded;

/// What Ray has and this server has not.
const NOT_HERE: [&str; 7] = [
    "actors",
    "tasks",
    "objects",
    "workers",
    "placement_groups",
    "runtime_envs",
    "cluster_events",
];
/// The most rows, if the question does not say, and at all.
const USUAL: usize = 100;
const MOST: usize = 10_000;

/// What rows are wanted.
#[derive(Debug, PartialEq)]
struct Choice {
    /// A key, whether its value must be the one that follows or must not, and that value.
    filters: Vec<(String, bool, String)>,
    limit: usize,
}

pub(super) async fn list(
    State(server): State<Server>,
    caller: Caller,
    Path(what): Path<String>,
    RawQuery(query): RawQuery,
) -> Result<Json<Value>, Refusal> {
    caller.needs(Role::Read)?;
    let choice = Choice::read(query.as_deref().unwrap_or_default())?;
    let rows = match what.as_str() {
        "jobs" => {
            let jobs = with_queue(&server, |queue| Ok(queue.list())).await?;
            jobs.iter().map(|job| details(job, &caller)).collect()
        }
        "nodes" => vec![node_row(&server)],
        other if NOT_HERE.contains(&other) => Vec::new(),
        other => {
            return Err(Refusal::missing(format!(
                "there is no list of {other:?}; there are jobs and nodes"
            )));
        }
    };
    Ok(told(json!({ "result": choice.answer(rows) })))
}

impl Choice {
    fn read(query: &str) -> Result<Choice, Refusal> {
        let pairs = || form_urlencoded::parse(query.as_bytes());
        let all = |name: &str| {
            let named = pairs().filter(|(key, _)| key == name);
            named
                .map(|(_, value)| value.into_owned())
                .collect::<Vec<_>>()
        };
        let (keys, predicates) = (all("filter_keys"), all("filter_predicates"));
        let values = all("filter_values");
        if keys.len() != predicates.len() || keys.len() != values.len() {
            return Err(Refusal::bad(
                "filter_keys, filter_predicates and filter_values must be as many",
            ));
        }
        let filters = keys.into_iter().zip(predicates).zip(values);
        let filters = filters.map(|((key, predicate), value)| match predicate.as_str() {
            "=" => Ok((key, true, value)),
            "!=" => Ok((key, false, value)),
            other => Err(Refusal::bad(format!(
                "filter_predicates: {other:?} is none; there are = and !="
            ))),
        });
        let limit = match all("limit").pop() {
            None => USUAL,
            Some(limit) => limit.parse().map_err(|_| {
                Refusal::bad(format!("limit: {limit:?} is no whole number, such as 100"))
            })?,
        };
        Ok(Choice {
            filters: filters.collect::<Result<_, _>>()?,
            limit: limit.min(MOST),
        })
    }

    /// The rows that are wanted, and how many there are, as Ray tells them.
    fn answer(&self, rows: Vec<Value>) -> Value {
        let total = rows.len();
        let mut rows = rows;
        rows.retain(|row| self.filters.iter().all(|filter| fits(row, filter)));
        let chosen = rows.len();
        rows.truncate(self.limit);
        json!({
            "total": total,
            "num_after_truncation": total,
            "num_filtered": chosen,
            "result": rows,
            "partial_failure_warning": "",
            "warnings": [],
        })
    }
}

fn fits(row: &Value, (key, equal, wanted): &(String, bool, String)) -> bool {
    let found = match row.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Null) | None => String::new(),
        Some(other) => other.to_string(),
    };
    found.eq_ignore_ascii_case(wanted) == *equal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_chosen_by_all_filters_and_counted() {
        let query = "limit=1&filter_keys=status&filter_predicates=%3D&filter_values=failed\
                     &filter_keys=submission_id&filter_predicates=%21%3D&filter_values=b";
        let choice = Choice::read(query).unwrap();
        let job = |id: &str, status: &str| json!({"submission_id": id, "status": status});
        let rows = vec![
            job("a", "FAILED"),
            job("b", "FAILED"),
            job("c", "RUNNING"),
            job("d", "FAILED"),
        ];
        let answer = choice.answer(rows);
        assert_eq!(
            (&answer["total"], &answer["num_filtered"]),
            (&json!(4), &json!(2))
        );
        assert_eq!(answer["result"], json!([job("a", "FAILED")]));
        let everything = Choice::read("").unwrap();
        assert_eq!(everything.limit, USUAL);
        for wrong in [
            "filter_keys=a",
            "limit=x",
            "filter_keys=a&filter_values=b&filter_predicates=~",
        ] {
            assert!(Choice::read(wrong).is_err(), "{wrong}");
        }
    }
}
