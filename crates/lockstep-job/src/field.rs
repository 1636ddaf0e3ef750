//! Reading one typed value out of the tree, with every mistake reported at its spot.
//!
//! Reading gives `None` once a mistake has been reported, so a reader goes on to its other fields and
//! one look at the job finds all its mistakes.

use crate::Diagnostic;
use crate::nearest::suggestion;
use crate::section::Section;
use crate::tree::{Node, Value};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// The mistakes found so far, and what all readers need to know.
pub(crate) struct Report<'a> {
    /// The job file, as the user named it.
    pub(crate) file: &'a Path,
    /// The job file's folder, absolute.
    pub(crate) folder: &'a Path,
    found: RefCell<Vec<Diagnostic>>,
}

impl<'a> Report<'a> {
    pub(crate) fn new(file: &'a Path, folder: &'a Path) -> Self {
        Report {
            file,
            folder,
            found: RefCell::new(Vec::new()),
        }
    }

    pub(crate) fn add(&self, diagnostic: Diagnostic) {
        self.found.borrow_mut().push(diagnostic);
    }

    pub(crate) fn into_found(self) -> Vec<Diagnostic> {
        self.found.into_inner()
    }
}

/// What a float must satisfy.
pub(crate) struct Rule {
    holds: fn(f64) -> bool,
    words: &'static str,
    /// The same as limits of a JSON Schema.
    pub(crate) limits: &'static [(&'static str, u32)],
}

impl Rule {
    pub(crate) const FINITE: Rule = Rule {
        holds: |_| true,
        words: "a finite number",
        limits: &[],
    };
    pub(crate) const NOT_ZERO: Rule = Rule {
        holds: |x| x != 0.0,
        words: "a finite number other than 0",
        limits: &[],
    };
    pub(crate) const POSITIVE: Rule = Rule {
        holds: |x| x > 0.0,
        words: "greater than 0",
        limits: &[("exclusiveMinimum", 0)],
    };
    pub(crate) const NOT_NEGATIVE: Rule = Rule {
        holds: |x| x >= 0.0,
        words: "0 or greater",
        limits: &[("minimum", 0)],
    };
    pub(crate) const BELOW_ONE: Rule = Rule {
        holds: |x| (0.0..1.0).contains(&x),
        words: "at least 0 and less than 1",
        limits: &[("minimum", 0), ("exclusiveMaximum", 1)],
    };
    pub(crate) const SHARE: Rule = Rule {
        holds: |x| (0.0..=1.0).contains(&x),
        words: "at least 0 and at most 1",
        limits: &[("minimum", 0), ("maximum", 1)],
    };
    /// A share of which there must be something.
    pub(crate) const SOME_SHARE: Rule = Rule {
        holds: |x| x > 0.0 && x <= 1.0,
        words: "greater than 0 and at most 1",
        limits: &[("exclusiveMinimum", 0), ("maximum", 1)],
    };
    pub(crate) const ANGLE: Rule = Rule {
        holds: |x| (0.0..=180.0).contains(&x),
        words: "at least 0 and at most 180",
        limits: &[("minimum", 0), ("maximum", 180)],
    };
    /// Where shares are neither all 0 and 1, nor all alike.
    pub(crate) const SPREAD: Rule = Rule {
        holds: |x| (0.05..=2.0).contains(&x),
        words: "at least 0.05 and at most 2",
        limits: &[("maximum", 2)],
    };
    /// A week is longer than any wait that makes sense, and far from overflowing a clock.
    pub(crate) const SECONDS: Rule = Rule {
        holds: |x| x > 0.0 && x <= 604_800.0,
        words: "greater than 0 and at most 604800 (a week)",
        limits: &[("exclusiveMinimum", 0)],
    };
}

/// One value, with the path of keys that leads to it.
pub(crate) struct Field<'a> {
    node: &'a Node,
    path: String,
    report: &'a Report<'a>,
}

impl<'a> Field<'a> {
    pub(crate) fn new(node: &'a Node, path: impl Into<String>, report: &'a Report<'a>) -> Self {
        Field {
            node,
            path: path.into(),
            report,
        }
    }

    /// Reports a mistake in this value.
    pub(crate) fn reject<T>(&self, what: impl AsRef<str>, label: impl AsRef<str>) -> Option<T> {
        let message = format!("`{}` {}", self.path, what.as_ref());
        self.report
            .add(Diagnostic::at(&self.node.spot, message, label));
        None
    }

    fn wrong_type<T>(&self, expected: &str) -> Option<T> {
        let found = self.node.value.kind();
        self.reject(
            format!("must be {expected}, found {found}"),
            format!("expected {expected}"),
        )
    }

    /// Whether the command line, not the file, says so.
    pub(crate) fn is_override(&self) -> bool {
        self.node.spot.is_argument()
    }

    pub(crate) fn is_text(&self) -> bool {
        matches!(self.node.value, Value::Text(_))
    }

    pub(crate) fn is_table(&self) -> bool {
        matches!(self.node.value, Value::Table(_))
    }

    /// Whether it is this text.
    pub(crate) fn says(&self, words: &str) -> bool {
        matches!(&self.node.value, Value::Text(text) if text == words)
    }

    pub(crate) fn is_array(&self) -> bool {
        matches!(self.node.value, Value::Array(_))
    }

    pub(crate) fn boolean(&self) -> Option<bool> {
        match self.node.value {
            Value::Boolean(value) => Some(value),
            _ => self.wrong_type("true or false"),
        }
    }

    pub(crate) fn text(&self) -> Option<&'a str> {
        match &self.node.value {
            Value::Text(text) => Some(text),
            _ => self.wrong_type("a string"),
        }
    }

    /// An integer within a range that `T` can hold.
    pub(crate) fn integer<T>(&self, range: RangeInclusive<T>) -> Option<T>
    where
        T: TryFrom<i128> + PartialOrd + std::fmt::Display + Copy,
    {
        let Value::Integer(value) = self.node.value else {
            return self.wrong_type("an integer");
        };
        let held = T::try_from(value).ok();
        if let Some(value) = held.filter(|v| range.contains(v)) {
            return Some(value);
        }
        let limit = if value < 1 || held.is_some_and(|v| v < *range.start()) {
            format!("at least {}", range.start())
        } else {
            format!("at most {}", range.end())
        };
        let found = match i64::try_from(value) {
            Ok(value) => format!(", found {value}"),
            // The line below shows it in full.
            Err(_) => String::new(),
        };
        self.reject(
            format!("must be {limit}{found}"),
            format!("must be {limit}"),
        )
    }

    /// A number. All arithmetic is in `f32`, so the rule must hold there too.
    pub(crate) fn number(&self, rule: &Rule) -> Option<f64> {
        let value = match self.node.value {
            Value::Float(value) => value,
            Value::Integer(value) => value as f64,
            _ => return self.wrong_type("a number"),
        };
        let single = f64::from(value as f32);
        let wanted = if !(rule.holds)(value) {
            format!("must be {}", rule.words)
        } else if !value.is_finite() {
            "must be a finite number".to_owned()
        } else if !single.is_finite() {
            let (side, limit) = if value > 0.0 {
                ("at most", f32::MAX)
            } else {
                ("at least", f32::MIN)
            };
            format!("must be {side} {limit:e}, the limit of a 32-bit float")
        } else if !(rule.holds)(single) {
            format!("must be {} as a 32-bit float", rule.words)
        } else {
            return Some(value);
        };
        self.reject(format!("{wanted}, found {value:?}"), wanted)
    }

    /// One of several words.
    pub(crate) fn one_of(&self, words: &[&'static str]) -> Option<&'static str> {
        let text = self.text()?;
        let found = words.iter().copied().find(|word| *word == text);
        found.or_else(|| self.reject(format!("cannot be {text:?}"), suggestion(text, words)))
    }

    /// A local path, made absolute: from the folder of whoever wrote it on the command line, else from the job file's.
    pub(crate) fn path(&self) -> Option<PathBuf> {
        let text = self.text()?;
        if text.is_empty() || text.contains('\0') {
            return self.reject("must be a path", "this names no file");
        }
        if let Some((scheme, _)) = text.split_once("://")
            && !scheme.contains('/')
        {
            return self.reject(
                format!("cannot be a `{scheme}://` URL"),
                "only paths on this machine are supported",
            );
        }
        if text == "~" || text.starts_with("~/") {
            return self.reject(
                "cannot begin with `~`",
                "write the path of the home folder in full",
            );
        }
        let folder = self.node.spot.folder().unwrap_or(self.report.folder);
        match std::path::absolute(folder.join(text)) {
            Ok(path) => Some(path),
            Err(error) => self.reject("is not a usable path", error.to_string()),
        }
    }

    /// The elements of an array.
    pub(crate) fn items(&self) -> Option<Vec<Field<'a>>> {
        self.items_or("an array")
    }

    /// The elements of an array, where `expected` says what else the value may be.
    pub(crate) fn items_or(&self, expected: &str) -> Option<Vec<Field<'a>>> {
        let Value::Array(items) = &self.node.value else {
            return self.wrong_type(expected);
        };
        let field = |(i, node)| Field::new(node, format!("{}[{i}]", self.path), self.report);
        Some(items.iter().enumerate().map(field).collect())
    }

    /// Every element of an array read the same way; `None` if any is wrong.
    pub(crate) fn all<T>(&self, read: impl Fn(&Field<'a>) -> Option<T>) -> Option<Vec<T>> {
        // Reads them all before giving up, so that every mistake is reported.
        let read: Vec<Option<T>> = self.items()?.iter().map(read).collect();
        read.into_iter().collect()
    }

    /// What `read` makes of every key of a table and its value. All of them are read, so that all mistakes are found.
    pub(crate) fn map<T>(
        &self,
        expected: &str,
        read: impl Fn(&str, &Field<'a>) -> Option<T>,
    ) -> Option<BTreeMap<String, T>> {
        let fields = self.section_or(expected)?.into_fields();
        let read = |(name, field): (&str, Field<'a>)| Some((name.to_owned(), read(name, &field)?));
        let read: Vec<Option<_>> = fields.into_iter().map(read).collect();
        read.into_iter().collect()
    }

    /// Any value at all, as JSON has it.
    pub(crate) fn json(&self) -> Option<serde_json::Value> {
        Some(match &self.node.value {
            Value::Boolean(value) => (*value).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Float(value) => match serde_json::Number::from_f64(*value) {
                Some(number) => number.into(),
                None => return self.wrong_type("a finite number"),
            },
            Value::Integer(value) => match i64::try_from(*value) {
                Ok(value) => value.into(),
                Err(_) => return self.wrong_type("a number of 64 bits"),
            },
            Value::Datetime => return self.wrong_type("a string"),
            Value::Array(_) => serde_json::Value::Array(self.all(Field::json)?),
            Value::Table(_) => {
                let fields = self.section()?.into_fields();
                let read =
                    |(name, field): (&str, Field<'_>)| Some((name.to_owned(), field.json()?));
                fields.into_iter().map(read).collect::<Option<_>>()?
            }
        })
    }

    pub(crate) fn section(&self) -> Option<Section<'a>> {
        self.section_or("a table")
    }

    /// A table, where `expected` says what else the value may be.
    pub(crate) fn section_or(&self, expected: &str) -> Option<Section<'a>> {
        let Value::Table(entries) = &self.node.value else {
            return self.wrong_type(expected);
        };
        Some(Section::new(
            entries,
            &self.node.spot,
            self.path.clone(),
            self.report,
        ))
    }
}
