//! What a machine has, and what a job needs of it.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a machine has for jobs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Machine {
    /// Processors.
    pub cpus: f64,
    /// Bytes of memory.
    pub memory: u64,
    /// GPUs.
    pub gpus: u32,
    /// Anything else that is counted, by name.
    pub resources: BTreeMap<String, f64>,
    /// What is said of it, for label selectors.
    pub labels: BTreeMap<String, String>,
}

impl Machine {
    /// All of this machine.
    pub fn here() -> Machine {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        Machine {
            cpus: cpus as f64,
            memory: total_memory(),
            gpus: gpus(),
            resources: BTreeMap::new(),
            labels: BTreeMap::new(),
        }
    }

    /// Why a job can never run here; none if it can.
    pub fn lacks(&self, needs: &Needs) -> Option<String> {
        let too_much = |what: &str, asked: String, there: String| {
            Some(format!(
                "{what}: the job asks for {asked}, and the machine has {there} for jobs"
            ))
        };
        if needs.cpus() > self.cpus {
            let (asked, there) = (needs.cpus().to_string(), self.cpus.to_string());
            return too_much("entrypoint_num_cpus", asked, there);
        }
        if needs.gpus > f64::from(self.gpus) {
            let (asked, there) = (needs.gpus.to_string(), self.gpus.to_string());
            return too_much("entrypoint_num_gpus", asked, there);
        }
        if needs.memory > self.memory {
            let (asked, there) = (needs.memory.to_string(), self.memory.to_string());
            return too_much("entrypoint_memory", asked, there);
        }
        for (name, asked) in &needs.resources {
            let there = self.resources.get(name).copied().unwrap_or_default();
            if *asked > there {
                let what = format!("entrypoint_resources.{name}");
                return too_much(&what, asked.to_string(), there.to_string());
            }
        }
        for (name, wanted) in &needs.labels {
            let found = self.labels.get(name).map(String::as_str);
            if !label_matches(wanted, found) {
                let found = found.unwrap_or("no such label");
                return Some(format!(
                    "entrypoint_label_selector.{name}: the job asks for {wanted}, and the machine has {found}"
                ));
            }
        }
        None
    }
}

/// What a job needs of a machine for as long as it runs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// Processors; one if nothing was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<f64>,
    /// GPUs; a part of one may be asked for.
    #[serde(default)]
    pub gpus: f64,
    /// Bytes of memory.
    #[serde(default)]
    pub memory: u64,
    /// Anything else that is counted, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resources: BTreeMap<String, f64>,
    /// What must be said of the machine: `v`, `!v`, `in(a,b)`, `!in(a,b)`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl Needs {
    /// Processors; one if nothing was said.
    pub fn cpus(&self) -> f64 {
        self.cpus.unwrap_or(1.0)
    }

    /// Why these can be nobody's needs; none if they can.
    pub(crate) fn wrong(&self) -> Option<String> {
        let amounts = self.resources.iter().map(|(name, n)| (name.as_str(), *n));
        let amounts = amounts.chain([
            ("entrypoint_num_cpus", self.cpus()),
            ("entrypoint_num_gpus", self.gpus),
        ]);
        for (name, amount) in amounts {
            if !(amount.is_finite() && amount >= 0.0) {
                return Some(format!("{name}: {amount} is no amount"));
            }
        }
        (self.gpus > 1.0 && self.gpus.fract() != 0.0).then(|| {
            format!(
                "entrypoint_num_gpus: {} is more than one and not whole",
                self.gpus
            )
        })
    }
}

/// Whether a label is as a selector wants it, in Ray's words.
fn label_matches(wanted: &str, found: Option<&str>) -> bool {
    let (not, wanted) = match wanted.strip_prefix('!') {
        Some(rest) => (true, rest),
        None => (false, wanted),
    };
    let listed = wanted.strip_prefix("in(").and_then(|w| w.strip_suffix(')'));
    let matches = match (listed, found) {
        (_, None) => false,
        (Some(list), Some(found)) => list.split(',').any(|word| word.trim() == found),
        (None, Some(found)) => wanted == found,
    };
    matches != not
}

fn total_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next());
    kilobytes.and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) * 1024
}

/// GPUs by their device files: one cannot be used without.
fn gpus() -> u32 {
    let Ok(devices) = std::fs::read_dir("/dev") else {
        return 0;
    };
    let is_gpu = |name: &str| {
        let number = name.strip_prefix("nvidia");
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    let names = devices.flatten().map(|entry| entry.file_name());
    let count = names
        .filter(|name| name.to_str().is_some_and(is_gpu))
        .count();
    u32::try_from(count).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine() -> Machine {
        Machine {
            cpus: 2.0,
            memory: 1 << 30,
            gpus: 1,
            resources: BTreeMap::from([("licence".into(), 1.0)]),
            labels: BTreeMap::from([("zone".into(), "z1".into())]),
        }
    }

    #[test]
    fn what_can_never_run_is_told_with_what_there_is() {
        let needs = Needs {
            cpus: Some(3.0),
            ..Needs::default()
        };
        let why = machine().lacks(&needs).unwrap();
        assert!(why.contains("asks for 3, and the machine has 2"), "{why}");
        for (name, wanted, fits) in [
            ("zone", "z1", true),
            ("zone", "!z1", false),
            ("zone", "in(z0, z1)", true),
            ("zone", "!in(z0,z2)", true),
            ("room", "x", false),
            ("room", "!x", true),
        ] {
            let labels = BTreeMap::from([(name.to_owned(), wanted.to_owned())]);
            let needs = Needs {
                labels,
                ..Needs::default()
            };
            assert_eq!(machine().lacks(&needs).is_none(), fits, "{name} {wanted}");
        }
        let resources = BTreeMap::from([("licence".to_owned(), 2.0)]);
        let needs = Needs {
            resources,
            ..Needs::default()
        };
        assert!(machine().lacks(&needs).unwrap().contains("licence"));
        assert_eq!(machine().lacks(&Needs::default()), None);
    }

    #[test]
    fn amounts_that_are_none_are_refused() {
        for cpus in [-1.0, f64::NAN, f64::INFINITY] {
            let needs = Needs {
                cpus: Some(cpus),
                ..Needs::default()
            };
            assert!(needs.wrong().is_some(), "{cpus}");
        }
        let gpus = |gpus| Needs {
            gpus,
            ..Needs::default()
        };
        assert!(gpus(1.5).wrong().is_some());
        assert!(gpus(0.5).wrong().is_none() && gpus(2.0).wrong().is_none());
    }
}
