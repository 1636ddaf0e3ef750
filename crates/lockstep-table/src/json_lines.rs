//! JSON lines: an object a line, whose keys are the columns and whose values are text, numbers, truths or nothing.
//!
//! Writers leave out what is not there, so a file is read once before for the names of its columns: all keys of all
//! lines, in the order in which they first come. A cell is the text that a CSV file would have, and nothing is a gap.

use crate::TableError;
use crate::columns::shown;
use crate::csv_format::TextEncoding;
use crate::files::TableFile;
use crate::lines::{BUFFER, too_long};
use crate::text_input::TextInput;
use csv::{Position, StringRecord};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

/// An open file, whose columns are known.
#[derive(Debug)]
pub(crate) struct JsonLines {
    text: NumberedLines,
    columns: Columns,
    cells: Vec<Option<String>>,
}

impl JsonLines {
    /// Opens `file`; its columns come with it.
    pub(crate) fn open(
        file: &TableFile,
        memory: u64,
        longest: u64,
    ) -> Result<(Self, StringRecord), TableError> {
        let name = file.place.to_string();
        let open = || NumberedLines::open(file, memory, longest);
        let mut columns = Columns::default();
        let mut keys = open()?;
        while keys.next(&name)? {
            keys.parse(&name, Keys(&mut columns))?;
            if columns.bytes > longest {
                return Err(TableError::Line {
                    file: name,
                    line: keys.number,
                    reason: format!(
                        "with its keys there are {} columns, whose names take more than {longest} bytes; keys must be names \
                         of columns, and the same ones on every line. If they are, allow more with data.memory",
                        columns.names.len()
                    ),
                });
            }
        }
        if columns.names.is_empty() {
            return Err(TableError::Line {
                file: name,
                line: 1,
                reason: "the file names no columns; every line must be an object".to_owned(),
            });
        }
        let header = StringRecord::from(columns.names.clone());
        let lines = Self {
            text: open()?,
            cells: vec![None; columns.names.len()],
            columns,
        };
        Ok((lines, header))
    }

    /// Reads the next line into `record`; whether there was one.
    pub(crate) fn next(
        &mut self,
        name: &str,
        record: &mut StringRecord,
    ) -> Result<bool, TableError> {
        if !self.text.next(name)? {
            return Ok(false);
        }
        self.cells.fill(None);
        let cells = Cells {
            columns: &self.columns,
            cells: &mut self.cells,
        };
        self.text.parse(name, cells)?;
        record.clear();
        for cell in &self.cells {
            record.push_field(cell.as_deref().unwrap_or(""));
        }
        let mut position = Position::new();
        position.set_line(self.text.number);
        record.set_position(Some(position));
        Ok(true)
    }
}

/// The lines of a file that are not empty, with their numbers.
#[derive(Debug)]
struct NumberedLines {
    input: BufReader<TextInput>,
    longest: u64,
    line: Vec<u8>,
    /// The number of the line, counted from 1.
    number: u64,
}

impl NumberedLines {
    fn open(file: &TableFile, memory: u64, longest: u64) -> Result<Self, TableError> {
        let input = TextInput::open(file, Some(TextEncoding::Utf8), memory)?;
        Ok(Self {
            input: BufReader::with_capacity(BUFFER, input),
            longest,
            line: Vec::new(),
            number: 0,
        })
    }

    fn next(&mut self, name: &str) -> Result<bool, TableError> {
        loop {
            self.line.clear();
            let mut limited = self.input.by_ref().take(self.longest + 1);
            let read = limited.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| TableError::unreadable(name, error))?;
            self.number += 1;
            match read {
                0 => return Ok(false),
                _ if read as u64 > self.longest => return Err(too_long(name, self.longest)),
                _ if self.line.trim_ascii().is_empty() => {}
                _ => return Ok(true),
            }
        }
    }

    fn parse<'de, S: DeserializeSeed<'de>>(
        &'de self,
        name: &str,
        seed: S,
    ) -> Result<S::Value, TableError> {
        let wrong = |reason: String| TableError::Line {
            file: name.to_owned(),
            line: self.number,
            reason,
        };
        let line = self.line.strip_prefix(b"\xef\xbb\xbf".as_slice());
        let line = line.unwrap_or(&self.line).trim_ascii();
        if line.starts_with(b"[") {
            return Err(wrong(
                "it begins a list, where each line must be an object by itself; `jq -c '.[]' a.json > a.jsonl` writes \
                 the objects of a list as lines"
                    .to_owned(),
            ));
        }
        let mut json = serde_json::Deserializer::from_slice(line);
        let read = seed.deserialize(&mut json);
        let read = read.and_then(|read| json.end().map(|()| read));
        read.map_err(|error| {
            // There is but one line, whose number is said before.
            let said = error.to_string();
            let said = said.split(" at line ").next().unwrap_or_default();
            wrong(shown(said))
        })
    }
}

/// The columns by name.
#[derive(Debug, Default)]
struct Columns {
    names: Vec<String>,
    places: HashMap<String, usize>,
    /// What the names take, about: keys that are new on every line would take the memory of the machine.
    bytes: u64,
}

/// What a column takes beside the text of its name, which is there twice.
const COLUMN_BYTES: usize = 100;

/// Takes in the keys of an object.
struct Keys<'a>(&'a mut Columns);

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of column names and values")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let columns = self.0;
        while let Some((key, IgnoredAny)) = map.next_entry::<String, _>()? {
            if !columns.places.contains_key(&key) {
                columns.bytes += (2 * key.len() + COLUMN_BYTES) as u64;
                columns.places.insert(key.clone(), columns.names.len());
                columns.names.push(key);
            }
        }
        Ok(())
    }
}

/// Takes in the values of an object.
struct Cells<'a> {
    columns: &'a Columns,
    cells: &'a mut [Option<String>],
}

impl<'de> DeserializeSeed<'de> for Cells<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Cells<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object of column names and values")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let text = map.next_value_seed(FlatValue(&key))?;
            // A file that changes while it is read is found by its version.
            let Some(&at) = self.columns.places.get(&key) else {
                continue;
            };
            if self.cells[at].replace(text).is_some() {
                let said = format_args!("the key `{}` is there twice", shown(&key)).to_string();
                return Err(Error::custom(said));
            }
        }
        Ok(())
    }
}

/// The value of this key as the text of a cell.
struct FlatValue<'a>(&'a str);

impl FlatValue<'_> {
    fn nested<E: Error>(&self, what: &str) -> E {
        E::custom(format!(
            "the key `{}` holds {what}; values must be text, numbers, true, false or null, so write its parts as keys of \
             their own",
            shown(self.0)
        ))
    }
}

impl<'de> DeserializeSeed<'de> for FlatValue<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for FlatValue<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a number, true, false or null")
    }

    fn visit_bool<E: Error>(self, truth: bool) -> Result<String, E> {
        Ok(truth.to_string())
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<String, E> {
        Ok(number.to_string())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<String, E> {
        Ok(format!("{number:?}"))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<String, E> {
        Ok(text.to_owned())
    }

    fn visit_unit<E: Error>(self) -> Result<String, E> {
        Ok(String::new())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, _: A) -> Result<String, A::Error> {
        Err(self.nested("a list"))
    }

    fn visit_map<M: MapAccess<'de>>(self, _: M) -> Result<String, M::Error> {
        Err(self.nested("an object"))
    }
}

#[cfg(test)]
mod tests {
    use crate::{CellForm, ColumnNames, Gaps, TableFormat, TableReader, find_files, look};
    use lockstep_place::{Access, Place};

    /// The columns of the input, their numbers, and the labels.
    type Read = (Vec<String>, Vec<f32>, Vec<String>);

    fn read(text: &str) -> Result<Read, String> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("x.jsonl"), text).unwrap();
        let place = Place::parse(folder.path().to_str().unwrap(), &Access::default()).unwrap();
        let mut columns = ColumnNames {
            label: Some("label".into()),
            gaps: Gaps::Keep,
            form: CellForm {
                na: vec!["unknown".into()],
                ..CellForm::default()
            },
            ..ColumnNames::default()
        };
        let format = TableFormat::JsonLines;
        let files = find_files(&place, format).unwrap();
        let looked = look(&files, format, &columns, 1 << 20).map_err(|error| error.to_string())?;
        columns.features = looked.features;
        columns.kinds = looked.kinds;
        let mut reader = TableReader::of_files(files, format, &columns, 1 << 20);
        let (mut numbers, mut labels) = (Vec::new(), Vec::new());
        while let Some(batch) = reader.next_batch().map_err(|error| error.to_string())? {
            numbers.extend(batch.features);
            labels.extend(batch.labels.unwrap());
        }
        Ok((reader.features().to_vec(), numbers, labels))
    }

    #[test]
    fn objects_are_rows_and_all_their_keys_are_columns() {
        let (columns, numbers, labels) = read(
            "{\"a\": 1, \"label\": \"x\", \"ok\": true}\n\n\
             {\"b\": -2.5, \"label\": 7, \"a\": null, \"ok\": false}\r\n\
             {\"a\": \"unknown\", \"b\": 1e3, \"ok\": true, \"label\": \"y\"}",
        )
        .unwrap();
        assert_eq!(columns, ["a", "ok", "b"]);
        assert_eq!(labels, ["x", "7", "y"]);
        let expected = [1.0, 1.0, f32::NAN, f32::NAN, 0.0, -2.5, f32::NAN, 1.0, 1e3];
        let bits = |numbers: &[f32]| numbers.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&numbers), bits(&expected));
    }

    #[test]
    fn what_is_nested_or_no_object_is_refused_with_its_line_and_key() {
        let first = "{\"a\": 1, \"label\": \"x\"}\n";
        for (line, expected) in [
            (
                "{\"a\": {\"b\": 1}, \"label\": \"x\"}",
                "line 2: the key `a` holds an object",
            ),
            (
                "{\"a\": [1], \"label\": \"x\"}",
                "line 2: the key `a` holds a list",
            ),
            (
                "{\"a\": 1, \"a\": 2, \"label\": \"x\"}",
                "line 2: the key `a` is there twice",
            ),
            ("[1, 2]", "line 2: it begins a list"),
            ("7", "line 2: invalid type"),
            ("{\"a\": 1", "line 2: EOF"),
            ("{\"a\": 1} x", "line 2: trailing characters"),
            (
                "{\"a\": \"two\", \"label\": \"x\"}\n{\"label\": \"\"}",
                "line 3: the column `label` is empty",
            ),
        ] {
            let said = read(&format!("{first}{line}\n")).unwrap_err();
            assert!(said.contains(expected), "{said}");
        }
        assert!(read("").unwrap_err().contains("names no columns"));
    }

    #[test]
    fn keys_that_are_new_on_every_line_are_refused_before_they_fill_the_memory() {
        let lines = (0..20_000).map(|id| format!("{{\"user-{id}\": 1, \"label\": \"x\"}}\n"));
        let said = read(&lines.collect::<String>()).unwrap_err();
        assert!(
            said.contains("line ") && said.contains("columns, whose names take"),
            "{said}"
        );
        assert!(said.contains("data.memory"), "{said}");
    }
}
