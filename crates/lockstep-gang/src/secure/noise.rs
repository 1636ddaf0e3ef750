//! The Noise handshake `Noise_NNpsk0_25519_AESGCM_SHA256`, on ring's primitives.
//!
//! Both ends hold a key of 32 bytes. Each sends one message: a fresh public key, and a payload that only
//! somebody with the key can read or have made. What comes out are two keys, one for each direction, that
//! follow from the shared key and from both fresh secrets, which nobody keeps.
//!
//! The protocol is that of <https://noiseprotocol.org/noise.html>, revision 34.

use super::cipher::{Cipher, TAG};
use crate::Secret;
use ring::agreement::{EphemeralPrivateKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::digest::{self, SHA256};
use ring::hmac::{self, HMAC_SHA256};
use ring::rand::SystemRandom;

const NAME: &[u8] = b"Noise_NNpsk0_25519_AESGCM_SHA256";
/// Bytes of a public key, of a hash and of a key.
const LENGTH: usize = 32;
/// Bytes of a message that are not its payload.
pub(crate) const OVERHEAD: usize = LENGTH + TAG;

/// The other end does not hold the key, or the system has no random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failed;

/// One end of a handshake: the initiator writes and reads, the responder reads and writes.
pub(crate) struct Handshake {
    /// The hash of all that both ends have seen.
    hash: [u8; LENGTH],
    /// What the next key follows from.
    chain: [u8; LENGTH],
    cipher: Cipher,
    mine: Option<EphemeralPrivateKey>,
    theirs: Option<[u8; LENGTH]>,
}

impl Handshake {
    /// Begins a handshake whose ends hold `key` and have both seen `prologue`.
    pub(crate) fn new(prologue: &[u8], key: &Secret) -> Self {
        let mut hash = [0; LENGTH];
        // A name of at most a hash's length stands for itself.
        hash[..NAME.len()].copy_from_slice(NAME);
        let mut handshake = Self {
            hash,
            chain: hash,
            cipher: Cipher::new(&[0; LENGTH]),
            mine: None,
            theirs: None,
        };
        handshake.mix_hash(prologue);
        let [chain, seen, first] = derive(&handshake.chain, key.bytes());
        handshake.chain = chain;
        handshake.mix_hash(&seen);
        handshake.cipher = Cipher::new(&first);
        handshake
    }

    /// This end's message.
    pub(crate) fn write(&mut self, payload: &[u8]) -> Result<Vec<u8>, Failed> {
        let generate = || {
            let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new())?;
            let public = private.compute_public_key()?;
            Ok((private, public))
        };
        let (private, public) = generate().map_err(|_: ring::error::Unspecified| Failed)?;
        self.mine = Some(private);
        self.mix_public(public.as_ref())?;
        let mut message = [public.as_ref(), payload].concat();
        let sealed = &mut message[LENGTH..];
        let tag = self.cipher.seal(&self.hash, sealed);
        message.extend_from_slice(&tag);
        self.mix_hash(&message[LENGTH..]);
        Ok(message)
    }

    /// Reads the other end's message and returns its payload.
    pub(crate) fn read(&mut self, message: &[u8]) -> Result<Vec<u8>, Failed> {
        let (public, sealed) = message.split_first_chunk::<LENGTH>().ok_or(Failed)?;
        let (text, tag) = sealed.split_last_chunk::<TAG>().ok_or(Failed)?;
        self.theirs = Some(*public);
        self.mix_public(public)?;
        let mut payload = text.to_vec();
        self.cipher
            .open(&self.hash, &mut payload, *tag)
            .map_err(|_| Failed)?;
        self.mix_hash(sealed);
        Ok(payload)
    }

    /// The keys of what the initiator sends, and of what the responder does.
    pub(crate) fn split(self) -> (Cipher, Cipher) {
        let [first, second, _] = derive(&self.chain, &[]);
        (Cipher::of_records(&first), Cipher::of_records(&second))
    }

    /// Takes in the public key of a message, and what follows from both ends' once both are there.
    fn mix_public(&mut self, public: &[u8]) -> Result<(), Failed> {
        self.mix_hash(public);
        self.mix_key(public);
        let Some(theirs) = self.theirs else {
            return Ok(());
        };
        let Some(mine) = self.mine.take() else {
            return Ok(());
        };
        let theirs = UnparsedPublicKey::new(&X25519, theirs);
        agree_ephemeral(mine, &theirs, |shared| self.mix_key(shared)).map_err(|_| Failed)
    }

    fn mix_hash(&mut self, bytes: &[u8]) {
        let mut context = digest::Context::new(&SHA256);
        context.update(&self.hash);
        context.update(bytes);
        self.hash.copy_from_slice(context.finish().as_ref());
    }

    fn mix_key(&mut self, bytes: &[u8]) {
        let [chain, key, _] = derive(&self.chain, bytes);
        self.chain = chain;
        self.cipher = Cipher::new(&key);
    }
}

/// Three keys that follow from two.
fn derive(chain: &[u8; LENGTH], input: &[u8]) -> [[u8; LENGTH]; 3] {
    let sign = |key: &[u8], bytes: &[u8]| -> [u8; LENGTH] {
        let tag = hmac::sign(&hmac::Key::new(HMAC_SHA256, key), bytes);
        tag.as_ref().try_into().expect("a hash of 32 bytes")
    };
    let key = sign(chain, input);
    let first = sign(&key, &[1]);
    let second = sign(&key, &[&first[..], &[2]].concat());
    let third = sign(&key, &[&second[..], &[3]].concat());
    [first, second, third]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first message of another implementation of Noise, the snow crate, for the key 0, 1, 2, ... 31.
    const FIRST: &str = "57db4b359f23ae5e146e4e2512056704722506348c150c14753d0c933d04d421\
                         9fea29deac1019c859ebcb31690b8a431e6f1e";

    #[test]
    fn it_understands_another_implementation_of_noise() {
        let hex: String = (0..32).map(|byte| format!("{byte:02x}")).collect();
        let message: Vec<u8> = (0..FIRST.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&FIRST[at..at + 2], 16).unwrap())
            .collect();
        let mut responder = Handshake::new(b"prologue", &hex.parse().unwrap());
        assert_eq!(responder.read(&message).unwrap(), b"one");
    }

    #[test]
    fn both_ends_come_to_the_same_keys_and_each_handshake_to_others() {
        let key = Secret::random().unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for _ in 0..3 {
            let mut initiator = Handshake::new(b"prologue", &key);
            let mut responder = Handshake::new(b"prologue", &key);
            let first = initiator.write(b"one").unwrap();
            assert_eq!(responder.read(&first).unwrap(), b"one");
            let second = responder.write(b"two").unwrap();
            assert_eq!(initiator.read(&second).unwrap(), b"two");
            let (mut sealer, mut opener) = (initiator.split().0, responder.split().0);
            let mut record = *b"three";
            let tag = sealer.seal(&[], &mut record);
            assert!(seen.insert(tag));
            opener.open(&[], &mut record, tag).unwrap();
            assert_eq!(&record, b"three");
        }
    }

    #[test]
    fn another_key_or_prologue_is_noticed_in_the_first_message() {
        let key = Secret::random().unwrap();
        let first = Handshake::new(b"prologue", &key).write(b"one").unwrap();
        let another = Secret::random().unwrap();
        assert_eq!(
            Handshake::new(b"prologue", &another).read(&first),
            Err(Failed)
        );
        assert_eq!(Handshake::new(b"other", &key).read(&first), Err(Failed));
        assert!(Handshake::new(b"prologue", &key).read(&first).is_ok());
    }
}
