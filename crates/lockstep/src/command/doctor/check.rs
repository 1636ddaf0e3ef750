//! One thing that was looked at.

use lockstep_job::without_secrets;
use serde::Serialize;

/// How it is. What is worse is larger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum State {
    /// As it should be.
    Ok,
    /// Not there, and nobody asked for it.
    Absent,
    /// It works, and not as well as it could.
    Warning,
    /// It does not work.
    Problem,
}

/// One thing that was looked at. No secret is in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) state: State,
    /// What was found, as a sentence.
    pub(super) found: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) what_to_do: Option<String>,
}

impl Check {
    /// It is as it should be.
    pub(super) fn ok(name: &'static str, found: impl AsRef<str>) -> Check {
        Check {
            name,
            state: State::Ok,
            found: masked(found.as_ref()),
            what_to_do: None,
        }
    }

    /// It is not, and this helps.
    pub(super) fn wrong(
        state: State,
        name: &'static str,
        found: impl AsRef<str>,
        what_to_do: impl AsRef<str>,
    ) -> Check {
        Check {
            state,
            what_to_do: Some(masked(what_to_do.as_ref())),
            ..Check::ok(name, found)
        }
    }
}

/// A text without the secrets of the addresses in it.
fn masked(text: &str) -> String {
    let words = text.split(' ').map(|word| {
        // What stands before an address, such as a bracket or a key, stays.
        let start = word.find("://").map_or(0, |at| {
            let scheme = word[..at].rfind(|c: char| !c.is_ascii_alphanumeric());
            scheme.map_or(0, |before| before + 1)
        });
        format!("{}{}", &word[..start], without_secrets(&word[start..]))
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_secret_of_an_address_is_told() {
        let check = Check::wrong(
            State::Problem,
            "store",
            "cannot reach (http://me:hunter2@host:5000)",
            "look at url=https://me:hunter2@host/x",
        );
        let text = serde_json::to_string(&check).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        assert!(text.contains("http://host:5000"), "{text}");
    }
}
