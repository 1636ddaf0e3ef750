//! Seals bytes where they lie: AES-GCM with a counter for a nonce.
//!
//! One direction of a link has one [`Cipher`] at each end. Both count what they have sealed or opened,
//! so that a record opens only in its turn: one that was repeated, left out or moved does not.

use ring::aead::{
    AES_128_GCM, AES_256_GCM, Aad, Algorithm, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey,
};
use std::fmt;

/// Bytes that sealing adds.
pub(crate) const TAG: usize = 16;

/// What was received is not what the other end sealed, or not in its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Altered;

/// The key of one direction of a link, and the number of the next record.
pub(crate) struct Cipher {
    /// Boxed because its tables take half a kilobyte.
    key: Box<LessSafeKey>,
    next: u64,
}

impl Cipher {
    /// A key of a handshake that was never used before.
    pub(crate) fn new(key: &[u8; 32]) -> Self {
        Self::with(&AES_256_GCM, key)
    }

    /// A key of a link's records that was never used before. Its first half is used: gradients are worth
    /// nothing when a run is over, and AES with 128 bits has ten rounds instead of fourteen.
    pub(crate) fn of_records(key: &[u8; 32]) -> Self {
        Self::with(&AES_128_GCM, &key[..16])
    }

    fn with(algorithm: &'static Algorithm, key: &[u8]) -> Self {
        let key = UnboundKey::new(algorithm, key).expect("a key of the algorithm's length");
        Self {
            key: Box::new(LessSafeKey::new(key)),
            next: 0,
        }
    }

    fn nonce(&mut self) -> Nonce {
        let mut nonce = [0; NONCE_LEN];
        nonce[4..].copy_from_slice(&self.next.to_be_bytes());
        self.next += 1;
        Nonce::assume_unique_for_key(nonce)
    }

    /// Encrypts `bytes` and returns the tag that goes with them. `clear` is sent in clear beside them
    /// and cannot be changed either.
    pub(crate) fn seal(&mut self, clear: &[u8], bytes: &mut [u8]) -> [u8; TAG] {
        let nonce = self.nonce();
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::from(clear), bytes)
            .expect("a record is shorter than 64 GiB");
        let mut copy = [0; TAG];
        copy.copy_from_slice(tag.as_ref());
        copy
    }

    /// Decrypts the next record. What it leaves in `bytes` on an error means nothing.
    pub(crate) fn open(
        &mut self,
        clear: &[u8],
        bytes: &mut [u8],
        tag: [u8; TAG],
    ) -> Result<(), Altered> {
        let nonce = self.nonce();
        self.key
            .open_in_place_separate_tag(nonce, Aad::from(clear), Tag::from(tag), bytes, 0..)
            .map(drop)
            .map_err(|_| Altered)
    }
}

impl fmt::Debug for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Cipher(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed(sealer: &mut Cipher, text: &[u8]) -> (Vec<u8>, [u8; TAG]) {
        let mut bytes = text.to_vec();
        let tag = sealer.seal(b"clear", &mut bytes);
        (bytes, tag)
    }

    #[test]
    fn what_was_sealed_opens_once_in_its_turn_and_any_flipped_bit_is_noticed() {
        let key = [7; 32];
        let (mut sealer, mut opener) = (Cipher::new(&key), Cipher::new(&key));
        let (first, tag) = sealed(&mut sealer, b"first");
        let mut opened = first.clone();
        opener.open(b"clear", &mut opened, tag).unwrap();
        assert_eq!(opened, b"first");
        // Again.
        let mut again = first.clone();
        assert_eq!(opener.open(b"clear", &mut again, tag), Err(Altered));
        // Out of turn.
        let (mut sealer, mut opener) = (Cipher::new(&key), Cipher::new(&key));
        let (_, _) = sealed(&mut sealer, b"first");
        let (mut second, tag) = sealed(&mut sealer, b"second");
        assert_eq!(opener.open(b"clear", &mut second, tag), Err(Altered));
        for bit in 0..8 * (first.len() + TAG) {
            let (mut sealer, mut opener) = (Cipher::new(&key), Cipher::new(&key));
            let (mut bytes, mut tag) = sealed(&mut sealer, b"first");
            match bytes.get_mut(bit / 8) {
                Some(byte) => *byte ^= 1 << (bit % 8),
                None => tag[bit / 8 - first.len()] ^= 1 << (bit % 8),
            }
            assert_eq!(opener.open(b"clear", &mut bytes, tag), Err(Altered));
        }
        let (mut sealer, mut opener) = (Cipher::new(&key), Cipher::new(&key));
        let (mut bytes, tag) = sealed(&mut sealer, b"first");
        assert_eq!(opener.open(b"other", &mut bytes, tag), Err(Altered));
    }
}
