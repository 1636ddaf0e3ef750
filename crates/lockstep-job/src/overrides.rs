//! Values that the command line puts over those of the job file.

use crate::source::{JobText, Spot};
use crate::tree::{Key, Node, Value};
use crate::{Diagnostic, JobError};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// What `--set` is written as in errors, with the space before its value.
const SET: &str = "--set ";

/// A value that the command line puts over that of the job file.
///
/// Parses from `key.path=value`, what follows `--set`. The value is read as TOML, so that arrays and
/// tables can be set too; what is no TOML value is taken as a string, so that strings need no quotes.
#[derive(Debug, Clone)]
pub struct Override {
    pub(crate) path: Vec<Key>,
    pub(crate) node: Node,
}

impl Override {
    /// A string that a flag of its own sets, such as `--name`, at the path `key`.
    pub fn text(flag: &str, key: &str, value: &str) -> Override {
        Override::flag(flag, key, value, Value::Text(value.to_owned()))
    }

    /// An integer that a flag of its own sets, such as `--epochs`, at the path `key`.
    pub fn integer(flag: &str, key: &str, value: u64) -> Override {
        Override::flag(flag, key, &value.to_string(), Value::Integer(value.into()))
    }

    fn flag(flag: &str, key: &str, shown: &str, value: Value) -> Override {
        let source = Arc::new(JobText::Argument {
            text: format!("{flag} {shown}"),
            folder: None,
        });
        let name = |part: &str| Key {
            name: part.to_owned(),
            spot: Spot::new(&source, 0..flag.len()),
        };
        let start = flag.len() + 1;
        Override {
            path: key.split('.').map(name).collect(),
            node: Node {
                value,
                spot: Spot::new(&source, start..start + shown.len()),
            },
        }
    }

    /// Parses `key.path=value` whose relative paths are of `folder`, as of somebody who types it there.
    ///
    /// # Errors
    ///
    /// If there is no key, or a value that begins like an array or a table is none.
    pub fn parse_in(folder: &Path, argument: &str) -> Result<Override, JobError> {
        Override::parse(argument, Some(folder.to_owned()))
    }

    /// Whether this sets exactly the key at `path`.
    pub(crate) fn sets(&self, path: &[&str]) -> bool {
        self.path
            .iter()
            .map(|key| key.name.as_str())
            .eq(path.iter().copied())
    }
}

impl FromStr for Override {
    type Err = JobError;

    fn from_str(argument: &str) -> Result<Override, JobError> {
        Override::parse(argument, None)
    }
}

impl Override {
    fn parse(argument: &str, folder: Option<PathBuf>) -> Result<Override, JobError> {
        let refuse = |reason: &str| JobError::Override {
            reason: reason.to_owned(),
        };
        let source = Arc::new(JobText::Argument {
            text: format!("{SET}{argument}"),
            folder,
        });
        let (keys, value) = argument
            .split_once('=')
            .ok_or_else(|| refuse("there is no `=` in it"))?;

        let mut path = Vec::new();
        let mut offset = SET.len();
        for part in keys.split('.') {
            let name = part.trim();
            if name.is_empty() {
                return Err(refuse("a part of its key is empty"));
            }
            let start = offset + (part.len() - part.trim_start().len());
            path.push(Key {
                name: name.to_owned(),
                spot: Spot::new(&source, start..start + name.len()),
            });
            offset += part.len() + 1;
        }

        let start = SET.len() + keys.len() + 1 + (value.len() - value.trim_start().len());
        let node = read_value(&source, start, value.trim())
            .map_err(|diagnostic| JobError::Invalid(vec![diagnostic]))?;
        Ok(Override { path, node })
    }
}

fn read_value(source: &Arc<JobText>, start: usize, text: &str) -> Result<Node, Diagnostic> {
    let as_toml = Node::value(source, start, text);
    // What begins like a quoted string, an array or a table was meant to be one.
    if as_toml.is_ok() || text.starts_with(['"', '\'', '[', '{']) {
        return as_toml;
    }
    Ok(Node {
        value: Value::Text(text.to_owned()),
        spot: Spot::new(source, start..start + text.len()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(argument: &str) -> Override {
        argument.parse().expect("a good override")
    }

    #[test]
    fn a_value_is_toml_and_else_a_string() {
        assert!(matches!(parsed("a=3").node.value, Value::Integer(3)));
        assert!(matches!(
            parsed("a = true ").node.value,
            Value::Boolean(true)
        ));
        assert!(matches!(parsed("a=[1, 2]").node.value, Value::Array(items) if items.len() == 2));
        assert!(matches!(parsed("a={ b = 1 }").node.value, Value::Table(_)));
        assert!(matches!(parsed("a=x=y").node.value, Value::Text(text) if text == "x=y"));
        assert!(matches!(parsed("a=\"3\"").node.value, Value::Text(text) if text == "3"));
        assert!(matches!(parsed("a=").node.value, Value::Text(text) if text.is_empty()));
    }

    #[test]
    fn a_path_is_cut_at_its_points() {
        let set = parsed("train.optimizer.lr=1");
        assert!(set.sets(&["train", "optimizer", "lr"]));
        assert!(!set.sets(&["train", "optimizer"]));
        let place = set.path[1].spot.place();
        assert_eq!((place.column, place.width), (13, 9));
    }

    #[test]
    fn what_is_no_override_is_refused_with_the_form_to_use() {
        for bad in ["", "train.epochs", "=3", "train..epochs=3", ".a=1"] {
            let error = bad.parse::<Override>().expect_err(bad).to_string();
            assert!(error.contains("key=value"), "{bad}: {error}");
        }
    }

    #[test]
    fn a_broken_array_is_shown_with_its_place() {
        let error = "model.hidden=[1, 2"
            .parse::<Override>()
            .expect_err("broken");
        let shown = error.to_string();
        assert!(shown.contains("--set model.hidden=[1, 2\n"), "{shown}");
        assert!(shown.contains('^'), "{shown}");
    }
}
