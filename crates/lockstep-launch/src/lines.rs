//! Cuts what a worker writes into lines.
//!
//! Workers may write anything: progress bars that redraw themselves with carriage returns, bytes that
//! are not UTF-8, a megabyte without a line end, a last line without one. Each of these becomes lines
//! that can be logged and shown; no byte that could be read is lost, and memory stays bounded.

use std::io::{self, Read};

/// Bytes after which a line without an end is cut, and goes on as the next line.
pub(crate) const LONGEST_LINE: usize = 16 * 1024;

/// Reads `source` to its end and calls `each` for every line, without its end.
///
/// Lines end with `\n`, `\r\n` or `\r`. Empty lines between two ends are passed on, except the one
/// that a carriage return before a line feed would make. Reading stops early when `each` returns
/// false.
pub(crate) fn each_line(
    mut source: impl Read,
    mut each: impl FnMut(String) -> bool,
) -> io::Result<()> {
    let mut splitter = LineSplitter::default();
    let mut buffer = [0; 8192];
    loop {
        let got = match source.read(&mut buffer) {
            Ok(0) => break,
            Ok(got) => got,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        for &byte in &buffer[..got] {
            if let Some(line) = splitter.push(byte)
                && !each(line)
            {
                return Ok(());
            }
        }
    }
    if let Some(line) = splitter.finish() {
        each(line);
    }
    Ok(())
}

/// Cuts output into lines as it comes, a byte at a time.
#[derive(Debug, Default)]
pub struct LineSplitter {
    line: Vec<u8>,
    /// The last byte was a carriage return, whose line was handed out already.
    after_return: bool,
}

impl LineSplitter {
    /// Takes the next byte, and returns the line that it ends, if any.
    pub fn push(&mut self, byte: u8) -> Option<String> {
        let after_return = std::mem::replace(&mut self.after_return, byte == b'\r');
        match byte {
            b'\n' if after_return => None,
            b'\n' | b'\r' => Some(self.take(self.line.len())),
            _ => {
                self.line.push(byte);
                (self.line.len() >= LONGEST_LINE).then(|| self.take(self.boundary()))
            }
        }
    }

    /// What is left when the output is at its end.
    pub fn finish(mut self) -> Option<String> {
        (!self.line.is_empty()).then(|| self.take(self.line.len()))
    }

    fn take(&mut self, len: usize) -> String {
        let rest = self.line.split_off(len);
        let line = std::mem::replace(&mut self.line, rest);
        String::from_utf8_lossy(&line).into_owned()
    }

    /// Where to cut so that no character is torn: before an incomplete one at the end.
    fn boundary(&self) -> usize {
        let len = self.line.len();
        let tail = self.line[len - 4.min(len)..].utf8_chunks().last();
        match tail.map(|chunk| chunk.invalid().len()) {
            Some(torn) if torn < len => len - torn,
            _ => len,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        each_line(bytes, |line| {
            lines.push(line);
            true
        })
        .unwrap();
        lines
    }

    #[test]
    fn every_kind_of_line_end_ends_a_line() {
        assert_eq!(lines(b"a\nb\r\nc\rd"), ["a", "b", "c", "d"]);
        assert_eq!(lines(b"a\n\nb\n"), ["a", "", "b"]);
    }

    #[test]
    fn a_progress_bar_becomes_lines() {
        assert_eq!(lines(b"10%\r20%\r30%\n"), ["10%", "20%", "30%"]);
    }

    #[test]
    fn bytes_that_are_not_utf8_are_shown_as_such() {
        assert_eq!(lines(b"caf\xe9!\n"), ["caf\u{fffd}!"]);
    }

    #[test]
    fn a_line_without_end_is_cut_and_nothing_is_lost() {
        let long = "x".repeat(LONGEST_LINE * 2 + 5);
        let lines = lines(long.as_bytes());
        assert_eq!(lines.len(), 3);
        assert_eq!(lines.concat(), long);
    }

    #[test]
    fn a_cut_never_tears_a_character() {
        let long = format!("{}{}", "x".repeat(LONGEST_LINE - 1), "é".repeat(10));
        assert_eq!(lines(long.as_bytes()).concat(), long);
    }

    #[test]
    fn reading_stops_when_nobody_listens() {
        let mut seen = 0;
        each_line(&b"a\nb\nc\n"[..], |_| {
            seen += 1;
            seen < 2
        })
        .unwrap();
        assert_eq!(seen, 2);
    }
}
