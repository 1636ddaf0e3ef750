//! Which columns of a table make a sample.

use crate::CellForm;
use crate::kind::{ColumnKind, ColumnType, LeftOut};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The columns that are read, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ColumnNames {
    /// The numbers of a sample: lists, single numbers, or some of both, which are laid out one after the
    /// other in this order. A list must have the same length in every row. If none is named, the column
    /// `embedding` of a Parquet file that has it, and else every column but the label and the path.
    pub features: Vec<String>,
    /// Whether these are the columns of another table, the one that a model was trained on. A Parquet file may have them as
    /// one column of lists instead, `embedding`.
    #[serde(default)]
    pub of_training: bool,
    /// What each of these holds; numbers, if nothing is said.
    #[serde(default)]
    pub kinds: Vec<ColumnKind>,
    /// What columns hold, by their names, where that is not to be found out by [looking](crate::look).
    #[serde(default)]
    pub types: BTreeMap<String, ColumnType>,
    /// Columns that are not part of the input where none is named.
    #[serde(default)]
    pub drop: Vec<String>,
    /// How cells of text are written.
    #[serde(default)]
    pub form: CellForm,
    /// The class: text, numbers or booleans. Read as text.
    pub label: Option<String>,
    /// Whether rows may be without what is to be predicted: a class is an empty text then, and a number NaN.
    #[serde(default)]
    pub label_gaps: bool,
    /// What is to be predicted instead of a class: numbers, or booleans, which are 0 and 1.
    pub numbers: Vec<String>,
    /// Where a sample comes from: text.
    pub path: Option<String>,
    /// How much a sample counts: numbers, none below 0.
    #[serde(default)]
    pub weight: Option<String>,
    /// Which group a sample belongs to: text, numbers or booleans. Read as text.
    #[serde(default)]
    pub group: Option<String>,
    /// What becomes of numbers of a sample that are not there.
    #[serde(default)]
    pub gaps: Gaps,
}

/// What becomes of numbers that are not there: empty cells, nulls, and numbers that are none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gaps {
    /// The table is refused.
    #[default]
    Refuse,
    /// They are NaN.
    Keep,
}

impl ColumnNames {
    /// The columns of the input in a table that has `all`: those that are named, or every one that is nothing else; and
    /// those that nobody would want.
    pub fn choose(&self, all: &[String]) -> (Vec<String>, Vec<LeftOut>) {
        if !self.features.is_empty() {
            return (self.features.clone(), Vec::new());
        }
        let is_else = |name: &String| {
            self.label.as_ref() == Some(name)
                || self.path.as_ref() == Some(name)
                || self.weight.as_ref() == Some(name)
                || self.group.as_ref() == Some(name)
                || self.numbers.contains(name)
                || self.drop.contains(name)
        };
        let (index, chosen): (Vec<&String>, Vec<&String>) = all
            .iter()
            .filter(|name| !is_else(name))
            .partition(|name| is_index(name) && !self.types.contains_key(*name));
        let left_out = index.into_iter().map(|name| LeftOut {
            name: name.clone(),
            reason: "it is the number of the row, as data frames write it".to_owned(),
        });
        (chosen.into_iter().cloned().collect(), left_out.collect())
    }

    /// The names that the table must have, though it would be read without: a name that is mistyped would else be
    /// overlooked.
    pub(crate) fn mentioned(&self) -> impl Iterator<Item = &String> {
        self.drop.iter().chain(self.types.keys())
    }
}

/// Whether a column has the name, or has none, that data frames give to the numbers of their rows.
fn is_index(name: &str) -> bool {
    let number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let unnamed = name.strip_prefix("Unnamed: ").is_some_and(number);
    let level = name.strip_prefix("__index_level_");
    let level = level.and_then(|rest| rest.strip_suffix("__"));
    name.is_empty() || unnamed || level.is_some_and(number)
}

/// The name among `names` that is most likely meant by `wanted`, for an error's advice.
pub(crate) fn advice<'a>(wanted: &str, names: impl Iterator<Item = &'a str> + Clone) -> String {
    const CLOSE: f64 = 0.7;
    const LISTED: usize = 20;
    let mut only = names.clone();
    if let (Some(name), None) = (only.next(), only.next())
        && let Some(sign) = name
            .chars()
            .find(|sign| matches!(sign, ',' | ';' | '\t' | '|'))
    {
        return format!(
            "its first line is one column, `{}`; if {sign:?} is between columns, say `delimiter = \"{}\"`",
            shown(name),
            sign.escape_default()
        );
    }
    let likeness = |name: &&str| strsim::jaro_winkler(&wanted.to_lowercase(), &name.to_lowercase());
    let near = names
        .clone()
        .map(|name| (likeness(&name), name))
        .filter(|(likeness, _)| *likeness >= CLOSE)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    if let Some((_, name)) = near {
        return format!("did you mean `{}`?", shown(name));
    }
    let count = names.clone().count();
    let listed: Vec<_> = names
        .take(LISTED)
        .map(|name| format!("`{}`", shown(name)))
        .collect();
    match count {
        0 => "it has no columns".to_owned(),
        _ if count > LISTED => format!("it has {}, … ({count} in all)", listed.join(", ")),
        _ => format!("it has {}", listed.join(", ")),
    }
}

/// Text of a file for a message: what would command a terminal is escaped, what is long is cut.
pub(crate) fn shown(text: &str) -> String {
    const LONGEST: usize = 200;
    let mut shown: String = text.chars().take(LONGEST).flat_map(escaped).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push('…');
    }
    shown
}

fn escaped(c: char) -> impl Iterator<Item = char> {
    let (plain, escaped) = match c.is_control() {
        true => (None, Some(c.escape_default())),
        false => (Some(c), None),
    };
    plain.into_iter().chain(escaped.into_iter().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_advised_or_all_are_listed() {
        let advice = |wanted, names: &[&'static str]| advice(wanted, names.iter().copied());
        let names = ["path", "label", "embedding"];
        assert_eq!(advice("embeddings", &names), "did you mean `embedding`?");
        assert_eq!(advice("Label", &names), "did you mean `label`?");
        assert_eq!(advice("xyz", &names), "it has `path`, `label`, `embedding`");
        assert_eq!(advice("xyz", &[]), "it has no columns");
        let one_column = advice("label", &["a;b;label"]);
        assert!(
            one_column.ends_with("say `delimiter = \";\"`"),
            "{one_column}"
        );
        assert!(advice("x", &["qq"; 30]).ends_with("… (30 in all)"));
    }

    #[test]
    fn text_of_a_file_never_commands_the_terminal() {
        assert_eq!(shown("a\u{1b}[2J\nñ"), r"a\u{1b}[2J\nñ");
        assert_eq!(shown(&"x".repeat(500)).chars().count(), 201);
    }
}
