//! A strict reader of universal binary JSON, in the form that XGBoost writes it.
//!
//! XGBoost's own reader is not strict. What both understand in the same way is little: texts and lists with a length
//! of 64 bits, objects that end with a brace and have each name once. Nothing else is read here.

use std::collections::BTreeMap;

/// No model is nested as deep.
const DEEPEST: usize = 32;

/// A value. Floats are counted only: any is as good as any other.
#[derive(Debug, PartialEq)]
pub(super) enum Ubj {
    Object(BTreeMap<String, Ubj>),
    Array(Vec<Ubj>),
    Numbers(Vec<i64>),
    Floats(usize),
    Number(i64),
    Text(String),
    /// A float, a truth or nothing.
    Plain,
}

/// Reads a value that takes all of the bytes.
pub(super) fn read(bytes: &[u8]) -> Result<Ubj, String> {
    let mut reader = Reader { bytes, at: 0 };
    let value = reader.value(0)?;
    match reader.at == bytes.len() {
        true => Ok(value),
        false => Err(reader.wrong("its end should be")),
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn wrong(&self, what: &str) -> String {
        format!(
            "it is not in XGBoost's binary format: {what} at byte {}",
            self.at
        )
    }

    fn take(&mut self, count: usize) -> Result<&'b [u8], String> {
        let end = self
            .at
            .checked_add(count)
            .filter(|end| *end <= self.bytes.len());
        let taken = end.map(|end| &self.bytes[self.at..end]);
        self.at = end.unwrap_or(self.at);
        taken.ok_or_else(|| self.wrong("it is cut off"))
    }

    fn marker(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    /// A whole number of this kind.
    fn number(&mut self, kind: u8) -> Result<i64, String> {
        let width = width(kind).ok_or_else(|| self.wrong("an unknown mark"))?;
        Ok(whole(kind, self.take(width)?))
    }

    /// A length, which is of what follows and so no larger than that.
    fn length(&mut self) -> Result<usize, String> {
        if self.marker()? != b'L' {
            return Err(self.wrong("a length should be"));
        }
        let length = self.number(b'L')?;
        let left = self.bytes.len() - self.at;
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= left);
        length.ok_or_else(|| self.wrong("a wrong length"))
    }

    fn text(&mut self) -> Result<String, String> {
        let length = self.length()?;
        let text = std::str::from_utf8(self.take(length)?);
        // A zero would end it for XGBoost.
        let text = text.ok().filter(|text| !text.contains('\0'));
        text.map(str::to_owned)
            .ok_or_else(|| self.wrong("a wrong text"))
    }

    fn value(&mut self, depth: usize) -> Result<Ubj, String> {
        if depth > DEEPEST {
            return Err(self.wrong("it is nested too deep"));
        }
        Ok(match self.marker()? {
            b'{' => self.object(depth)?,
            b'[' => self.array(depth)?,
            b'S' => Ubj::Text(self.text()?),
            kind @ (b'd' | b'D') => {
                self.take(float_width(kind))?;
                Ubj::Plain
            }
            b'T' | b'F' | b'Z' => Ubj::Plain,
            kind => Ubj::Number(self.number(kind)?),
        })
    }

    fn object(&mut self, depth: usize) -> Result<Ubj, String> {
        let mut parts = BTreeMap::new();
        while self.bytes.get(self.at) != Some(&b'}') {
            let name = self.text()?;
            let value = self.value(depth + 1)?;
            if parts.insert(name, value).is_some() {
                return Err(self.wrong("a second part of the same name"));
            }
        }
        self.at += 1;
        Ok(Ubj::Object(parts))
    }

    fn array(&mut self, depth: usize) -> Result<Ubj, String> {
        let kind = match self.marker()? {
            b'#' => None,
            b'$' => Some(self.marker()?),
            _ => return Err(self.wrong("a length should be")),
        };
        if kind.is_some() && self.marker()? != b'#' {
            return Err(self.wrong("a length should be"));
        }
        let count = self.length()?;
        let bytes_of = |width: usize| count.saturating_mul(width);
        match kind {
            None => {
                let items: Result<Vec<_>, _> = (0..count).map(|_| self.value(depth + 1)).collect();
                Ok(in_one_kind(items?))
            }
            Some(kind @ (b'd' | b'D')) => {
                self.take(bytes_of(float_width(kind)))?;
                Ok(Ubj::Floats(count))
            }
            Some(kind) => {
                let width = width(kind).ok_or_else(|| self.wrong("an unknown mark"))?;
                let numbers = self.take(bytes_of(width))?.chunks_exact(width);
                Ok(Ubj::Numbers(
                    numbers.map(|bytes| whole(kind, bytes)).collect(),
                ))
            }
        }
    }
}

/// A list of whole numbers may be written with a mark before each.
fn in_one_kind(items: Vec<Ubj>) -> Ubj {
    let number = |item: &Ubj| match item {
        Ubj::Number(number) => Some(*number),
        _ => None,
    };
    match items.iter().map(number).collect::<Option<Vec<_>>>() {
        Some(numbers) if !numbers.is_empty() => Ubj::Numbers(numbers),
        _ => Ubj::Array(items),
    }
}

/// The bytes of a float.
fn float_width(kind: u8) -> usize {
    if kind == b'd' { 4 } else { 8 }
}

/// The bytes of a whole number.
fn width(kind: u8) -> Option<usize> {
    match kind {
        b'i' | b'U' => Some(1),
        b'I' => Some(2),
        b'l' => Some(4),
        b'L' => Some(8),
        _ => None,
    }
}

/// A whole number, the highest byte of which comes first.
fn whole(kind: u8, bytes: &[u8]) -> i64 {
    let negative = kind != b'U' && bytes.first().is_some_and(|byte| *byte >= 0x80);
    let start = if negative { -1 } else { 0 };
    bytes
        .iter()
        .fold(start, |number, byte| number << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const EMPTY: &[u8] = b"{}";

    #[test]
    fn what_xgboost_writes_is_read() {
        let mut bytes = b"{".to_vec();
        let mut part = |name: &str, value: &[u8]| {
            bytes.push(b'L');
            bytes.extend((name.len() as i64).to_be_bytes());
            bytes.extend(name.as_bytes());
            bytes.extend(value);
        };
        part("a", b"[$l#L\0\0\0\0\0\0\0\x02\xff\xff\xff\xff\0\0\x01\0");
        part("b", b"[#L\0\0\0\0\0\0\0\x02i\x05U\xff");
        part("c", b"[$d#L\0\0\0\0\0\0\0\x01\0\0\0\0");
        part("d", b"SL\0\0\0\0\0\0\0\x01x");
        bytes.push(b'}');
        let Ok(Ubj::Object(parts)) = read(&bytes) else {
            panic!("{:?}", read(&bytes));
        };
        assert_eq!(parts["a"], Ubj::Numbers(vec![-1, 256]));
        assert_eq!(parts["b"], Ubj::Numbers(vec![5, 255]));
        assert_eq!(parts["c"], Ubj::Floats(1));
        assert_eq!(parts["d"], Ubj::Text("x".to_owned()));
        for cut in 0..bytes.len() {
            assert!(read(&bytes[..cut]).is_err(), "{cut}");
        }
    }

    #[test]
    fn what_is_cut_off_doubled_or_nested_without_end_is_refused() {
        assert!(read(EMPTY).is_ok());
        let name = b"L\0\0\0\0\0\0\0\x01aT";
        let twice = [&b"{"[..], name, name, b"}"].concat();
        let deep = b"[#L\0\0\0\0\0\0\0\x01".repeat(1000);
        let long = b"[$d#L\x7f\xff\xff\xff\xff\xff\xff\xff".to_vec();
        let negative = b"SL\xff\xff\xff\xff\xff\xff\xff\xff".to_vec();
        let more = b"{}}".to_vec();
        let json = br#"{"learner": {}}"#.to_vec();
        for wrong in [twice, deep, long, negative, more, json, Vec::new()] {
            let error = read(&wrong).unwrap_err();
            assert!(error.contains("XGBoost's binary format"), "{error}");
        }
    }
}
