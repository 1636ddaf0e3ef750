//! A key that two ends of a connection hold and nobody else.

use crate::GangError;
use lockstep_base::fs::hex;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::str::FromStr;

/// 32 random bytes. Never printed by accident: `Debug` shows nothing of them. Serialized, it is 64
/// hexadecimal digits, to travel through a channel that is private.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new secret from the operating system's generator.
    ///
    /// # Errors
    /// [`GangError::Io`] when it has none to give.
    pub fn random() -> Result<Self, GangError> {
        let mut bytes = [0; 32];
        getrandom::fill(&mut bytes)
            .map_err(std::io::Error::other)
            .map_err(GangError::io("get random bytes from the system"))?;
        Ok(Self(bytes))
    }

    pub(crate) fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&hex::encode(self.0))
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let hex = String::deserialize(deserializer)?;
        hex.parse().map_err(serde::de::Error::custom)
    }
}

impl FromStr for Secret {
    type Err = GangError;

    fn from_str(text: &str) -> Result<Self, GangError> {
        let bytes = hex::decode(text).and_then(|bytes| bytes.try_into().ok());
        bytes.map(Self).ok_or(GangError::BadSecret)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(secret: &Secret) -> String {
        serde_json::from_str(&serde_json::to_string(secret).unwrap()).unwrap()
    }

    #[test]
    fn a_secret_travels_as_hex_and_debug_shows_nothing_of_it() {
        let secret = Secret::random().unwrap();
        let again: Secret = hex(&secret).parse().unwrap();
        assert_eq!(secret.0, again.0);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_ne!(secret.0, Secret::random().unwrap().0);
    }

    #[test]
    fn what_is_not_64_hex_digits_is_no_secret() {
        let hex = hex(&Secret::random().unwrap());
        for bad in [
            "",
            &hex[..62],
            &format!("{hex}00"),
            &hex.replace(&hex[..1], "g"),
            &"é".repeat(32),
        ] {
            assert!(bad.parse::<Secret>().is_err(), "{bad}");
        }
    }
}
