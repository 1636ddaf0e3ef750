//! What an index can be asked.

use crate::filter::Names;
use crate::points::{Point, points_in};
use crate::run::Run;
use crate::{Index, IndexError};
use lockstep_base::fs::sha256;
use lockstep_place::PlaceError;
use lockstep_runs::RunDir;
use lockstep_runs::registry::Lineage;
use rusqlite::types::Type;
use rusqlite::{Params, Row};
use serde::Serialize;
use serde::de::DeserializeOwned;
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

impl Details {
    /// Where a version of a model that is made from the run comes from.
    ///
    /// # Errors
    /// When the run's job file cannot be read.
    pub fn lineage(&self, run: &RunDir) -> Result<Lineage, PlaceError> {
        Ok(Lineage {
            run: run.name.clone(),
            job: self.run.job.clone(),
            job_sha256: sha256(&run.job().read()?),
            weights_sha256: self.run.weights_sha256.clone().unwrap_or_default(),
            commit: self.run.commit.clone(),
            data: serde_json::to_value(&self.run.data).unwrap_or_default(),
            metrics: self.run.metrics.clone(),
        })
    }
}

impl Index {
    /// All runs, the newest first, with those of their parameters that `keys` has.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn runs(&self, keys: &Keys) -> Result<Vec<Run>, IndexError> {
        let found = self.rows("SELECT id, facts FROM run", [], |row| {
            Ok((row.get(0)?, json_in(row, 1)?))
        })?;
        let mut runs: BTreeMap<i64, Run> = found.into_iter().collect();
        let sql =
            "SELECT param.run, key.text, param.value FROM param JOIN key ON key.id = param.key";
        let param = |row: &Row<'_>| Ok((row.get(0)?, row.get(1)?, json_in(row, 2)?));
        let mut params: Vec<(i64, String, Value)> = Vec::new();
        match keys {
            Keys::All => params = self.rows(sql, [], param)?,
            Keys::Some(keys) => {
                for key in keys {
                    let of_key = format!("{sql} WHERE key.text = ?1");
                    params.extend(self.rows(&of_key, [key], param)?);
                }
            }
        }
        for (run, key, value) in params {
            if let Some(run) = runs.get_mut(&run) {
                run.params.insert(key, value);
            }
        }
        let mut runs: Vec<Run> = runs.into_values().collect();
        let age = |run: &Run| run.started.unwrap_or(f64::MAX);
        runs.sort_by(|a, b| age(b).total_cmp(&age(a)).then_with(|| b.name.cmp(&a.name)));
        Ok(runs)
    }

    /// What `read` makes of every row of an answer.
    pub(crate) fn rows<T>(
        &self,
        sql: &str,
        given: impl Params,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, IndexError> {
        let mut statement = self.connection.prepare(sql).map_err(self.failed())?;
        let rows = statement
            .query_map(given, read)
            .and_then(|rows| rows.collect());
        rows.map_err(self.failed())
    }

    /// The keys of all parameters of all runs.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn keys(&self) -> Result<Vec<String>, IndexError> {
        self.rows("SELECT text FROM key ORDER BY text", [], |row| row.get(0))
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
        let sql = "SELECT name FROM run WHERE json_extract(origin, '$.submitted') = ?1 ORDER BY name DESC";
        self.rows(sql, [job], |row| row.get(0))
    }

    /// All that is known of a run but its points; nothing if there is no such run.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub fn details(&self, name: &str) -> Result<Option<Details>, IndexError> {
        let sql = "SELECT id, facts, origin, result FROM run WHERE name = ?1";
        type Row = (i64, Run, Option<String>, Option<String>);
        let mut found: Vec<Row> = self.rows(sql, [name], |row| {
            Ok((row.get(0)?, json_in(row, 1)?, row.get(2)?, row.get(3)?))
        })?;
        let Some((id, mut run, origin, result)) = found.pop() else {
            return Ok(None);
        };
        let sql = "SELECT key.text, param.value FROM param JOIN key ON key.id = param.key \
                   WHERE param.run = ?1";
        let params = self.rows(sql, [id], |row| Ok((row.get(0)?, json_in(row, 1)?)))?;
        run.params = params.into_iter().collect();
        let json = |text: Option<String>| text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Some(Details {
            run,
            origin: json(origin),
            result: json(result),
            artifacts: self.artifacts(id)?,
            series: self.series_of(id)?,
        }))
    }

    fn artifacts(&self, run: i64) -> Result<Vec<Artifact>, IndexError> {
        let sql = "SELECT path, size FROM artifact WHERE run = ?1 ORDER BY path";
        self.rows(sql, [run], |row| {
            Ok(Artifact {
                path: row.get(0)?,
                size: row.get::<_, i64>(1)?.max(0) as u64,
            })
        })
    }

    fn series_of(&self, run: i64) -> Result<Vec<(Kind, String, usize)>, IndexError> {
        let sql = "SELECT kind, name, (SELECT total(length(data)) FROM points WHERE points.series = series.id) \
                   FROM series WHERE run = ?1 ORDER BY kind, name";
        self.rows(sql, [run], |row| {
            let bytes: f64 = row.get(2)?;
            Ok((kind(row.get(0)?), row.get(1)?, bytes as usize / 24))
        })
    }

    /// The series of a run, without their points.
    fn named_series(&self, run: &str) -> Result<Vec<(i64, Kind, String)>, IndexError> {
        let sql = "SELECT series.id, series.kind, series.name FROM series JOIN run ON run.id = series.run \
                   WHERE run.name = ?1 ORDER BY series.kind, series.name";
        self.rows(sql, [run], |row| {
            Ok((row.get(0)?, kind(row.get(1)?), row.get(2)?))
        })
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
        let mut all = Vec::new();
        for (id, kind, name) in self.named_series(name)? {
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
        let mut all = Vec::new();
        for (id, kind, name) in self.named_series(name)? {
            let points = self.end_of(id, since).map_err(self.failed())?;
            if !points.is_empty() {
                all.push(Series { kind, name, points });
            }
        }
        Ok(all)
    }

    fn end_of(&self, series: i64, since: f64) -> rusqlite::Result<Vec<Point>> {
        let sql = "SELECT data FROM points WHERE series = ?1 ORDER BY first DESC";
        let mut statement = self.connection.prepare(sql)?;
        let mut rows = statement.query([series])?;
        let mut end: Vec<Point> = Vec::new();
        while let Some(row) = rows.next()? {
            let mut points = points_in(row, 0)?;
            let old = points.iter().rposition(|point| point.time <= since);
            let from = old.map_or(0, |last| last + 1);
            end.splice(0..0, points.drain(from..));
            if old.is_some() {
                break;
            }
        }
        Ok(end)
    }

    fn points(&self, series: i64) -> Result<Vec<Point>, IndexError> {
        let sql = "SELECT data FROM points WHERE series = ?1 ORDER BY first";
        Ok(self.rows(sql, [series], |row| points_in(row, 0))?.concat())
    }
}

/// The JSON in a column of a row.
pub(crate) fn json_in<T: DeserializeOwned>(row: &Row<'_>, column: usize) -> rusqlite::Result<T> {
    let text: String = row.get(column)?;
    serde_json::from_str(&text).map_err(|error| {
        rusqlite::Error::FromSqlConversionFailure(column, Type::Text, error.into())
    })
}

fn kind(number: i64) -> Kind {
    match number {
        0 => Kind::Metric,
        _ => Kind::System,
    }
}
