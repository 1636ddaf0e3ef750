//! Tables of samples: which columns are the input, which are to be predicted.

use super::Location;
use crate::field::Field;
use crate::keys::{FromField, words};
use crate::section::Section;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The column of the classes unless another is named.
pub(super) const LABEL: &str = "label";

/// Which columns of a table mean what.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct JobColumns {
    /// The input: one column of lists, or several of numbers, categories, booleans and dates. If left out, the column
    /// `embedding` of a Parquet file that has it, and else every column but the label and the path.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub features: Option<Features>,
    /// The column of the classes, or of a number to predict; several columns are labels that are 0 or 1 each, or
    /// numbers.
    #[serde(default = "label")]
    pub label: Label,
    /// The column that says which sample a row is, such as the path of its picture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The column that says how much a sample counts in training, 0 or more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<String>,
    /// The column that says which group a row belongs to, such as a query whose answers are ranked; for trees.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// What columns hold, by their names, where looking at them would find something else.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub types: BTreeMap<String, JobColumnType>,
    /// Columns that are not part of the input.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drop: Vec<String>,
    /// What stands before the decimals of numbers in a CSV file: `.` or `,`.
    #[serde(default = "point", skip_serializing_if = "is_point")]
    pub decimal: char,
    /// What stands between groups of three digits of numbers in a CSV file: `,`, `.`, a space, `'` or `_`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thousands: Option<char>,
    /// Words for what is not there in a CSV file or JSON lines, beside the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub na: Vec<String>,
}

words! {
    /// What a column holds.
    pub enum JobColumnType {
        /// Quantities.
        "number" Number
        /// True or false.
        "boolean" Boolean
        /// One of several values, which have no order.
        "category" Category
        /// The same, for which a network learns a vector of each value.
        "embedding" Embedding
        /// Dates, times, or both.
        "date" Date
        /// Anything else: the column is left out.
        "text" Text
    }
}

pub(super) fn point() -> char {
    '.'
}

fn is_point(decimal: &char) -> bool {
    *decimal == '.'
}

/// The columns of the input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Features {
    /// One column, each of its values a list of numbers.
    List(String),
    /// Columns of single values, in this order.
    Numbers(Vec<String>),
}

/// The columns of what is to be predicted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Label {
    /// One column.
    One(String),
    /// Several columns, in this order.
    Several(Vec<String>),
}

impl Label {
    /// The names of the columns.
    pub fn names(&self) -> &[String] {
        match self {
            Label::One(name) => std::slice::from_ref(name),
            Label::Several(names) => names,
        }
    }
}

fn label() -> Label {
    Label::One(LABEL.to_owned())
}

impl Default for JobColumns {
    fn default() -> Self {
        JobColumns {
            features: None,
            label: label(),
            path: None,
            weight: None,
            group: None,
            types: BTreeMap::new(),
            drop: Vec::new(),
            decimal: point(),
            thousands: None,
            na: Vec::new(),
        }
    }
}

impl JobColumns {
    pub(super) fn read(section: &mut Section<'_>) -> Option<JobColumns> {
        let label = section.or("label", label(), |field| {
            if !field.is_array() {
                return column(&field).map(Label::One);
            }
            let names = field.all(column)?;
            let again = |(i, name): (usize, &String)| names[..i].contains(name);
            if names.is_empty() || names.iter().enumerate().any(again) {
                return field.reject("must name columns, each once", "name at least one column");
            }
            Some(Label::Several(names))
        });
        let path = section.maybe("path", |field| column(&field));
        let features = section.maybe("features", |field| {
            if !field.is_array() {
                return column(&field).map(Features::List);
            }
            let names = field.all(column)?;
            if names.is_empty() {
                return field.reject("must not be empty", "name at least one column");
            }
            for (number, name) in names.iter().enumerate() {
                if names[..number].contains(name) {
                    return field.reject(format!("names `{name}` twice"), "name each column once");
                }
                if label
                    .as_ref()
                    .is_some_and(|label| label.names().contains(name))
                {
                    return field.reject(
                        format!("names `{name}`, which is to be predicted"),
                        "leave it out here, or name another column with `label`",
                    );
                }
            }
            Some(Features::Numbers(names))
        });
        let weight = section.maybe("weight", |field| column(&field));
        let group = section.maybe("group", |field| column(&field));
        let types = section.or("types", BTreeMap::new(), |field| {
            if field.is_text() {
                return field.reject(
                    "must be a table of columns and what they hold, found a string",
                    "name the columns: `types = { COLUMN = \"category\" }`",
                );
            }
            let each = field.section_or("a table of columns and what they hold")?;
            let types = each.into_fields().into_iter().map(|(name, field)| {
                let word = JobColumnType::from_field(&field)?;
                Some((name.to_owned(), word))
            });
            types.collect()
        });
        let drop = section.or("drop", Vec::new(), |field| {
            let names = field.all(column)?;
            let features = features.as_ref().and_then(Option::as_ref);
            match features.is_some() && !names.is_empty() {
                true => field.reject(
                    "cannot be used together with `features`",
                    "columns that `features` does not name are no input anyway",
                ),
                false => Some(names),
            }
        });
        Some(JobColumns {
            features: features?,
            label: label?,
            path: path?,
            weight: weight?,
            group: group?,
            types: types?,
            drop: drop?,
            ..JobColumns::default()
        })
    }
}

fn column(field: &Field<'_>) -> Option<String> {
    match field.text()? {
        "" => field.reject("must name a column", "this names none"),
        name => Some(name.to_owned()),
    }
}

/// Reads `{ parquet = "..." }` or the like; the key is there.
pub(super) fn read_columns(
    mut section: Section<'_>,
    key: &'static str,
) -> Option<(Location, JobColumns)> {
    let files = section
        .get(key)
        .and_then(|field| Location::from_field(&field));
    let columns = JobColumns::read(&mut section);
    section.finish();
    files.zip(columns)
}

/// Reads `{ jsonl = "..." }`; the key is there.
pub(super) fn read_json_lines(mut section: Section<'_>) -> Option<(Location, JobColumns)> {
    let files = section
        .get("jsonl")
        .and_then(|field| Location::from_field(&field));
    let columns = JobColumns::read(&mut section);
    let na = section.or("na", Vec::new(), |field| words_for_gaps(&field));
    section.finish();
    let columns = JobColumns {
        na: na?,
        ..columns?
    };
    Some((files?, columns))
}

/// Words for what is not there.
pub(super) fn words_for_gaps(field: &Field<'_>) -> Option<Vec<String>> {
    field.all(|field| match field.text()?.trim() {
        "" => field.reject("must be a word", "an empty cell is a gap anyway"),
        word => Some(word.to_owned()),
    })
}
