//! What an index can be asked.

use crate::filter::Names;
use crate::points::{Point, unpack};
use crate::run::Run;
use crate::{Index, IndexError};
use rusqlite::OptionalExtension;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// What a series is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// What is learned, by step. Of a step that was done twice, the last counts.
    Metric,
    /// What the machines do, by time.
    System,
}

impl Kind {
    pub(crate) fn number(self) -> i64 {
        match self {
            Kind::Metric => 0,
            Kind::System => 1,
        }
    }
}

/// Which parameters are wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Keys {
    /// All of them.
    All,
    /// Those of these keys.
    Some(Vec<String>),
}

/// A file of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact {
    /// Its name within the run's folder.
    pub path: String,
    /// Its size in bytes.
    pub size: u64,
}

/// A metric, point by point.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// What it is of.
    pub kind: Kind,
    /// Its name, such as `val.loss` or `worker.0.cpu_percent`.
    pub name: String,
    /// In the order of steps, or of time.
    pub points: Vec<Point>,
}

/// All that is known of a run but its points.
#[derive(Debug, Clone)]
pub struct Details {
    /// At a glance, with all parameters.
    pub run: Run,
    /// `origin.json`.
    pub origin: Option<Value>,
    /// `result.json`.
    pub result: Option<Value>,
    /// The files of its folder.
    pub artifacts: Vec<Artifact>,
    /// The names of its series, and how many points each has.
    pub series: Vec<(Kind, String, usize)>,
}

impl Index {
    /// All runs, the newest first, with those of their parameters that `keys` has.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn runs(&self, keys: &Keys) -> Result<Vec<Run>, IndexError> {
        let failed = self.failed();
        let mut runs: BTreeMap<i64, Run> = BTreeMap::new();
        let mut statement = self
            .connection
            .prepare("SELECT id, facts FROM run")
            .map_err(&failed)?;
        let mut rows = statement.query([]).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let facts = row.get_ref(1).map_err(&failed)?;
            let facts = facts.as_str().map_err(|error| self.odd(error))?;
            runs.insert(row.get(0).map_err(&failed)?, self.facts(facts)?);
        }
        let sql =
            "SELECT param.run, key.text, param.value FROM param JOIN key ON key.id = param.key";
        match keys {
            Keys::All => self.fill(sql, [], &mut runs)?,
            Keys::Some(keys) => {
                for key in keys {
                    self.fill(&format!("{sql} WHERE key.text = ?1"), [key], &mut runs)?;
                }
            }
        }
        let mut runs: Vec<Run> = runs.into_values().collect();
        let age = |run: &Run| run.started.unwrap_or(f64::MAX);
        runs.sort_by(|a, b| age(b).total_cmp(&age(a)).then_with(|| b.name.cmp(&a.name)));
        Ok(runs)
    }

    fn fill(
        &self,
        sql: &str,
        given: impl rusqlite::Params,
        runs: &mut BTreeMap<i64, Run>,
    ) -> Result<(), IndexError> {
        let failed = self.failed();
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let mut rows = statement.query(given).map_err(&failed)?;
        while let Some(row) = rows.next().map_err(&failed)? {
            let id: i64 = row.get(0).map_err(&failed)?;
            let value: String = row.get(2).map_err(&failed)?;
            if let Some(run) = runs.get_mut(&id) {
                let key = row.get(1).map_err(&failed)?;
                run.params.insert(key, self.json(&value)?);
            }
        }
        Ok(())
    }

    /// The keys of all parameters of all runs.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn keys(&self) -> Result<Vec<String>, IndexError> {
        self.texts("SELECT text FROM key ORDER BY text")
    }

    /// All names that a filter may use.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn names(&self) -> Result<Names, IndexError> {
        let runs = self.runs(&Keys::Some(Vec::new()))?;
        let all = |of: fn(&Run) -> Vec<&String>| runs.iter().flat_map(of).cloned().collect();
        Ok(Names {
            metrics: all(|run| run.metrics.keys().collect()),
            params: self.keys()?.into_iter().collect(),
            tags: all(|run| run.tags.keys().collect()),
        })
    }

    /// A number that is another one whenever somebody else has written to the index since it was asked last.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn others_wrote(&self) -> Result<i64, IndexError> {
        let version = self
            .connection
            .query_row("PRAGMA data_version", [], |row| row.get(0));
        version.map_err(self.failed())
    }

    /// The runs that a job of a jobs server made, the newest first.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn submitted_by(&self, job: &str) -> Result<Vec<String>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT name FROM run WHERE json_extract(origin, '$.submitted') = ?1 ORDER BY name DESC";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let rows = statement.query_map([job], |row| row.get(0));
        rows.map_err(&failed)?
            .collect::<Result<_, _>>()
            .map_err(&failed)
    }

    fn texts(&self, sql: &str) -> Result<Vec<String>, IndexError> {
        let failed = self.failed();
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let rows = statement.query_map([], |row| row.get(0)).map_err(&failed)?;
        rows.collect::<Result<_, _>>().map_err(&failed)
    }

    /// All that is known of a run but its points; nothing if there is no such run.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn details(&self, name: &str) -> Result<Option<Details>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT id, facts, origin, result FROM run WHERE name = ?1";
        type Row = (i64, String, Option<String>, Option<String>);
        let found: Option<Row> = self
            .connection
            .query_row(sql, [name], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })
            .optional()
            .map_err(&failed)?;
        let Some((id, facts, origin, result)) = found else {
            return Ok(None);
        };
        let mut run = self.facts(&facts)?;
        run.params = self.params(id)?;
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Some(Details {
            run,
            origin: json(origin),
            result: json(result),
            artifacts: self.artifacts(id)?,
            series: self.series_of(id)?,
        }))
    }

    fn params(&self, run: i64) -> Result<BTreeMap<String, Value>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT key.text, param.value FROM param JOIN key ON key.id = param.key \
                   WHERE param.run = ?1";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let mut rows = statement.query([run]).map_err(&failed)?;
        let mut params = BTreeMap::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            let value: String = row.get(1).map_err(&failed)?;
            params.insert(row.get(0).map_err(&failed)?, self.json(&value)?);
        }
        Ok(params)
    }

    fn artifacts(&self, run: i64) -> Result<Vec<Artifact>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT path, size FROM artifact WHERE run = ?1 ORDER BY path";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let artifact = |row: &rusqlite::Row<'_>| {
            Ok(Artifact {
                path: row.get(0)?,
                size: row.get::<_, i64>(1)?.max(0) as u64,
            })
        };
        let rows = statement.query_map([run], artifact).map_err(&failed)?;
        rows.collect::<Result<_, _>>().map_err(&failed)
    }

    fn series_of(&self, run: i64) -> Result<Vec<(Kind, String, usize)>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT kind, name, (SELECT total(length(data)) FROM points WHERE points.series = series.id) \
                   FROM series WHERE run = ?1 ORDER BY kind, name";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let one = |row: &rusqlite::Row<'_>| {
            let bytes: f64 = row.get(2)?;
            Ok((kind(row.get(0)?), row.get(1)?, bytes as usize / 24))
        };
        let rows = statement.query_map([run], one).map_err(&failed)?;
        rows.collect::<Result<_, _>>().map_err(&failed)
    }

    /// The series of a run whose names `wanted` says yes to.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn series(
        &self,
        name: &str,
        wanted: impl Fn(Kind, &str) -> bool,
    ) -> Result<Vec<Series>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT series.id, series.kind, series.name FROM series JOIN run ON run.id = series.run \
                   WHERE run.name = ?1 ORDER BY series.kind, series.name";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let mut rows = statement.query([name]).map_err(&failed)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            let id: i64 = row.get(0).map_err(&failed)?;
            let kind = kind(row.get(1).map_err(&failed)?);
            let name: String = row.get(2).map_err(&failed)?;
            if wanted(kind, &name) {
                let points = self.points(id)?;
                all.push(Series { kind, name, points });
            }
        }
        Ok(all)
    }

    /// The points of a run that were measured after `since`, by series. Only the ends of the series are read.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn newest(&self, name: &str, since: f64) -> Result<Vec<Series>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT series.id, series.kind, series.name FROM series JOIN run ON run.id = series.run \
                   WHERE run.name = ?1 ORDER BY series.kind, series.name";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let mut rows = statement.query([name]).map_err(&failed)?;
        let mut all = Vec::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            let points = self.end_of(row.get(0).map_err(&failed)?, since)?;
            if !points.is_empty() {
                all.push(Series {
                    kind: kind(row.get(1).map_err(&failed)?),
                    name: row.get(2).map_err(&failed)?,
                    points,
                });
            }
        }
        Ok(all)
    }

    fn end_of(&self, series: i64, since: f64) -> Result<Vec<Point>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT data FROM points WHERE series = ?1 ORDER BY first DESC";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let mut rows = statement.query([series]).map_err(&failed)?;
        let mut end: Vec<Point> = Vec::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            let data = row.get_ref(0).map_err(&failed)?;
            let data = data.as_blob().map_err(|error| self.odd(error))?;
            let mut points = Vec::new();
            unpack(data, &mut points).ok_or_else(|| self.odd("points that are cut off"))?;
            let old = points.iter().rposition(|point| point.time <= since);
            let from = old.map_or(0, |last| last + 1);
            end.splice(0..0, points.drain(from..));
            if old.is_some() {
                break;
            }
        }
        Ok(end)
    }

    pub(crate) fn points(&self, series: i64) -> Result<Vec<Point>, IndexError> {
        let failed = self.failed();
        let sql = "SELECT data FROM points WHERE series = ?1 ORDER BY first";
        let mut statement = self.connection.prepare(sql).map_err(&failed)?;
        let mut rows = statement.query([series]).map_err(&failed)?;
        let mut points = Vec::new();
        while let Some(row) = rows.next().map_err(&failed)? {
            let data = row.get_ref(0).map_err(&failed)?;
            let data = data.as_blob().map_err(|error| self.odd(error))?;
            unpack(data, &mut points).ok_or_else(|| self.odd("points that are cut off"))?;
        }
        Ok(points)
    }

    pub(crate) fn facts(&self, text: &str) -> Result<Run, IndexError> {
        serde_json::from_str(text).map_err(|error| self.odd(error))
    }

    fn json(&self, text: &str) -> Result<Value, IndexError> {
        serde_json::from_str(text).map_err(|error| self.odd(error))
    }
}

fn kind(number: i64) -> Kind {
    match number {
        0 => Kind::Metric,
        _ => Kind::System,
    }
}
