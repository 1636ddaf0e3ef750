//! Pictures of a request become samples exactly as those of a folder do.

use crate::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use lockstep_image::{Limits, Transform, Transformer, probe};

/// Adds the pixels of each picture to `out`.
///
/// # Errors
/// When one cannot be read, or has too many pixels; the error names it by its row.
pub(crate) fn decode(
    transform: &Transform,
    pictures: &[Vec<u8>],
    max_pixels: u64,
    out: &mut Vec<u8>,
) -> Result<(), Refusal> {
    let transformer = Transformer::new(transform, Limits::default());
    let mut transformer = transformer.map_err(Refusal::internal)?;
    let length = transformer.output_len();
    for (row, picture) in pictures.iter().enumerate() {
        let wrong = |reason: String| Refusal::bad(format!("row {row}: the picture {reason}"));
        if picture.is_empty() {
            return Err(wrong("is empty".to_owned()));
        }
        let unreadable = |error| wrong(format!("cannot be read: {error}"));
        let pixels = probe(picture).map_err(unreadable)?.pixels();
        if pixels > max_pixels {
            return Err(wrong(format!(
                "has {pixels} pixels; there may be {max_pixels}"
            )));
        }
        let from = out.len();
        out.resize(from + length, 0);
        let applied = transformer.apply(picture, &mut out[from..]);
        applied.map_err(unreadable)?;
    }
    Ok(())
}

/// The bytes of a picture that came as text in base64, perhaps as the address of a page's own data.
pub(crate) fn of_text(row: usize, text: &str) -> Result<Vec<u8>, Refusal> {
    let text = match text
        .strip_prefix("data:")
        .and_then(|rest| rest.split_once(','))
    {
        Some((_, data)) => data,
        None => text,
    };
    let text = text.trim();
    STANDARD.decode(text).map_err(|error| {
        Refusal::bad(format!(
            "row {row} is text that is no picture in base64: {error}"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_a_picture_in_base64_or_refused_with_its_row() {
        assert_eq!(of_text(0, "aGVsbG8=").unwrap(), b"hello");
        assert_eq!(
            of_text(0, "data:image/png;base64,aGVsbG8=").unwrap(),
            b"hello"
        );
        let said = of_text(7, "a picture").unwrap_err().message;
        assert!(
            said.starts_with("row 7 is text that is no picture"),
            "{said}"
        );
    }
}
