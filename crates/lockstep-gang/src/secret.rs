//! The secret of a run: whoever knows it belongs to the gang.

use crate::GangError;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use std::fmt;
use std::str::FromStr;

/// 32 random bytes that the coordinator gives to each worker it starts. Never printed by accident:
/// `Debug` shows nothing of it, and only [`to_hex`](Self::to_hex) takes it out.
#[derive(Clone)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A new secret from the operating system's generator.
    pub fn random() -> Result<Self, GangError> {
        random_bytes().map(Self)
    }

    /// The secret as 64 hexadecimal digits, to travel to a worker through a private channel.
    pub fn to_hex(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// A keyed hash over `fields`; fields of different lengths never run into each other.
    pub(crate) fn tag(&self, fields: &[&[u8]]) -> [u8; 32] {
        self.mac(fields).finalize().into_bytes().into()
    }

    /// Whether `tag` is the keyed hash over `fields`, in a time that does not depend on the answer.
    pub(crate) fn verify(&self, fields: &[&[u8]], tag: &[u8; 32]) -> bool {
        self.mac(fields).verify_slice(tag).is_ok()
    }

    fn mac(&self, fields: &[&[u8]]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("a key of any length will do");
        for field in fields {
            mac.update(&(field.len() as u64).to_le_bytes());
            mac.update(field);
        }
        mac
    }
}

/// Random bytes that nobody can foresee.
pub(crate) fn random_bytes() -> Result<[u8; 32], GangError> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)
        .map_err(std::io::Error::other)
        .map_err(GangError::io("get random bytes from the system"))?;
    Ok(bytes)
}

impl FromStr for Secret {
    type Err = GangError;

    fn from_str(hex: &str) -> Result<Self, GangError> {
        let digits = hex.as_bytes();
        if digits.len() != 64 {
            return Err(GangError::BadSecret);
        }
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
            for digit in pair {
                let value = char::from(*digit)
                    .to_digit(16)
                    .ok_or(GangError::BadSecret)?;
                *byte = *byte << 4 | value as u8;
            }
        }
        Ok(Self(bytes))
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

    #[test]
    fn a_secret_travels_as_hex_and_debug_shows_nothing_of_it() {
        let secret = Secret::random().unwrap();
        let again: Secret = secret.to_hex().parse().unwrap();
        assert_eq!(secret.0, again.0);
        assert_eq!(format!("{secret:?}"), "Secret(..)");
        assert_ne!(secret.0, Secret::random().unwrap().0);
    }

    #[test]
    fn what_is_not_64_hex_digits_is_no_secret() {
        let hex = Secret::random().unwrap().to_hex();
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

    #[test]
    fn the_border_between_fields_counts() {
        let secret = Secret::random().unwrap();
        let tag = secret.tag(&[b"ab", b"c"]);
        assert!(secret.verify(&[b"ab", b"c"], &tag));
        assert!(!secret.verify(&[b"a", b"bc"], &tag));
        assert!(!Secret::random().unwrap().verify(&[b"ab", b"c"], &tag));
    }
}
