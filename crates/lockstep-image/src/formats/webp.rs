//! WebP, by image-webp: lossy and lossless; of an animated one, the first frame.
//!
//! A WebP is a list of chunks, of which one holds the picture. It is found here, its size compared with what the file
//! says elsewhere, and it alone is handed to the decoder as a file of its own. So transparency, which would be dropped,
//! is not even decoded, and memory is never taken on the word of a header that was not checked.

use std::io::{Cursor, ErrorKind};

use image_webp::{DecodingError, WebPDecoder};

use super::{OpenedPicture, widen};
use crate::decode::{Pixel, grown};
use crate::{ImageError, Orientation, PictureFormat, PictureHeader, exif};

/// A WebP whose chunks have been looked through.
pub(super) struct WebP<'a> {
    /// The chunk of the picture, its name included.
    bitstream: Chunk<'a>,
    /// The size of the whole.
    canvas: (u32, u32),
    /// Where the picture lies in it: an animation's first frame may be smaller.
    frame: Frame,
    orientation: Orientation,
}

#[derive(Clone, Copy)]
struct Chunk<'a> {
    name: [u8; 4],
    data: &'a [u8],
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Frame {
    left: u32,
    top: u32,
    width: u32,
    height: u32,
}

/// The largest side that a WebP can have.
const MAX_SIDE: u32 = 16_384;

impl<'a> WebP<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<WebP<'a>, ImageError> {
        let size = bytes.get(4..8).ok_or(CUT)?;
        let size = u32::from_le_bytes([size[0], size[1], size[2], size[3]]) as usize;
        // The byte that pads an odd chunk at the very end is left out by some.
        if bytes.len() + 1 < size.saturating_add(8) {
            return Err(CUT);
        }
        let end = bytes.len().min(size.saturating_add(8));
        let chunks = Chunks {
            rest: bytes.get(12..end).ok_or(CUT)?,
        };
        let first = chunks.clone().next().ok_or(CUT)??;
        if &first.name != b"VP8X" {
            let (width, height) = size_of(first)?;
            let frame = Frame {
                left: 0,
                top: 0,
                width,
                height,
            };
            return Ok(WebP {
                bitstream: first,
                canvas: (width, height),
                frame,
                orientation: Orientation::Upright,
            });
        }
        WebP::extended(first.data, chunks)
    }

    /// A file with more than its picture: transparency, EXIF, frames.
    fn extended(features: &[u8], chunks: Chunks<'a>) -> Result<WebP<'a>, ImageError> {
        let canvas = (three(features, 4)? + 1, three(features, 7)? + 1);
        if canvas.0.max(canvas.1) > MAX_SIDE {
            return Err(damaged("its canvas is larger than a WebP can be"));
        }
        let mut picture = None;
        let mut orientation = Orientation::Upright;
        for chunk in chunks {
            let chunk = chunk?;
            match &chunk.name {
                b"VP8 " | b"VP8L" if picture.is_none() => picture = Some((chunk, None)),
                b"ANMF" if picture.is_none() => picture = Some(first_frame(chunk.data)?),
                b"EXIF" => orientation = exif::orientation(chunk.data),
                _ => {}
            }
        }
        let (bitstream, frame) = picture.ok_or_else(|| damaged("it has no picture"))?;
        let (width, height) = size_of(bitstream)?;
        let frame = frame.unwrap_or(Frame {
            left: 0,
            top: 0,
            width: canvas.0,
            height: canvas.1,
        });
        let fits = frame.left + frame.width <= canvas.0 && frame.top + frame.height <= canvas.1;
        if (frame.width, frame.height) != (width, height) || !fits {
            return Err(damaged(
                "its picture is not of the size that its header says",
            ));
        }
        Ok(WebP {
            bitstream,
            canvas,
            frame,
            orientation,
        })
    }
}

/// The bitstream of an animation's frame, and where it goes.
fn first_frame(data: &[u8]) -> Result<(Chunk<'_>, Option<Frame>), ImageError> {
    let frame = Frame {
        left: three(data, 0)? * 2,
        top: three(data, 3)? * 2,
        width: three(data, 6)? + 1,
        height: three(data, 9)? + 1,
    };
    for chunk in (Chunks {
        rest: data.get(16..).unwrap_or_default(),
    }) {
        let chunk = chunk?;
        if matches!(&chunk.name, b"VP8 " | b"VP8L") {
            return Ok((chunk, Some(frame)));
        }
    }
    Err(damaged("its first frame has no picture"))
}

/// The size that a bitstream says of itself.
fn size_of(chunk: Chunk<'_>) -> Result<(u32, u32), ImageError> {
    let data = chunk.data;
    let (width, height) = match (&chunk.name, data) {
        (b"VP8 ", &[_, _, _, 0x9d, 0x01, 0x2a, a, b, c, d, ..]) => (
            u32::from(u16::from_le_bytes([a, b]) & 0x3fff),
            u32::from(u16::from_le_bytes([c, d]) & 0x3fff),
        ),
        (b"VP8L", &[0x2f, a, b, c, d, ..]) => {
            let bits = u32::from_le_bytes([a, b, c, d]);
            ((bits & 0x3fff) + 1, ((bits >> 14) & 0x3fff) + 1)
        }
        _ => return Err(damaged("its picture does not begin as one")),
    };
    if width == 0 || height == 0 {
        return Err(damaged("it has no width or no height"));
    }
    Ok((width, height))
}

impl OpenedPicture for WebP<'_> {
    fn header(&self) -> PictureHeader {
        let (width, height) = self.canvas;
        let frame = u64::from(self.frame.width) * u64::from(self.frame.height);
        PictureHeader {
            format: PictureFormat::WebP,
            width,
            height,
            orientation: self.orientation,
            // The chunk as a file of its own, and its parts in the decoder once more.
            work: 4 * self.bitstream.data.len() as u64 + 20 * frame,
        }
    }

    fn read(self: Box<Self>, pixels: &mut [Pixel], spare: &mut Vec<u8>) -> Result<(), ImageError> {
        let file = self.bitstream.alone();
        let mut decoder = WebPDecoder::new(Cursor::new(file.as_slice())).map_err(in_words)?;
        let Frame {
            left,
            top,
            width,
            height,
        } = self.frame;
        if decoder.dimensions() != (width, height) {
            return Err(damaged(
                "its picture is not of the size that its header says",
            ));
        }
        let channels = if decoder.has_alpha() { 4 } else { 3 };
        let raw = grown(spare, width as usize * height as usize * channels);
        decoder.read_image(raw).map_err(in_words)?;
        if (width, height) != self.canvas {
            pixels.fill(Pixel::default());
        }
        let rows = pixels
            .chunks_exact_mut(self.canvas.0 as usize)
            .skip(top as usize);
        for (row, raw) in rows.zip(raw.chunks_exact(width as usize * channels)) {
            widen(raw, channels, &mut row[left as usize..]);
        }
        Ok(())
    }
}

impl Chunk<'_> {
    /// A file of nothing but this chunk.
    fn alone(&self) -> Vec<u8> {
        let padded = self.data.len() + self.data.len() % 2;
        let mut file = Vec::with_capacity(20 + padded);
        file.extend(b"RIFF");
        file.extend((padded as u32 + 12).to_le_bytes());
        file.extend(b"WEBP");
        file.extend(self.name);
        file.extend((self.data.len() as u32).to_le_bytes());
        file.extend(self.data);
        file.resize(20 + padded, 0);
        file
    }
}

/// The chunks of a file or of a frame; one that is longer than what is left is an error.
#[derive(Clone)]
struct Chunks<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for Chunks<'a> {
    type Item = Result<Chunk<'a>, ImageError>;

    fn next(&mut self) -> Option<Self::Item> {
        // Less than a chunk's header behind the last one is padding.
        let (head, data) = self.rest.split_at_checked(8)?;
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let Some((data, rest)) = data.split_at_checked(length) else {
            self.rest = &[];
            return Some(Err(CUT));
        };
        self.rest = rest.get(length % 2..).unwrap_or_default();
        Some(Ok(Chunk {
            name: [head[0], head[1], head[2], head[3]],
            data,
        }))
    }
}

const CUT: ImageError = ImageError::Truncated {
    format: PictureFormat::WebP,
};

/// A number of three bytes.
fn three(data: &[u8], at: usize) -> Result<u32, ImageError> {
    match data.get(at..at + 3) {
        Some(&[a, b, c]) => Ok(u32::from_le_bytes([a, b, c, 0])),
        _ => Err(damaged("a chunk is too short")),
    }
}

fn damaged(reason: &str) -> ImageError {
    ImageError::damaged(PictureFormat::WebP, reason)
}

/// The decoder's error in words for people.
fn in_words(error: DecodingError) -> ImageError {
    match error {
        DecodingError::IoError(error) if error.kind() == ErrorKind::UnexpectedEof => {
            damaged("its data ends too early")
        }
        other => ImageError::damaged(PictureFormat::WebP, other),
    }
}
