//! Bytes as people write them: two digits each, `0` to `9` and `a` to `f`.

const DIGITS: &[u8; 16] = b"0123456789abcdef";

/// `[0x0a, 0xff]` as `0aff`.
pub fn encode(bytes: impl AsRef<[u8]>) -> String {
    let bytes = bytes.as_ref();
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// The bytes that [`encode`] made `text` of. `None` when it did not make it: a letter is missing, or
/// is none of its digits.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let digit = |letter: u8| DIGITS.iter().position(|known| *known == letter);
    let pairs = text.as_bytes().chunks(2);
    pairs
        .map(|pair| match *pair {
            [high, low] => Some((digit(high)? * 16 + digit(low)?) as u8),
            _ => None,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_comes_back() {
        let all: Vec<u8> = (0..=255).collect();
        let text = encode(&all);
        assert!(text.starts_with("000102") && text.ends_with("fdfeff"));
        assert_eq!(decode(&text), Some(all));
    }

    #[test]
    fn what_was_not_encoded_is_not_decoded() {
        for wrong in ["0", "0aF0", "zz", "é", " 00"] {
            assert_eq!(decode(wrong), None, "{wrong}");
        }
    }
}
