//! Pictures of every kind against what Pillow makes of them (`tests/reference.py`).

use crate::common::{index, names, read};
use lockstep_image::{Filter, Limits, Transform, Transformer, decode};

/// The largest and the mean difference.
fn difference(ours: &[u8], theirs: &[u8]) -> (u8, f64) {
    assert_eq!(ours.len(), theirs.len());
    let differences = || ours.iter().zip(theirs).map(|(&a, &b)| a.abs_diff(b));
    let sum: u64 = differences().map(u64::from).sum();
    (
        differences().max().unwrap_or(0),
        sum as f64 / ours.len() as f64,
    )
}

#[test]
fn every_kind_of_picture_is_decoded_as_pillow_decodes_it() {
    let index = index();
    for name in names() {
        let picture = decode(&read(&name), &Limits::default())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        let size = serde_json::json!([picture.width, picture.height]);
        assert_eq!(index["decoded"][&name], size, "{name}");
        let (largest, mean) = difference(&picture.rgb, &read(&format!("decoded/{name}.rgb")));
        // JPEG leaves the last bit of its arithmetic open; everything else is exact.
        let (most, usual) = match name.ends_with(".jpg") {
            true if name.contains("444") || name.contains("gray") => (2, 0.05),
            // Interpolated chroma at the right edge, where decoders differ in what lies beyond it.
            true => (8, 0.5),
            false => (0, 0.0),
        };
        assert!(
            largest <= most && mean <= usual,
            "{name}: off by up to {largest}, {mean:.3} on average"
        );
    }
}

#[test]
fn resizing_agrees_with_pillow() {
    let index = index();
    let photo = read("photo.png");
    for (name, transform) in index["resized"].as_object().unwrap() {
        let transform: Transform = serde_json::from_value(transform.clone()).unwrap();
        let mut transformer = Transformer::new(&transform, Limits::default()).unwrap();
        let mut out = vec![0; transformer.output_len()];
        transformer.apply(&photo, &mut out).unwrap();
        let (largest, mean) = difference(&out, &read(&format!("resized/{name}")));
        let (most, usual) = if transform.filter == Filter::Nearest {
            (0, 0.0)
        } else {
            (2, 0.3)
        };
        assert!(
            largest <= most && mean <= usual,
            "{name}: off by up to {largest}, {mean:.4} on average"
        );
    }
}
