//! Pictures of the hardest mistakes: what a person wants to see of them first.
//!
//! They are one file, each below the one before, in the order of the evaluation's `mistakes`. Of a set of vectors they
//! are read from the files that the vectors were made of. A file that is not there leaves its place grey: a picture is
//! worth no failure.

use lockstep_data::Dataset;
use lockstep_image::{Limits, Transform, Transformer};
use lockstep_measure::{Evaluation, Mistake};
use lockstep_place::{Access, Place, PlaceError};
use lockstep_resolve::PictureInput;

/// What is shown in place of a file that cannot be read.
const GREY: u8 = 128;

/// The files that the vectors of a set were made of, each of which has the name of its sample.
#[derive(Debug, Clone, Copy)]
pub struct PictureFiles<'a> {
    access: &'a Access,
    transform: &'a Transform,
}

impl<'a> PictureFiles<'a> {
    /// The files of a model's pictures, which `access` reaches; nothing if no encoder makes vectors of them.
    pub fn of(pictures: Option<&'a PictureInput>, access: &'a Access) -> Option<Self> {
        let PictureInput { transform, encoder } = pictures?;
        encoder.as_ref()?;
        Some(Self { access, transform })
    }

    /// The pixels of mistaken pictures as the encoder sees them, and the height and width of each; nothing if none can be
    /// read.
    fn pixels(&self, mistakes: &[Mistake]) -> Option<([usize; 2], Vec<u8>)> {
        let mut transformer = Transformer::new(self.transform, Limits::default()).ok()?;
        let mut pixels = vec![GREY; mistakes.len() * transformer.output_len()];
        let pictures = pixels.chunks_exact_mut(transformer.output_len());
        let mut shown = 0;
        for (mistake, out) in mistakes.iter().zip(pictures) {
            match self.read(mistake.path.as_deref()?) {
                Ok(bytes) if transformer.apply(&bytes, out).is_ok() => shown += 1,
                // What was written of a damaged picture is of no meaning.
                Ok(_) => out.fill(GREY),
                // It is gone; the others need not be.
                Err(PlaceError::NotFound { .. } | PlaceError::Io { .. }) => {}
                // A store that does not answer is not asked again and again.
                Err(_) => break,
            }
        }
        let size = transformer.output().map(|side| side as usize);
        (shown > 0).then_some((size, pixels))
    }

    fn read(&self, path: &str) -> Result<Vec<u8>, PlaceError> {
        Place::parse(path, self.access)?.read_at_most(Limits::default().max_memory)
    }
}

/// The pictures as PNG; nothing where samples are no pictures, or nothing was mistaken.
pub(crate) fn pictures(
    set: &Dataset,
    files: Option<&PictureFiles<'_>>,
    evaluation: &Evaluation,
) -> Option<Vec<u8>> {
    let Evaluation::Classes(classes) = evaluation else {
        return None;
    };
    let mistakes = &classes.mistakes;
    if mistakes.is_empty() {
        return None;
    }
    if let Some(files) = files {
        let ([height, width], pixels) = files.pixels(mistakes)?;
        return png([3, height * mistakes.len(), width], &pixels);
    }
    let mut pixels = Vec::new();
    for mistake in mistakes {
        pixels.extend_from_slice(set.picture(usize::try_from(mistake.row).ok()?)?);
    }
    let [channels, height, width] = set.shape();
    png([channels, height * mistakes.len(), width], &pixels)
}

/// A PNG of so many channels, rows and columns.
fn png([channels, height, width]: [usize; 3], pixels: &[u8]) -> Option<Vec<u8>> {
    let colour = match channels {
        1 => png::ColorType::Grayscale,
        _ => png::ColorType::Rgb,
    };
    let (width, height) = (u32::try_from(width).ok()?, u32::try_from(height).ok()?);
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(pixels).ok()?;
    writer.finish().ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_data::{SampleValues, TargetKind};
    use lockstep_measure::{Outcome, Tally};
    use std::fs;

    /// An evaluation in which these samples were mistaken, the first most surely.
    fn mistaken(rows: &[u64], path: impl Fn(u64) -> Option<String>) -> Evaluation {
        let mut tally = Tally::new(&["cat", "dog"].map(str::to_owned));
        for (place, row) in rows.iter().enumerate() {
            tally.add(&Outcome {
                row: *row,
                actual: 0,
                predicted: 1,
                probability: 0.9 - place as f32 / 10.0,
                in_top5: true,
            });
        }
        Evaluation::Classes(tally.finish(rows.len(), path))
    }

    #[test]
    fn mistakes_are_shown_with_the_pixels_of_their_samples() {
        for channels in [1, 3] {
            let size = channels * 2 * 4;
            let samples: Vec<u8> = (0..3 * size).map(|value| value as u8 * 3).collect();
            let set = Dataset::in_memory(
                "three pictures",
                &SampleValues::Bytes(samples.clone()),
                [channels, 2, 4],
                TargetKind::Classes,
            );
            let file = pictures(&set, None, &mistaken(&[2, 0], |_| None)).unwrap();
            let expected = [&samples[2 * size..], &samples[..size]].concat();
            assert_eq!(shown(&file), ([4, 4], expected));
        }
    }

    #[test]
    fn mistakes_of_vectors_are_shown_from_their_files_and_those_that_are_gone_are_grey() {
        let folder = tempfile::tempdir().unwrap();
        let path = |row: u64| folder.path().join(format!("{row}.png"));
        let photo = |row: u8| (0..27).map(|place| row * 50 + place).collect::<Vec<u8>>();
        for row in 0..3 {
            fs::write(path(row.into()), png([3, 3, 3], &photo(row)).unwrap()).unwrap();
        }
        let whole = fs::read(path(1)).unwrap();
        fs::write(path(1), &whole[..whole.len() - 20]).unwrap();
        let name = |row: u64| match row {
            8 => Some("nobody://knows/this.png".to_owned()),
            row => Some(path(row).to_str().unwrap().to_owned()),
        };
        let set = Dataset::in_memory(
            "vectors",
            &SampleValues::Numbers(vec![0.0; 18]),
            [2, 1, 1],
            TargetKind::Classes,
        );
        let transform = Transform {
            crop: Some([3, 3]),
            ..Transform::default()
        };
        let access = Access::default();
        let files = PictureFiles {
            access: &access,
            transform: &transform,
        };
        let see = |rows: &[u64]| pictures(&set, Some(&files), &mistaken(rows, name));
        // 1 is damaged and 5 is gone. After 8, nothing more is tried.
        let grey = vec![GREY; 27];
        let expected = [
            photo(2),
            grey.clone(),
            grey.clone(),
            photo(0),
            grey.clone(),
            grey,
        ];
        assert_eq!(
            shown(&see(&[2, 1, 5, 0, 8, 2]).unwrap()),
            ([18, 3], expected.concat())
        );
        assert_eq!(see(&[5, 1]), None);
    }

    /// The height, width and pixels of a PNG.
    fn shown(file: &[u8]) -> ([u32; 2], Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(file))
            .read_info()
            .unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        ([info.height, info.width], pixels)
    }
}
