//! Files that are not what they should be, each handled on purpose.

use crate::common::{names, read};
use lockstep_image::{ImageError, Limits, Transform, Transformer, decode, probe};
use lockstep_testkit::peak;

fn kind(bytes: &[u8]) -> &'static str {
    match decode(bytes, &Limits::default()) {
        Ok(_) => "a picture",
        Err(error) => error.kind(),
    }
}

#[test]
fn an_empty_file_is_called_empty() {
    assert_eq!(decode(b"", &Limits::default()), Err(ImageError::Empty));
}

#[test]
fn a_text_file_with_a_pictures_name_is_not_an_image() {
    assert_eq!(
        kind(b"Not found: the photo was removed by its owner.\n"),
        "not-an-image"
    );
}

#[test]
fn a_gif_is_refused_by_name() {
    let error = decode(b"GIF89a\x01\0\x01\0\0\0\0;", &Limits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "GIF is not read; save it as an ordinary JPEG, PNG, WebP or BMP"
    );
}

#[test]
fn a_bmp_with_run_lengths_is_refused_by_name() {
    let mut bmp = read("palette8.bmp");
    bmp[30..34].copy_from_slice(&1u32.to_le_bytes());
    let error = decode(&bmp, &Limits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a BMP with run-length compression is not read; save it as an ordinary JPEG, PNG, WebP or BMP"
    );
}

#[test]
fn a_picture_that_is_cut_anywhere_is_never_half_a_picture() {
    for name in names() {
        let whole = read(&name);
        // What follows the picture may be missing: a trailer, the padding of a last row.
        let needed = match name.as_str() {
            "trailer.jpg" => whole.len() - 24,
            _ if name.ends_with(".bmp") => whole.len() - 3,
            _ => whole.len() - 1,
        };
        for length in 1..needed {
            let kind = kind(&whole[..length]);
            let known = matches!(kind, "truncated" | "not-an-image" | "damaged");
            assert!(
                known,
                "{name} cut to {length} of {} bytes: {kind}",
                whole.len()
            );
        }
    }
}

#[test]
fn a_cut_in_the_pixels_is_called_a_cut() {
    for name in [
        "baseline.jpg",
        "progressive.jpg",
        "rgb.png",
        "lossy.webp",
        "lossless.webp",
        "rgb24.bmp",
    ] {
        let whole = read(name);
        for length in [whole.len() / 2, whole.len() * 3 / 4, whole.len() - 5] {
            assert_eq!(
                kind(&whole[..length]),
                "truncated",
                "{name} cut to {length}"
            );
        }
    }
}

/// Headers of 30,000 x 30,000 pixels, without pixels.
fn bombs() -> Vec<(&'static str, Vec<u8>)> {
    let side = 30_000u32;
    let mut jpeg = read("baseline.jpg");
    let frame = jpeg
        .windows(2)
        .position(|pair| pair == [0xff, 0xc0])
        .unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0x75, 0x30, 0x75, 0x30]);
    let mut png = read("rgb.png");
    png[16..20].copy_from_slice(&side.to_be_bytes());
    png[20..24].copy_from_slice(&side.to_be_bytes());
    let checksum = crc32(&png[12..29]);
    png[29..33].copy_from_slice(&checksum.to_be_bytes());
    let mut bmp = read("rgb24.bmp");
    bmp[18..22].copy_from_slice(&side.to_le_bytes());
    bmp[22..26].copy_from_slice(&side.to_le_bytes());
    // WebP ends at 16,383, which is too much as well.
    let mut webp = read("lossy.webp");
    webp[26..30].copy_from_slice(&[0xff, 0x3f, 0xff, 0x3f]);
    vec![("jpeg", jpeg), ("png", png), ("bmp", bmp), ("webp", webp)]
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    })
}

#[test]
fn a_bomb_is_refused_by_its_header_at_once() {
    for (name, bomb) in bombs() {
        assert!(probe(&bomb).unwrap().pixels() > 100_000_000, "{name}");
        // Nothing is decoded for it, and so nothing is held for its pixels.
        let (decoded, bytes) = peak(|| decode(&bomb, &Limits::default()));
        assert!(bytes < 1 << 20, "{name}: {bytes}");
        let error = decoded.unwrap_err();
        assert_eq!(error.kind(), "too-large", "{name}: {error}");
    }
}

#[test]
fn a_side_can_be_too_long_on_its_own() {
    let limits = Limits {
        max_side: 36,
        ..Limits::default()
    };
    let error = decode(&read("rgb.png"), &limits).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a PNG of 37 x 27 pixels is over the limit of 36 a side"
    );
}

#[test]
fn a_wrong_checksum_in_a_png_is_damage() {
    let mut png = read("rgb.png");
    let middle = png.len() / 2;
    png[middle] ^= 1;
    assert_eq!(kind(&png), "damaged");
}

#[test]
fn a_palette_that_ends_within_a_colour_is_damage() {
    // The PNG decoder panics on it. Its length is one byte less, and the byte is gone.
    let mut png = read("palette-clear.png");
    let chunk = png.windows(4).position(|name| name == b"PLTE").unwrap();
    let length = u32::from_be_bytes(png[chunk - 4..chunk].try_into().unwrap()) - 1;
    let end = chunk + 4 + length as usize;
    png.remove(end);
    png[chunk - 4..chunk].copy_from_slice(&length.to_be_bytes());
    let checksum = crc32(&png[chunk..end]);
    png[end..end + 4].copy_from_slice(&checksum.to_be_bytes());
    let error = decode(&png, &Limits::default()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the PNG is damaged: its palette ends within a colour"
    );
}

#[test]
fn a_damaged_picture_does_not_spoil_the_next_one() {
    let transform = Transform {
        resize: Some(16),
        ..Transform::default()
    };
    let mut transformer = Transformer::new(&transform, Limits::default()).unwrap();
    let (mut clean, mut after) = (vec![0; 16 * 16 * 3], vec![0; 16 * 16 * 3]);
    transformer
        .apply(&read("baseline.jpg"), &mut clean)
        .unwrap();
    let cut = read("progressive.jpg");
    assert!(
        transformer
            .apply(&cut[..cut.len() / 2], &mut after)
            .is_err()
    );
    transformer
        .apply(&read("baseline.jpg"), &mut after)
        .unwrap();
    assert_eq!(clean, after);
}

#[test]
fn a_picture_smaller_than_the_crop_lies_in_the_middle_of_black() {
    let transform = Transform {
        crop: Some([40, 50]),
        ..Transform::default()
    };
    let mut transformer = Transformer::new(&transform, Limits::default()).unwrap();
    let mut out = vec![1; 40 * 50 * 3];
    transformer.apply(&read("rgb.png"), &mut out).unwrap();
    let mut expected = vec![0; out.len()];
    // 27 rows of 37 pixels, 6 from the top and 6 from the left.
    let pixels = read("decoded/rgb.png.rgb");
    for (row, pixels) in pixels.chunks_exact(37 * 3).enumerate() {
        expected[((6 + row) * 50 + 6) * 3..][..37 * 3].copy_from_slice(pixels);
    }
    assert_eq!(out, expected);
    assert_eq!(
        out[..50 * 3],
        [0; 150],
        "the first row is outside of the picture"
    );
}

#[test]
fn a_buffer_of_the_wrong_length_is_refused() {
    let transform = Transform {
        resize: Some(16),
        ..Transform::default()
    };
    let mut transformer = Transformer::new(&transform, Limits::default()).unwrap();
    let error = transformer
        .apply(&read("rgb.png"), &mut [0; 16])
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "a buffer of 16 numbers for pictures of 16 x 16 x 3"
    );
}
