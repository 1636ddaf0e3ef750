//! A place as it is told to another process, secrets included.
//!
//! The signature of a URL is part of how a place is reached, so whoever else is to read it must be told. A
//! [`Place`] cannot be serialised by itself, lest one be written somewhere: a field says that it may travel with
//! `#[serde(with = "lockstep_place::portable")]`, and what holds it goes through private links only. Credentials
//! do not travel: every process has those of its own environment.

use crate::place::on;
use crate::{Access, Place};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// What [`Place::parse`] makes a place of.
#[derive(Serialize, Deserialize)]
struct Portable {
    address: String,
    access: Access,
}

impl Place {
    /// The whole name, with what [`Display`](std::fmt::Display) leaves out.
    fn address(&self) -> String {
        on!(self, path => path.to_string_lossy().into_owned(), remote => remote.address())
    }

    /// How the place is reached.
    fn access(&self) -> Access {
        on!(self, _path => Access::default(), remote => remote.access().clone())
    }
}

/// Tells a place.
///
/// # Errors
/// Those of `serializer`.
pub fn serialize<S: Serializer>(place: &Place, serializer: S) -> Result<S::Ok, S::Error> {
    let portable = Portable {
        address: place.address(),
        access: place.access(),
    };
    portable.serialize(serializer)
}

/// Understands a place that was told.
///
/// # Errors
/// Those of `deserializer`, and of [`Place::parse`] where this process's environment does not allow the place.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Place, D::Error> {
    let Portable { address, access } = Portable::deserialize(deserializer)?;
    Place::parse(&address, &access).map_err(D::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Told {
        #[serde(with = "crate::portable")]
        place: Place,
    }

    fn told(place: Place) -> Place {
        let text = serde_json::to_string(&Told { place }).unwrap();
        serde_json::from_str::<Told>(&text).unwrap().place
    }

    #[test]
    fn a_place_that_was_told_is_the_same_place() {
        let access = Access {
            endpoint: Some("http://localhost:9000".parse().unwrap()),
            anonymous: true,
            ..Access::default()
        };
        for text in [
            "/data/a b",
            "s3://bucket/a%20b/c",
            "gs://bucket",
            "az://container/x",
            "https://host:81/a%20b/100%25?X-Amz-Signature=secret&id=1",
        ] {
            let mut access = access.clone();
            if text.starts_with("az:") {
                access.account = Some("account".into());
            }
            let place = Place::parse(text, &access).unwrap().join("below").unwrap();
            let again = told(place.clone());
            assert_eq!(again.to_string(), place.to_string());
            assert_eq!(again.address(), place.address());
            assert_eq!(again.access(), place.access());
        }
    }

    #[test]
    fn a_signature_travels_and_is_not_shown() {
        let text = "https://host/a.csv?X-Amz-Signature=secret";
        let place = told(Place::parse(text, &Access::default()).unwrap());
        assert_eq!(place.address(), text);
        assert_eq!(place.to_string(), "https://host/a.csv?…");
    }
}
