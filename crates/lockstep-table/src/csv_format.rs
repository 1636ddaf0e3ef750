//! How a CSV file is written, and what of that is found by looking at its head: what stands between two values, and
//! whether its text is UTF-16.
//!
//! Only the head is looked at, and the answer depends on it alone, so a file is read in one way by everyone.

use serde::{Deserialize, Serialize};

/// Bytes of the head.
pub(crate) const HEAD: usize = 64 << 10;
/// What may stand between two values, beside a comma.
const OTHERS: [u8; 3] = [b';', b'\t', b'|'];

/// How a CSV file is written. What is not said is found by looking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CsvFormat {
    /// What stands between two values: if nothing is said, `,`, `;`, a tab or `|`.
    pub delimiter: Option<u8>,
    /// What lines begin with that are none of the table.
    pub comment: Option<u8>,
    /// How its text is stored: if nothing is said, as UTF-8 or UTF-16.
    pub encoding: Option<TextEncoding>,
}

/// How text is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TextEncoding {
    /// As UTF-8, with a mark at its begin or without.
    Utf8,
    /// A byte a letter, as Windows has them for Western Europe.
    Latin1,
    /// Two bytes a letter, the smaller first, unless a mark at its begin says otherwise.
    Utf16,
}

impl CsvFormat {
    /// What stands between two values of the file that begins with this text.
    pub fn delimiter(&self, head: &str) -> u8 {
        self.delimiter
            .unwrap_or_else(|| found_delimiter(head, self.comment))
    }
}

/// The delimiter that cuts the first line into most names, and nearly all lines of the head into as many values. That is a
/// comma, unless another one does better.
fn found_delimiter(head: &str, comment: Option<u8>) -> u8 {
    let mut best = (b',', 0);
    for delimiter in [b','].into_iter().chain(OTHERS) {
        let mut lines = Fields {
            head,
            comment,
            delimiter,
            is_first: true,
        };
        let Some(names) = lines.next() else { continue };
        let (mut all, mut fitting) = (0, 0);
        for fields in lines {
            all += 1;
            fitting += usize::from(fields == names);
        }
        // One broken line is named when it is read.
        if names > 1 && fitting * 10 >= all * 9 && names > best.1 {
            best = (delimiter, names);
        }
    }
    best.0
}

/// How many values each line of a head has that ends in it.
struct Fields<'a> {
    head: &'a str,
    comment: Option<u8>,
    delimiter: u8,
    is_first: bool,
}

impl Iterator for Fields<'_> {
    type Item = usize;

    fn next(&mut self) -> Option<usize> {
        loop {
            let (mut fields, mut is_quoted, mut end) = (1, false, None);
            for (at, byte) in self.head.bytes().enumerate() {
                match byte {
                    b'"' => is_quoted = !is_quoted,
                    b'\n' if !is_quoted => {
                        end = Some(at + 1);
                        break;
                    }
                    byte if byte == self.delimiter && !is_quoted => fields += 1,
                    _ => {}
                }
            }
            // The last line may go on behind the head, but of a first line that does, there is no other part.
            let whole = (self.is_first && !self.head.is_empty()).then_some(self.head.len());
            let (line, rest) = self.head.split_at(end.or(whole)?);
            self.head = rest;
            let is_comment = self.comment.is_some() && line.bytes().next() == self.comment;
            if !is_comment && !line.trim_end_matches(['\r', '\n']).is_empty() {
                self.is_first = false;
                return Some(fields);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_delimiter_is_found_in_the_head_and_is_a_comma_in_doubt() {
        for (head, expected) in [
            ("a,b\n1,2\n", b','),
            ("a;b\n1,5;2,5\n", b';'),
            ("a\tb\tc\n1\t2\t3\n", b'\t'),
            ("a|b\n1|2\n", b'|'),
            // As many names both ways.
            ("a,b;c\n1,2;3\n", b','),
            ("a,b|c|d\n1,2|3|4\n", b'|'),
            // Only the first line has it.
            ("what; why\nx\ny\n", b','),
            ("x\n1\n", b','),
            // A first line that goes on behind the head.
            ("a;b", b';'),
            ("", b','),
            // What stands between quotes separates nothing.
            ("\"a;b;c\",d\n\"1;\n2;3\",4\n", b','),
            ("\"a,b\";c;d\n\"1,2\";3;4\n", b';'),
            (
                "a;b\n1;2\n3;4\n5;6\n\n7;8\n9;1\n1;2\n1;2\n1;2\n1;2\n3\n",
                b';',
            ),
            // A line that the head cuts off.
            ("a;b\n1;2\n3", b';'),
        ] {
            let found = CsvFormat::default().delimiter(head);
            assert_eq!(char::from(found), char::from(expected), "{head:?}");
        }
        let comment = CsvFormat {
            comment: Some(b'#'),
            ..CsvFormat::default()
        };
        assert_eq!(comment.delimiter("# a, b, c, d\na;b\n1;2\n"), b';');
        let said = CsvFormat {
            delimiter: Some(b':'),
            ..comment
        };
        assert_eq!(said.delimiter("a,b\n"), b':');
    }
}
