//! A file of text as UTF-8: unpacked if it is gzipped, and decoded if it is stored in another way.
//!
//! The first bytes are read at once and kept, so that whoever opens the file may look at them before the first line is
//! read. Text that is UTF-8 is handed on as it is.

use crate::TableError;
use crate::csv_format::{HEAD, TextEncoding};
use crate::files::TableFile;
use crate::input::{Input, InputReader};
use flate2::read::MultiGzDecoder;
use std::io::{self, Read};

/// The first bytes of files that are other tables, what those are, and what is to be done.
const OTHERS: [(&[u8], &str); 5] = [
    (b"PK\x03\x04", EXCEL),
    (b"\xd0\xcf\x11\xe0", EXCEL),
    (b"PAR1", "it is a Parquet file; name it with `parquet`"),
    (b"ARROW1", "it is an Arrow file; name it with `arrow`"),
    (
        b"FEA1",
        "it is a Feather file of the old kind; write it again with a newer library",
    ),
];
/// What is said of Excel's files.
const EXCEL: &str = "it is an Excel file or a zip archive; save the sheet as \"CSV UTF-8\", or convert it in Python: \
                     pandas.read_excel(\"a.xlsx\").to_parquet(\"a.parquet\")";

/// Letters of the bytes 0x80 to 0x9f as Windows has them; a byte that it does not use is the letter of this number.
const WINDOWS: [char; 32] = [
    '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}',
    '\u{90}', '‘', '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
];

/// An open file of text.
#[derive(Debug)]
pub(crate) struct TextInput {
    head: Vec<u8>,
    /// Bytes of the head that were read.
    at: usize,
    rest: PackedInput,
    decoder: Option<Decoder>,
}

impl TextInput {
    /// Opens `file`, whose text is stored in this way, or in one that is found by looking.
    pub(crate) fn open(
        file: &TableFile,
        encoding: Option<TextEncoding>,
        memory: u64,
    ) -> Result<Self, TableError> {
        let name = file.place.to_string();
        let input = Input::open(file, 0, memory / 4)?.reader(0);
        let mut rest = match name.to_lowercase().ends_with(".gz") {
            true => PackedInput::Gzipped(Box::new(MultiGzDecoder::new(input))),
            false => PackedInput::Plain(input),
        };
        let mut head = Vec::with_capacity(HEAD);
        let read = rest.by_ref().take(HEAD as u64).read_to_end(&mut head);
        read.map_err(|error| TableError::unreadable(&name, error))?;
        let begins = |(begin, _): &&(&[u8], &str)| head.starts_with(begin);
        if let Some((_, what)) = OTHERS.iter().find(begins) {
            return Err(TableError::Unsupported {
                file: name,
                reason: (*what).to_owned(),
            });
        }
        let decoder = match encoding {
            Some(TextEncoding::Utf8) => None,
            Some(TextEncoding::Latin1) => Some(Decoder::new(Letters::Latin1)),
            Some(TextEncoding::Utf16) => {
                Some(Decoder::new(wide(&head).unwrap_or(Letters::SmallFirst)))
            }
            None => wide(&head).map(Decoder::new),
        };
        Ok(Self {
            head,
            at: 0,
            rest,
            decoder,
        })
    }

    /// The text that the file begins with. What is no text, and a letter that is cut off, is left out.
    pub(crate) fn head(&self) -> String {
        let Some(decoder) = &self.decoder else {
            return String::from_utf8_lossy(&self.head).into_owned();
        };
        let mut decoder = Decoder::new(decoder.letters);
        // What is wrong is found when it is read.
        let _ = decoder.take(&self.head);
        String::from_utf8_lossy(&decoder.text).into_owned()
    }

    /// The next bytes as they are stored.
    fn raw(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match &self.head[self.at..] {
            [] => self.rest.read(out),
            head => {
                let length = head.len().min(out.len());
                out[..length].copy_from_slice(&head[..length]);
                self.at += length;
                Ok(length)
            }
        }
    }
}

impl Read for TextInput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let Some(mut decoder) = self.decoder.take() else {
            return self.raw(out);
        };
        let mut bytes = [0; 8 << 10];
        let mut fill = || -> io::Result<usize> {
            while decoder.at == decoder.text.len() {
                match self.raw(&mut bytes)? {
                    0 => return decoder.end().map(|()| 0),
                    read => decoder.take(&bytes[..read])?,
                }
            }
            Ok(decoder.hand(out))
        };
        let read = fill();
        self.decoder = Some(decoder);
        read
    }
}

/// How the head of a file of two bytes a letter is to be read: a mark says so, or every second byte is 0, as in what is
/// written with Latin letters.
fn wide(head: &[u8]) -> Option<Letters> {
    match head {
        [0xff, 0xfe, ..] => return Some(Letters::SmallFirst),
        [0xfe, 0xff, ..] => return Some(Letters::LargeFirst),
        _ => {}
    }
    let zeros = |skip: usize| {
        let bytes = head.iter().skip(skip).step_by(2);
        (bytes.filter(|&&byte| byte == 0).count(), head.len() / 2)
    };
    let is_most = |(zeros, all): (usize, usize)| zeros * 4 > all * 3;
    match (zeros(0), zeros(1)) {
        ((0, _), odd) if is_most(odd) => Some(Letters::SmallFirst),
        (even, (0, _)) if is_most(even) => Some(Letters::LargeFirst),
        _ => None,
    }
}

/// How bytes are letters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Letters {
    Latin1,
    SmallFirst,
    LargeFirst,
}

/// Makes UTF-8 of other text.
#[derive(Debug)]
struct Decoder {
    letters: Letters,
    /// What was decoded, and how much of that was handed on.
    text: Vec<u8>,
    at: usize,
    /// Half a letter: a byte, or the first of two numbers.
    byte: Option<u8>,
    first: Option<u16>,
    /// Whether nothing was decoded yet.
    is_begin: bool,
}

impl Decoder {
    fn new(letters: Letters) -> Self {
        Self {
            letters,
            text: Vec::new(),
            at: 0,
            byte: None,
            first: None,
            is_begin: true,
        }
    }

    /// Decodes some bytes.
    fn take(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.at == self.text.len() {
            self.text.clear();
            self.at = 0;
        }
        for &byte in bytes {
            if self.letters == Letters::Latin1 {
                self.push(match byte {
                    0x80..=0x9f => WINDOWS[usize::from(byte - 0x80)],
                    _ => char::from(byte),
                });
                continue;
            }
            let Some(before) = self.byte.take() else {
                self.byte = Some(byte);
                continue;
            };
            self.number(match self.letters {
                Letters::LargeFirst => u16::from_be_bytes([before, byte]),
                _ => u16::from_le_bytes([before, byte]),
            })?;
        }
        Ok(())
    }

    fn number(&mut self, number: u16) -> io::Result<()> {
        let is_first = (0xd800..0xdc00).contains(&number);
        let numbers = match self.first.take() {
            None if is_first => {
                self.first = Some(number);
                return Ok(());
            }
            None => [Some(number), None],
            Some(first) => [Some(first), Some(number)],
        };
        let mut letters = char::decode_utf16(numbers.into_iter().flatten());
        match (letters.next(), letters.next()) {
            (Some(Ok(letter)), None) => self.push(letter),
            _ => return Err(no_text()),
        }
        Ok(())
    }

    fn push(&mut self, letter: char) {
        // The mark at the begin is none of the text.
        let is_mark = std::mem::take(&mut self.is_begin) && letter == '\u{feff}';
        if !is_mark {
            let mut bytes = [0; 4];
            self.text
                .extend_from_slice(letter.encode_utf8(&mut bytes).as_bytes());
        }
    }

    /// The file ends here.
    fn end(&self) -> io::Result<()> {
        match self.byte.is_some() || self.first.is_some() {
            true => Err(no_text()),
            false => Ok(()),
        }
    }

    /// Hands on some of what was decoded.
    fn hand(&mut self, out: &mut [u8]) -> usize {
        let length = out.len().min(self.text.len() - self.at);
        out[..length].copy_from_slice(&self.text[self.at..self.at + length]);
        self.at += length;
        length
    }
}

fn no_text() -> io::Error {
    io::Error::other("it is not UTF-16 text; `encoding` says how its text is stored")
}

/// The bytes of a file, unpacked.
#[derive(Debug)]
enum PackedInput {
    Plain(InputReader),
    Gzipped(Box<MultiGzDecoder<InputReader>>),
}

impl Read for PackedInput {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Plain(input) => input.read(out),
            Self::Gzipped(input) => input.read(out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_place::{Access, Place};

    fn read(bytes: &[u8], encoding: Option<TextEncoding>) -> Result<String, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.csv");
        std::fs::write(&path, bytes).unwrap();
        let place = Place::parse(path.to_str().unwrap(), &Access::default()).unwrap();
        let file = TableFile::at(&place).unwrap().unwrap();
        let input = TextInput::open(&file, encoding, 1 << 20);
        let mut input = input.map_err(|error| error.to_string())?;
        let head = input.head();
        let mut text = String::new();
        let read = input.read_to_string(&mut text);
        read.map_err(|error| error.to_string())?;
        assert!(text.starts_with(&head), "{head:?}");
        Ok(text)
    }

    fn wide(text: &str, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        text.encode_utf16().flat_map(bytes).collect()
    }

    #[test]
    fn utf16_is_found_by_looking_with_a_mark_and_without() {
        let text = format!("name,ort\nJürgen 🦀,Köln\n{}", "x,y\n".repeat(50_000));
        for bytes in [u16::to_le_bytes, u16::to_be_bytes] {
            for mark in ["", "\u{feff}"] {
                let stored = wide(&format!("{mark}{text}"), bytes);
                assert_eq!(read(&stored, None).unwrap(), text);
            }
        }
        assert_eq!(read(text.as_bytes(), None).unwrap(), text);
        let cut = &wide("a,b\n1,2\n", u16::to_le_bytes)[..9];
        assert!(read(cut, None).unwrap_err().contains("not UTF-16"));
        let alone = wide("a,b,c,d\n", u16::to_le_bytes);
        let alone = [&alone[..], &[0x01, 0xdc, 0x41, 0x00]].concat();
        assert!(read(&alone, None).unwrap_err().contains("not UTF-16"));
    }

    #[test]
    fn latin1_is_read_where_it_is_said() {
        let text = b"caf\xe9,\x80 5\n";
        let read = read(text, Some(TextEncoding::Latin1)).unwrap();
        assert_eq!(read, "café,€ 5\n");
    }

    #[test]
    fn files_of_other_kinds_are_named_with_what_to_do() {
        for (bytes, expected) in [
            (&b"PK\x03\x04rest"[..], "pandas.read_excel"),
            (b"\xd0\xcf\x11\xe0rest", "CSV UTF-8"),
            (b"PAR1rest", "name it with `parquet`"),
            (b"ARROW1\0\0", "name it with `arrow`"),
        ] {
            let said = read(bytes, None).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
    }
}
