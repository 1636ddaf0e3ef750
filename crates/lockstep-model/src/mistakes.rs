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
        let planes = set.picture(usize::try_from(mistake.row).ok()?)?;
        pixels.extend(interleaved(planes, set.shape()[0]));
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

/// Channels one after the other become channels of each pixel.
fn interleaved(planes: &[u8], channels: usize) -> Vec<u8> {
    let plane = planes.len() / channels;
    let pixels = (0..plane).flat_map(|pixel| (0..channels).map(move |c| planes[c * plane + pixel]));
    pixels.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_of_a_pixel_lie_together() {
        assert_eq!(interleaved(&[1, 2, 3, 4, 5, 6], 3), [1, 3, 5, 2, 4, 6]);
        assert_eq!(interleaved(&[1, 2], 1), [1, 2]);
    }
}
