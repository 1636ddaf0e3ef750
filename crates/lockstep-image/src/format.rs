//! What the bytes are. Names of files are never asked: datasets are full of PNG files named `.jpg`.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ImageError;

/// A picture format that is read here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PictureFormat {
    /// JPEG, baseline or progressive.
    Jpeg,
    /// PNG; of an animated one, its still picture.
    Png,
    /// WebP, lossy or lossless; of an animated one, the first frame.
    WebP,
    /// BMP of Windows or OS/2.
    Bmp,
}

impl fmt::Display for PictureFormat {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            PictureFormat::Jpeg => "JPEG",
            PictureFormat::Png => "PNG",
            PictureFormat::WebP => "WebP",
            PictureFormat::Bmp => "BMP",
        })
    }
}

impl PictureFormat {
    /// The format that these bytes begin like.
    ///
    /// # Errors
    /// [`ImageError::Empty`], [`ImageError::Unsupported`] for picture formats that are known by name only,
    /// [`ImageError::NotAnImage`] for everything else.
    pub fn of(bytes: &[u8]) -> Result<PictureFormat, ImageError> {
        match bytes {
            [] => Err(ImageError::Empty),
            [0xff, 0xd8, 0xff, ..] => Ok(PictureFormat::Jpeg),
            [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n', ..] => Ok(PictureFormat::Png),
            [
                b'R',
                b'I',
                b'F',
                b'F',
                _,
                _,
                _,
                _,
                b'W',
                b'E',
                b'B',
                b'P',
                ..,
            ] => Ok(PictureFormat::WebP),
            [b'B', b'M', rest @ ..] if plausible_bmp(rest) => Ok(PictureFormat::Bmp),
            _ => Err(stranger(bytes)),
        }
    }
}

/// "BM" alone would take in a good deal of text: the size of the second header must be one that exists.
fn plausible_bmp(rest: &[u8]) -> bool {
    match rest.get(12..16) {
        Some(size) => matches!(size, [12 | 16 | 40 | 52 | 56 | 64 | 108 | 124, 0, 0, 0]),
        // Cut before that: a BMP if it is not text.
        None => !rest.is_empty() && !readable(rest),
    }
}

/// Formats that are recognised so that they can be refused by name.
fn stranger(bytes: &[u8]) -> ImageError {
    let what = match bytes {
        [b'G', b'I', b'F', b'8', ..] => "GIF",
        [b'I', b'I', 42 | 43, 0, ..] | [b'M', b'M', 0, 42 | 43, ..] => "TIFF",
        [_, _, _, _, b'f', b't', b'y', b'p', b'a', b'v', b'i', ..] => "AVIF",
        [_, _, _, _, b'f', b't', b'y', b'p', b'h' | b'm', ..] => "HEIC",
        [0xff, 0x0a, ..] | [0, 0, 0, 12, b'J', b'X', b'L', ..] => "JPEG XL",
        [0, 0, 0, 12, b'j', b'P', ..] | [0xff, 0x4f, 0xff, 0x51, ..] => "JPEG 2000",
        [b'8', b'B', b'P', b'S', ..] => "a Photoshop file",
        [b'%', b'P', b'D', b'F', ..] => "PDF",
        [0, 0, 1, 0, ..] => "ICO",
        _ => {
            let begins = beginning(bytes);
            return ImageError::NotAnImage { begins };
        }
    };
    ImageError::Unsupported { what: what.into() }
}

/// The first bytes for people: as text if they are text, else in hexadecimal.
fn beginning(bytes: &[u8]) -> String {
    let head = &bytes[..bytes.len().min(16)];
    if readable(head) {
        return format!("the text {:?}", String::from_utf8_lossy(head));
    }
    let hex: Vec<String> = head[..head.len().min(8)]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("the bytes {}", hex.join(" "))
}

fn readable(bytes: &[u8]) -> bool {
    bytes
        .iter()
        .all(|byte| byte.is_ascii_graphic() || byte.is_ascii_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_file_is_quoted_in_the_error() {
        let error = PictureFormat::of(b"<html><body>404</body></html>").unwrap_err();
        assert_eq!(error.kind(), "not-an-image");
        assert!(error.to_string().contains("<html><body>404<"), "{error}");
    }

    #[test]
    fn text_that_begins_with_bm_is_not_a_bmp() {
        for text in [
            "BM",
            "BMI is a measure of weight by height",
            "BMW,2019,blue\n",
        ] {
            assert_eq!(
                PictureFormat::of(text.as_bytes()).unwrap_err().kind(),
                "not-an-image",
                "{text}"
            );
        }
    }

    #[test]
    fn formats_that_are_not_read_are_called_by_name() {
        let heads: [(&[u8], &str); 5] = [
            (b"GIF89a\x01\0", "GIF"),
            (b"II*\0\x08\0\0\0", "TIFF"),
            (b"\0\0\0\x1cftypavif", "AVIF"),
            (b"\0\0\0\x18ftypheic", "HEIC"),
            (b"%PDF-1.7", "PDF"),
        ];
        for (head, name) in heads {
            let error = PictureFormat::of(head).unwrap_err();
            assert_eq!(error.kind(), "unsupported");
            assert!(error.to_string().starts_with(name), "{error}");
        }
    }

    #[test]
    fn no_bytes_are_an_empty_file() {
        assert_eq!(PictureFormat::of(&[]), Err(ImageError::Empty));
    }
}
