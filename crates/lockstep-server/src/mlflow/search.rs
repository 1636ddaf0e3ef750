//! A page of what was searched: chosen, in order, and so many at a time.

use super::MlflowError;
use super::filter::{Filter, Name, named};
use super::request_fields::RequestFields;
use lockstep_index::filter::Worth;
use serde_json::Value;
use std::cmp::Ordering;

/// The most that one answer has.
const MOST: i64 = 50_000;

/// What a search says.
#[derive(Debug)]
pub(crate) struct Search {
    filter: Filter,
    order: Vec<(Name, bool)>,
    most: usize,
    from: usize,
    shows: (bool, bool),
}

impl Search {
    /// Understands one. `view` is the key that says whether those in the bin are meant, `usual` how many an answer has if
    /// that is not said.
    pub(crate) fn of(asked: &RequestFields, view: &str, usual: i64) -> Result<Search, MlflowError> {
        let mut order = Vec::new();
        for line in asked.texts("order_by")? {
            let line = line.trim();
            let (name, direction) = match line.rsplit_once(char::is_whitespace) {
                Some((name, word)) if word.eq_ignore_ascii_case("desc") => (name, true),
                Some((name, word)) if word.eq_ignore_ascii_case("asc") => (name, false),
                _ => (line, false),
            };
            if name.is_empty() {
                return Err(MlflowError::wrong("order_by has an empty name"));
            }
            order.push((named(name.trim()), direction));
        }
        Self::ordered(asked, order, view, usual)
    }

    /// Understands one of logged models, whose order is a list of objects.
    pub(crate) fn of_models(asked: &RequestFields, usual: i64) -> Result<Search, MlflowError> {
        let mut order = Vec::new();
        for by in asked.tables("order_by")? {
            let descending = by.get("ascending").and_then(Value::as_bool) == Some(false);
            order.push((named(by.needed("field_name")?), descending));
        }
        Self::ordered(asked, order, "", usual)
    }

    fn ordered(
        asked: &RequestFields,
        order: Vec<(Name, bool)>,
        view: &str,
        usual: i64,
    ) -> Result<Search, MlflowError> {
        let most = asked.whole("max_results")?.unwrap_or(usual);
        if !(1..=MOST).contains(&most) {
            return Err(MlflowError::wrong(format!(
                "Invalid value {most} for parameter 'max_results': it must be between 1 and {MOST}"
            )));
        }
        let from = match asked.text("page_token")? {
            None | Some("") => 0,
            Some(token) => token
                .parse()
                .map_err(|_| MlflowError::wrong("Invalid page token"))?,
        };
        let shows = match asked
            .get(view)
            .map(|value| value.as_str().unwrap_or_default())
        {
            None | Some("ACTIVE_ONLY" | "1") => (true, false),
            Some("DELETED_ONLY" | "2") => (false, true),
            Some("ALL" | "3") => (true, true),
            Some(other) => {
                return Err(MlflowError::wrong(format!(
                    "Invalid value {other:.100?} for parameter '{view}': it must be ACTIVE_ONLY, DELETED_ONLY or ALL"
                )));
            }
        };
        Ok(Search {
            filter: Filter::parse(asked.text("filter")?.unwrap_or_default())?,
            order,
            most: usize::try_from(most).unwrap_or(1),
            from,
            shows,
        })
    }

    /// The page, and the token of the next if there is one. `then` decides where the search's own order does not.
    pub(crate) fn page<T>(
        &self,
        all: Vec<T>,
        is_deleted: impl Fn(&T) -> bool,
        find: impl Fn(&T, &Name) -> Option<Worth>,
        then: impl Fn(&T, &T) -> Ordering,
    ) -> (Vec<T>, Option<String>) {
        let mut found: Vec<T> = all
            .into_iter()
            .filter(|one| {
                if is_deleted(one) {
                    self.shows.1
                } else {
                    self.shows.0
                }
            })
            .filter(|one| self.filter.holds(|name| find(one, name)))
            .collect();
        found.sort_by(|a, b| {
            let by =
                self.order
                    .iter()
                    .map(|(name, descending)| match (find(a, name), find(b, name)) {
                        (Some(a), Some(b)) if *descending => b.order(&a),
                        (Some(a), Some(b)) => a.order(&b),
                        // What has no such value comes last, whichever the direction.
                        (a, b) => b.is_some().cmp(&a.is_some()),
                    });
            let first = by.into_iter().find(|order| order.is_ne());
            first.unwrap_or_else(|| then(a, b))
        });
        let end = self.from.saturating_add(self.most);
        let more = (found.len() > end).then(|| end.to_string());
        let page = found.into_iter().skip(self.from).take(self.most);
        (page.collect(), more)
    }
}
