//! Pictures of the hardest mistakes: what a person wants to see of them first.
//!
//! They are one file, each below the one before, in the order of the evaluation's `mistakes`.

use lockstep_data::Dataset;
use lockstep_measure::Evaluation;

/// The pictures as PNG; nothing where samples are no pictures, or nothing was mistaken.
pub(crate) fn pictures(set: &Dataset, evaluation: &Evaluation) -> Option<Vec<u8>> {
    let Evaluation::Classes(classes) = evaluation else {
        return None;
    };
    let mut pixels = Vec::new();
    for mistake in &classes.mistakes {
        pixels.extend_from_slice(set.picture(usize::try_from(mistake.row).ok()?)?);
    }
    let [channels, height, width] = set.shape();
    let colour = match channels {
        1 => png::ColorType::Grayscale,
        _ => png::ColorType::Rgb,
    };
    let width = u32::try_from(width).ok()?;
    let height = u32::try_from(height * classes.mistakes.len()).ok()?;
    if height == 0 {
        return None;
    }
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(colour);
    encoder.set_depth(png::BitDepth::Eight);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(&pixels).ok()?;
    writer.finish().ok()?;
    Some(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_data::{SampleValues, TargetKind};
    use lockstep_measure::{Outcome, Tally};

    /// An evaluation in which these samples were mistaken, the first most surely.
    fn mistaken(rows: &[u64]) -> Evaluation {
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
        Evaluation::Classes(tally.finish(rows.len(), |_| None))
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
            let file = pictures(&set, &mistaken(&[2, 0])).unwrap();
            let mut reader = png::Decoder::new(std::io::Cursor::new(file))
                .read_info()
                .unwrap();
            let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
            let info = reader.next_frame(&mut pixels).unwrap();
            assert_eq!((info.width, info.height), (4, 4));
            assert_eq!(pixels, [&samples[2 * size..], &samples[..size]].concat());
        }
    }
}
