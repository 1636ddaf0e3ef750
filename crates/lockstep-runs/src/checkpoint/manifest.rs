//! The manifest: what a checkpoint consists of.
//!
//! Two lines of text: a JSON object, and the SHA-256 of that line. All formats to come keep to this, so
//! that one from a newer program can be told from one that is damaged.

use super::damage::{Damage, Damaged};

use crate::Generation;
use crate::files::MANIFEST;
use lockstep_base::fs::sha256;
use lockstep_place::Place;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The newest format that this program reads, and the one it writes.
pub(super) const FORMAT: u64 = 1;

/// The manifest of the checkpoint in `folder`.
pub(super) fn of(folder: &Place) -> Place {
    folder.join(MANIFEST).expect("a plain name leads down")
}

/// What a checkpoint consists of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Manifest {
    pub(super) format: u64,
    /// What the caller wants to know about the parts.
    pub(super) header: Value,
    pub(super) parts: Vec<Part>,
    /// The gang that wrote it; absent from one whose writer did not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) generation: Option<Generation>,
}

/// One file of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) name: String,
    pub(super) bytes: u64,
    pub(super) sha256: String,
}

/// As much of a manifest as every format has.
#[derive(Deserialize)]
struct AnyFormat {
    format: u64,
}

impl Manifest {
    pub(super) fn to_text(&self) -> String {
        let line = serde_json::to_string(self).expect("a manifest is plain data");
        let hash = sha256(line.as_bytes());
        format!("{line}\n{hash}\n")
    }

    pub(super) fn read(place: &Place) -> Result<Self, Damaged> {
        let bytes = place.read().map_err(Damaged::unread(place))?;
        let wrong = |damage| Damaged::new(place, damage);
        let form = |error: serde_json::Error| wrong(Damage::Form(error.to_string()));
        let mut lines = bytes.split(|byte| *byte == b'\n');
        let line = lines.next().unwrap_or_default();
        if lines.next() != Some(sha256(line).as_bytes()) {
            return Err(wrong(Damage::Hash));
        }
        let AnyFormat { format } = serde_json::from_slice(line).map_err(form)?;
        if format > FORMAT {
            return Err(wrong(Damage::Newer { found: format }));
        }
        let manifest: Self = serde_json::from_slice(line).map_err(form)?;
        match manifest.parts.iter().find(|part| !is_plain(&part.name)) {
            Some(part) => Err(wrong(Damage::Form(format!("no part is `{}`", part.name)))),
            None => Ok(manifest),
        }
    }
}

/// Whether a name stays in its folder and is not taken.
pub(super) fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    !name.is_empty() && !name.starts_with('.') && name != MANIFEST && name.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::Access;

    fn manifest() -> Manifest {
        Manifest {
            format: FORMAT,
            header: serde_json::json!({ "step": 7, "text": "two\nlines" }),
            parts: vec![Part {
                name: "state".into(),
                bytes: 3,
                sha256: sha256(b"abc"),
            }],
            generation: None,
        }
    }

    fn read(text: &[u8]) -> Result<Manifest, Damaged> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(MANIFEST);
        let place = Place::parse(path.to_str().unwrap(), &Access::default()).unwrap();
        place.write(text).unwrap();
        Manifest::read(&place)
    }

    #[test]
    fn a_manifest_survives_its_file() {
        assert_eq!(read(manifest().to_text().as_bytes()).unwrap(), manifest());
    }

    #[test]
    fn no_bit_of_it_can_flip_and_no_byte_be_missing_unnoticed() {
        let text = manifest().to_text().into_bytes();
        // The last line's end carries nothing.
        for at in 0..text.len() - 1 {
            let mut flipped = text.clone();
            flipped[at] ^= 1 << (at % 8);
            assert!(read(&flipped).is_err(), "byte {at}");
            assert!(read(&text[..at]).is_err(), "{at} bytes");
        }
    }

    #[test]
    fn a_newer_format_is_told_from_damage_whatever_else_it_holds() {
        let line = r#"{"format":9,"pieces":{}}"#;
        let text = format!("{line}\n{}\n", sha256(line.as_bytes()));
        let error = read(text.as_bytes()).unwrap_err();
        assert!(
            matches!(error.damage, Damage::Newer { found: 9 }),
            "{error}"
        );
        assert!(error.to_string().contains("newer version"), "{error}");
    }

    #[test]
    fn a_part_cannot_lie_elsewhere() {
        for name in ["", "..", "../x", "/x", "a/b", ".hidden", MANIFEST] {
            let mut evil = manifest();
            evil.parts[0].name = name.into();
            let error = read(evil.to_text().as_bytes()).unwrap_err();
            assert!(matches!(error.damage, Damage::Form(_)), "{name}: {error}");
        }
    }
}
