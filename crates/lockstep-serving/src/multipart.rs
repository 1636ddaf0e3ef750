//! A body of the type `multipart/form-data`: what forms of pages and `curl -F` send files in.

use crate::Refusal;

/// The most parts of a body.
const MOST: usize = 10_000;

/// One part of a body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part<'a> {
    /// The name of its field.
    pub(crate) name: String,
    /// What it holds.
    pub(crate) bytes: &'a [u8],
}

/// The parts of a body, whose type has the words `kind`.
///
/// # Errors
/// When it is not made as it should be.
pub(crate) fn parts<'a>(kind: &str, body: &'a [u8]) -> Result<Vec<Part<'a>>, Refusal> {
    let broken = |what: &str| Refusal::bad(format!("the body is no multipart/form-data: {what}"));
    let boundary = parameter(kind, "boundary");
    let boundary = boundary.ok_or_else(|| broken("its type names no boundary"))?;
    let first = format!("--{boundary}");
    let next = format!("\r\n--{boundary}");
    let begin = find(body, first.as_bytes()).ok_or_else(|| broken("the boundary is not in it"))?;
    let mut rest = &body[begin + first.len()..];
    let mut parts = Vec::new();
    loop {
        if rest.starts_with(b"--") {
            return Ok(parts);
        }
        let unfinished = || broken("it ends before its last boundary");
        let head = find(rest, b"\r\n\r\n").ok_or_else(unfinished)?;
        let content = &rest[head + 4..];
        let end = find(content, next.as_bytes()).ok_or_else(unfinished)?;
        let lines = String::from_utf8_lossy(&rest[..head]);
        let disposition = lines.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            name.trim()
                .eq_ignore_ascii_case("content-disposition")
                .then(|| value.trim().to_owned())
        });
        let name = disposition.and_then(|words| parameter(&words, "name"));
        if parts.len() == MOST {
            return Err(Refusal::too_large(format!(
                "the body has more than {MOST} parts"
            )));
        }
        parts.push(Part {
            name: name.unwrap_or_default(),
            bytes: &content[..end],
        });
        rest = &content[end + next.len()..];
    }
}

/// The value of a parameter that follows the words of a header.
fn parameter(words: &str, name: &str) -> Option<String> {
    let mut parameters = words.split(';').skip(1);
    parameters.find_map(|parameter| {
        let (key, value) = parameter.split_once('=')?;
        let value = value.trim().trim_matches('"');
        (key.trim().eq_ignore_ascii_case(name) && !value.is_empty()).then(|| value.to_owned())
    })
}

/// Where `wanted` begins in `bytes`.
fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    let first = *wanted.first()?;
    let mut from = 0;
    loop {
        let at = from + bytes[from..].iter().position(|&byte| byte == first)?;
        if bytes[at..].starts_with(wanted) {
            return Some(at);
        }
        from = at + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KIND: &str = "multipart/form-data; boundary=\"x-1\"";

    #[test]
    fn parts_are_found_with_their_names_and_all_their_bytes() {
        let body =
            b"--x-1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n\
                     Content-Type: image/png\r\n\r\n\x00\r\n--x\r\n\r\n--x-1\r\n\
                     content-disposition: form-data; name=params\r\n\r\n{}\r\n--x-1--\r\n";
        let parts = parts(KIND, body).unwrap();
        let found: Vec<_> = parts
            .iter()
            .map(|part| (part.name.as_str(), part.bytes))
            .collect();
        assert_eq!(
            found,
            [("file", &b"\x00\r\n--x\r\n"[..]), ("params", b"{}")]
        );
    }

    #[test]
    fn bodies_that_are_cut_short_are_refused() {
        for (kind, body, expected) in [
            ("multipart/form-data", &b""[..], "names no boundary"),
            (KIND, b"hello", "the boundary is not in it"),
            (
                KIND,
                b"--x-1\r\nA: b\r\n\r\nhello",
                "ends before its last boundary",
            ),
            (KIND, b"--x-1", "ends before its last boundary"),
        ] {
            let said = parts(kind, body).unwrap_err().message;
            assert!(said.contains(expected), "{said}");
        }
    }
}
