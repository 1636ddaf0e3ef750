//! Values of `[kube]` that are written as one text each: taints that are put up with, and volumes.

use super::names::{is_label_key, is_label_value, is_subdomain};
use crate::field::Field;
use crate::keys::as_text;
use std::collections::BTreeMap;
use std::fmt;

const TOLERATION: &str =
    "such as \"spot=true:NoSchedule\", \"nvidia.com/gpu:NoSchedule\" or \"nvidia.com/gpu\"";
const VOLUME: &str =
    "such as \"claim:datasets\", \"claim:datasets:ro\", \"secret:keys\" or \"host:/mnt/data\"";
const EFFECTS: [&str; 3] = ["NoSchedule", "PreferNoSchedule", "NoExecute"];

/// A taint of nodes that pods put up with, written `key=value:effect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toleration {
    /// The taint's key.
    pub key: String,
    /// The taint's value; if left out, any.
    pub value: Option<String>,
    /// What the taint does; if left out, any.
    pub effect: Option<String>,
}

impl Toleration {
    fn parse(text: &str) -> Option<Self> {
        let (taint, effect) = match text.rsplit_once(':') {
            Some((taint, effect)) => (taint, Some(effect)),
            None => (text, None),
        };
        let (key, value) = match taint.split_once('=') {
            Some((key, value)) => (key, Some(value)),
            None => (taint, None),
        };
        let right = is_label_key(key)
            && value.is_none_or(is_label_value)
            && effect.is_none_or(|effect| EFFECTS.contains(&effect));
        right.then(|| Self {
            key: key.to_owned(),
            value: value.map(str::to_owned),
            effect: effect.map(str::to_owned),
        })
    }

    pub(super) fn read(field: &Field<'_>) -> Option<Self> {
        let text = field.text()?;
        Self::parse(text).or_else(|| field.reject(format!("cannot be {text:?}"), TOLERATION))
    }
}

impl fmt::Display for Toleration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.key)?;
        if let Some(value) = &self.value {
            write!(f, "={value}")?;
        }
        match &self.effect {
            Some(effect) => write!(f, ":{effect}"),
            None => Ok(()),
        }
    }
}

/// What is mounted into pods, written `claim:NAME` and the like.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// What it is.
    pub source: VolumeSource,
    /// Whether nothing may be written.
    pub read_only: bool,
}

/// What a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeSource {
    /// A persistent volume, by its claim.
    Claim(String),
    /// The files of a Secret.
    Secret(String),
    /// A folder of the node.
    Host(String),
}

impl Volume {
    fn parse(text: &str) -> Option<Self> {
        let (kind, rest) = text.split_once(':')?;
        let (name, read_only) = match rest.strip_suffix(":ro") {
            Some(name) => (name, true),
            None => (rest, false),
        };
        let source = match kind {
            "claim" if is_subdomain(name) => VolumeSource::Claim(name.to_owned()),
            "secret" if is_subdomain(name) => VolumeSource::Secret(name.to_owned()),
            "host" if is_folder(name) => VolumeSource::Host(name.to_owned()),
            _ => return None,
        };
        Some(Self { source, read_only })
    }

    pub(super) fn read_all(field: &Field<'_>) -> Option<BTreeMap<String, Self>> {
        let expected = "a table such as { \"/data\" = \"claim:datasets\" }";
        field.map(expected, |path, field| {
            let text = field.text()?;
            let is_place = is_folder(path) && path != "/";
            if !is_place {
                let what = "must be mounted at an absolute path without `:` and `..`";
                field.reject::<()>(what, "such as \"/data\"");
            }
            let volume = Self::parse(text);
            let volume = volume.or_else(|| field.reject(format!("cannot be {text:?}"), VOLUME));
            volume.filter(|_| is_place)
        })
    }
}

fn is_folder(path: &str) -> bool {
    path.starts_with('/') && !path.contains([':', '\0']) && path.split('/').all(|part| part != "..")
}

impl fmt::Display for Volume {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.source {
            VolumeSource::Claim(name) => write!(f, "claim:{name}")?,
            VolumeSource::Secret(name) => write!(f, "secret:{name}")?,
            VolumeSource::Host(path) => write!(f, "host:{path}")?,
        }
        f.write_str(if self.read_only { ":ro" } else { "" })
    }
}

as_text!(Toleration, |text| Self::parse(text).ok_or(TOLERATION), { "type": "string", "description": TOLERATION });
as_text!(Volume, |text| Self::parse(text).ok_or(VOLUME), { "type": "string", "description": VOLUME });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_as_text_reads_back_as_itself() {
        for text in [
            "spot=true:NoSchedule",
            "nvidia.com/gpu:NoExecute",
            "a",
            "a=b",
        ] {
            assert_eq!(Toleration::parse(text).unwrap().to_string(), text);
        }
        for text in ["claim:a", "claim:a.b:ro", "secret:keys", "host:/mnt/x:ro"] {
            assert_eq!(Volume::parse(text).unwrap().to_string(), text);
        }
    }

    #[test]
    fn what_kubernetes_would_refuse_is_refused() {
        for text in ["", ":NoSchedule", "a:Never", "a b", "a=b c"] {
            assert_eq!(Toleration::parse(text), None, "{text}");
        }
        for text in [
            "a",
            "claim:",
            "claim:A",
            "host:rel",
            "host:/a/../b",
            "disk:x",
        ] {
            assert_eq!(Volume::parse(text), None, "{text}");
        }
    }
}
