//! The environment's variables that hold secrets and defaults of the clouds.

use std::collections::BTreeMap;
use std::fmt;

/// The variables `AWS_*`, `AZURE_*` and `GOOGLE_*`, by name.
///
/// A value of its own, so that a caller may pass others than its process has. Only names are ever shown.
#[derive(Clone, Default)]
pub struct Variables(BTreeMap<String, String>);

impl Variables {
    /// Those of this process. A value that is empty or not UTF-8 counts as not set.
    pub fn of_process() -> Variables {
        std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect()
    }

    /// The value of one, if it is set.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Which of `names` are set, in that order, with their values.
    pub(crate) fn set<'a>(
        &'a self,
        names: &'a [&'a str],
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        names
            .iter()
            .filter_map(|&name| Some((name, self.get(name)?)))
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Variables {
        let known = |name: &str| {
            ["AWS_", "AZURE_", "GOOGLE_"]
                .iter()
                .any(|cloud| name.starts_with(cloud))
        };
        let pairs = variables.into_iter().map(|(n, v)| (n.into(), v.into()));
        Variables(
            pairs
                .filter(|(name, value): &(String, String)| known(name) && !value.is_empty())
                .collect(),
        )
    }
}

impl fmt::Debug for Variables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_are_shown_and_an_empty_value_counts_as_not_set() {
        let variables = Variables::from_iter([
            ("AWS_SECRET_ACCESS_KEY", "hunter2"),
            ("AWS_SESSION_TOKEN", ""),
            ("HOME", "/root"),
        ]);
        assert_eq!(format!("{variables:?}"), r#"{"AWS_SECRET_ACCESS_KEY"}"#);
        assert_eq!(variables.get("AWS_SESSION_TOKEN"), None);
        let names = ["AWS_SESSION_TOKEN", "AWS_SECRET_ACCESS_KEY"];
        let set: Vec<_> = variables.set(&names).collect();
        assert_eq!(set, [("AWS_SECRET_ACCESS_KEY", "hunter2")]);
    }
}
