//! The confusion matrix as a picture of pixels: a row a class, a column what it was taken for.

use super::proto::Image;
use lockstep_measure::{Confusion, Evaluation};

/// The side of the picture, about, and the largest side of a cell.
const SIDE: usize = 480;
const LARGEST_CELL: usize = 48;

/// A picture of an evaluation's confusion matrix, where it has one.
pub(super) fn picture(evaluation: &[u8]) -> Option<Image> {
    let evaluation: Evaluation = serde_json::from_slice(evaluation).ok()?;
    match evaluation {
        Evaluation::Classes(of) => draw(&of.confusion),
        Evaluation::Numbers(_) | Evaluation::Labels(_) | Evaluation::Ranking(_) => None,
    }
}

fn draw(confusion: &Confusion) -> Option<Image> {
    let classes = confusion.classes();
    if classes == 0 {
        return None;
    }
    let cell = (SIDE / classes).clamp(1, LARGEST_CELL);
    let side = classes * cell;
    let mut pixels = Vec::with_capacity(side * side * 3);
    for y in 0..side {
        for x in 0..side {
            let (row, column) = (y / cell, x / cell);
            let support = confusion.support(row).max(1);
            // Shares grow by their square root, so that rare mistakes show.
            let share = (confusion.count(row, column) as f64 / support as f64).sqrt();
            let full = match row == column {
                true => [31.0, 95.0, 168.0],
                false => [214.0, 96.0, 20.0],
            };
            let edge = cell > 4 && (y % cell == 0 || x % cell == 0);
            pixels.extend(full.map(|channel: f64| match edge {
                true => 225,
                false => (255.0 + (channel - 255.0) * share) as u8,
            }));
        }
    }
    let mut encoded = Vec::new();
    let mut encoder = png::Encoder::new(&mut encoded, side as u32, side as u32);
    encoder.set_color(png::ColorType::Rgb);
    let mut writer = encoder.write_header().ok()?;
    writer.write_image_data(&pixels).ok()?;
    writer.finish().ok()?;
    Some(Image {
        height: side as i32,
        width: side as i32,
        colorspace: 3,
        encoded,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_right_is_blue_and_what_is_wrong_orange() {
        let mut confusion = Confusion::new(2);
        confusion.add(0, 0);
        confusion.add(1, 0);
        let image = draw(&confusion).unwrap();
        let decoder = png::Decoder::new(std::io::Cursor::new(&image.encoded));
        let mut reader = decoder.read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        reader.next_frame(&mut pixels).unwrap();
        let side = image.width as usize;
        let at = |row: usize, column: usize| {
            let (y, x) = ((row * 2 + 1) * side / 4, (column * 2 + 1) * side / 4);
            &pixels[(y * side + x) * 3..][..3]
        };
        assert_eq!(at(0, 0), [31, 95, 168]);
        assert_eq!(at(1, 0), [214, 96, 20]);
        assert_eq!(at(0, 1), [255, 255, 255]);
    }
}
