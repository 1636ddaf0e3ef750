//! The elements of a tensor of the Open Inference Protocol: lists of JSON, or bytes after it.

use crate::Refusal;
use crate::json::{EXACT, Json};
use half::f16;

/// The types that elements may have, and their bytes; texts have any number.
const TYPES: [(&str, usize); 13] = [
    ("BOOL", 1),
    ("UINT8", 1),
    ("UINT16", 2),
    ("UINT32", 4),
    ("UINT64", 8),
    ("INT8", 1),
    ("INT16", 2),
    ("INT32", 4),
    ("INT64", 8),
    ("FP16", 2),
    ("FP32", 4),
    ("FP64", 8),
    ("BYTES", 0),
];

/// What elements came to.
#[derive(Debug, PartialEq)]
pub(crate) enum Elements {
    /// Numbers, truths and texts, as a list.
    Values(Json),
    /// Bytes that are no text: files of pictures.
    Files(Vec<Vec<u8>>),
}

/// Whether elements of this type are numbers.
pub(crate) fn is_numeric(datatype: &str) -> bool {
    datatype != "BYTES"
}

/// Checks that there is such a type.
pub(crate) fn check(datatype: &str) -> Result<(), String> {
    match TYPES.iter().any(|(name, _)| *name == datatype) {
        true => Ok(()),
        false => {
            let names: Vec<&str> = TYPES.iter().map(|(name, _)| *name).collect();
            Err(format!(
                "has the datatype {datatype:?}; it must be one of {}",
                names.join(", ")
            ))
        }
    }
}

/// All elements of a list in lists, one after the other.
pub(crate) fn flat(data: Json) -> Json {
    fn add(value: Json, out: &mut Vec<Json>) {
        match value {
            Json::List(items) => items.into_iter().for_each(|item| add(item, out)),
            Json::Numbers(numbers) => out.extend(numbers.into_iter().map(Json::Number)),
            value => out.push(value),
        }
    }
    match data {
        Json::List(items) if items.iter().any(|item| item.len().is_some()) => {
            // Rows of numbers stay small.
            if items.iter().all(|item| matches!(item, Json::Numbers(_))) {
                let numbers = items.into_iter().flat_map(|item| match item {
                    Json::Numbers(numbers) => numbers,
                    _ => Vec::new(),
                });
                return Json::Numbers(numbers.collect());
            }
            let mut out = Vec::new();
            items.into_iter().for_each(|item| add(item, &mut out));
            match out.iter().all(|value| matches!(value, Json::Number(_))) {
                true => Json::Numbers(out.iter().filter_map(number).collect()),
                false => Json::List(out),
            }
        }
        data => data,
    }
}

/// A value as a number, if it is one; truths are 0 and 1.
pub(crate) fn number(value: &Json) -> Option<f64> {
    match value {
        Json::Number(number) => Some(*number),
        Json::Truth(truth) => Some(f64::from(u8::from(*truth))),
        Json::Text(text) => text.parse().ok(),
        _ => None,
    }
}

/// Elements that came as bytes, in the order of a small-endian machine.
///
/// # Errors
/// When they are cut short, in words that follow the name of the input.
pub(crate) fn of_bytes(datatype: &str, bytes: &[u8]) -> Result<Elements, String> {
    let size = TYPES.iter().find(|(name, _)| *name == datatype);
    let size = size.map_or(0, |(_, size)| *size);
    if size == 0 {
        return texts(bytes);
    }
    if !bytes.len().is_multiple_of(size) {
        return Err(format!(
            "has {} bytes, which are no whole elements of {size}",
            bytes.len()
        ));
    }
    let elements = bytes.chunks_exact(size);
    let whole = |bytes: &[u8], signed: bool| {
        let mut all = match signed && bytes[bytes.len() - 1] & 0x80 != 0 {
            true => [0xff; 8],
            false => [0; 8],
        };
        all[..bytes.len()].copy_from_slice(bytes);
        all
    };
    let values: Vec<Json> = match datatype {
        "BOOL" => bytes.iter().map(|&byte| Json::Truth(byte != 0)).collect(),
        "FP16" | "FP32" | "FP64" => {
            let number = |bytes: &[u8]| match *bytes {
                [a, b] => f16::from_le_bytes([a, b]).to_f64(),
                [a, b, c, d] => f64::from(f32::from_le_bytes([a, b, c, d])),
                _ => f64::from_le_bytes(whole(bytes, false)),
            };
            return Ok(Elements::Values(Json::Numbers(
                elements.map(number).collect(),
            )));
        }
        signed if signed.starts_with("INT") => {
            let number = |bytes| i64::from_le_bytes(whole(bytes, true));
            let value = |number: i64| match number.unsigned_abs() <= EXACT {
                true => Json::Number(number as f64),
                false => Json::Text(number.to_string()),
            };
            elements.map(number).map(value).collect()
        }
        _ => {
            let number = |bytes| u64::from_le_bytes(whole(bytes, false));
            let value = |number: u64| match number <= EXACT {
                true => Json::Number(number as f64),
                false => Json::Text(number.to_string()),
            };
            elements.map(number).map(value).collect()
        }
    };
    Ok(Elements::Values(Json::List(values)))
}

/// Texts or files, each after the number of its bytes.
fn texts(mut bytes: &[u8]) -> Result<Elements, String> {
    let mut files = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = u32::from_le_bytes(*length) as usize;
        let cut = || "ends in the middle of an element".to_owned();
        let (file, rest) = rest.split_at_checked(length).ok_or_else(cut)?;
        files.push(file.to_vec());
        bytes = rest;
    }
    if !bytes.is_empty() {
        return Err("ends in the middle of an element".to_owned());
    }
    let texts: Result<Vec<Json>, ()> = files
        .iter()
        .map(|file| {
            let text = std::str::from_utf8(file).map_err(drop)?;
            Ok(Json::Text(text.to_owned()))
        })
        .collect();
    Ok(match texts {
        Ok(texts) => Elements::Values(Json::List(texts)),
        Err(()) => Elements::Files(files),
    })
}

/// The numbers of a list, for a tensor of numbers.
pub(crate) fn numbers(name: &str, data: Json) -> Result<Vec<f64>, Refusal> {
    match data {
        Json::Numbers(numbers) => Ok(numbers),
        Json::List(items) => items
            .iter()
            .enumerate()
            .map(|(at, item)| {
                number(item).ok_or_else(|| {
                    let found = item.words();
                    Refusal::bad(format!(
                        "the input `{name}` holds {found} as element {at}; it must be a number"
                    ))
                })
            })
            .collect(),
        other => {
            let found = other.words();
            Err(Refusal::bad(format!(
                "`data` of the input `{name}` is {found}; it must be a list"
            )))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_by_their_type() {
        let read = |datatype, bytes: &[u8]| of_bytes(datatype, bytes).unwrap();
        let number = |number| Elements::Values(Json::List(vec![Json::Number(number)]));
        assert_eq!(read("INT8", &[0xff]), number(-1.0));
        assert_eq!(read("UINT8", &[0xff]), number(255.0));
        assert_eq!(read("INT32", &(-7_i32).to_le_bytes()), number(-7.0));
        assert_eq!(read("UINT16", &[1, 2]), number(513.0));
        let float = |number| Elements::Values(Json::Numbers(vec![number]));
        assert_eq!(
            read("FP32", &0.1_f32.to_le_bytes()),
            float(f64::from(0.1_f32))
        );
        assert_eq!(read("FP64", &0.1_f64.to_le_bytes()), float(0.1));
        assert_eq!(read("FP16", &f16::from_f32(0.5).to_le_bytes()), float(0.5));
        let large = Elements::Values(Json::List(vec![Json::Text("9223372036854775807".into())]));
        assert_eq!(read("INT64", &i64::MAX.to_le_bytes()), large);
        let texts = Elements::Values(Json::List(vec![
            Json::Text("ab".into()),
            Json::Text("".into()),
        ]));
        assert_eq!(read("BYTES", b"\x02\0\0\0ab\0\0\0\0"), texts);
        assert_eq!(
            read("BYTES", b"\x01\0\0\0\xff"),
            Elements::Files(vec![vec![0xff]])
        );
        for (datatype, bytes) in [
            ("FP32", &b"123"[..]),
            ("BYTES", b"\x09\0\0\0a"),
            ("BYTES", b"\x09"),
        ] {
            assert!(of_bytes(datatype, bytes).is_err(), "{datatype}");
        }
    }

    #[test]
    fn lists_in_lists_are_one_after_the_other() {
        let read = |text: &str| flat(Json::read(text.as_bytes()).unwrap());
        assert_eq!(
            read("[[1, 2], [3, 4]]"),
            Json::Numbers(vec![1.0, 2.0, 3.0, 4.0])
        );
        assert_eq!(
            read("[[[1], [2]], [[3], [4]]]"),
            Json::Numbers(vec![1.0, 2.0, 3.0, 4.0])
        );
        let texts = Json::List(vec![Json::Text("a".into()), Json::Text("b".into())]);
        assert_eq!(read(r#"[["a"], ["b"]]"#), texts);
    }
}
