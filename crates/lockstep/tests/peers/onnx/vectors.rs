//! Models of vectors: rows of tables as decoded numbers, labels, and the vectors of pictures with and without their encoder.

use super::{NEAR, answers, holds_against_predict, numbers, predicted, train};
use crate::common::{Place, bitmap::bitmap, embedding};
use lockstep_testkit::onnx_distance;
use std::fs;

const TABLE: &str = r#"
name = "table"

[data]
train = { csv = "table.csv", features = ["a", "b"], label = LABEL }
test = { csv = "table.csv", features = ["a", "b"], label = LABEL }
normalise = { mean = [0.1, -0.2], std = [0.5, 0.7] }

[model]
kind = "mlp"
hidden = [8]
batch_norm = true

[train]
epochs = 2
batch = 8
optimizer = { kind = "adam" }
"#;

/// A place with a table and a job that predicts these of its columns, and the table's inputs.
fn table(label: &str) -> (Place, Vec<f32>) {
    let place = Place::new();
    let mut text = "a,b,price,size,red,round,kind\n".to_owned();
    let mut inputs = Vec::new();
    for row in 0..60 {
        let [a, b] = [row * 7 % 13, row * 5 % 11].map(|n| n as f32 / 8.0 - 0.7);
        let (price, size) = (25_000.5 + 900.0 * a - 300.0 * b, 0.01 * a * b + 0.25);
        let (red, round) = (u8::from(a > b), u8::from(a + b > 0.1));
        let kind = ["low", "high"][usize::from(b > 0.0)];
        text += &format!("{a},{b},{price},{size},{red},{round},{kind}\n");
        inputs.extend([a, b]);
    }
    fs::write(place.path("table.csv"), text).unwrap();
    place.write_job(&TABLE.replace("LABEL", label));
    (place, inputs)
}

#[test]
fn numbers_come_out_in_the_units_of_the_set() {
    let (place, inputs) = table("[\"price\", \"size\"]");
    let run = train(&place, &[]);
    let run = run.to_str().unwrap();
    let found = answers(&place, run, &["--floats"], &inputs);
    let expected = numbers(&predicted(&place, run), "predicted", &["price", "size"]);
    assert!(expected[0] > 20_000.0, "{}", expected[0]);
    let values = &found["answers"]["values"];
    // Each column by itself: the units of one are far from those of the other.
    for column in 0..2 {
        let own = values
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row[column].clone());
        let expected: Vec<f32> = expected.iter().skip(column).step_by(2).copied().collect();
        let off = onnx_distance(&own.collect(), &expected);
        assert!(off < NEAR, "{off}");
    }
    assert_eq!(found["inputs"][0]["shape"][1], 2);
    let metadata = &found["metadata"];
    assert_eq!(metadata["lockstep.task"], "numbers");
    assert_eq!(metadata["lockstep.columns"], r#"["price","size"]"#);
    assert_eq!(metadata["lockstep.features"], r#"["a","b"]"#);
}

#[test]
fn labels_come_out_as_probabilities() {
    let (place, inputs) = table("[\"red\", \"round\"]");
    let run = train(&place, &[]);
    let run = run.to_str().unwrap();
    let found = answers(&place, run, &["--floats"], &inputs);
    let expected = numbers(&predicted(&place, run), "predicted", &["red", "round"]);
    let off = onnx_distance(&found["answers"]["probabilities"], &expected);
    assert!(off < NEAR, "{off}");
    assert_eq!(found["metadata"]["lockstep.labels"], r#"["red","round"]"#);
    assert!(found["answers"].get("class").is_none());
}

#[test]
fn classes_of_a_table_are_what_predict_says_also_by_a_threshold() {
    let (place, inputs) = table("\"kind\"");
    for positive in ["low", "high"] {
        let positive = format!("train.positive={positive}");
        let run = train(
            &place,
            &["--set", &positive, "--set", "train.threshold=0.7"],
        );
        let found = holds_against_predict(&place, run.to_str().unwrap(), &["--floats"], &inputs);
        let answers = &found["answers"];
        let rows = answers["probabilities"].as_array().unwrap();
        let by_threshold = rows.iter().zip(answers["class"].as_array().unwrap());
        let by_threshold = by_threshold.filter(|(row, class)| {
            let more_probable = u64::from(row[1].as_f64() > row[0].as_f64());
            class.as_f64() != Some(more_probable as f64)
        });
        assert!(by_threshold.count() > 0, "{answers}");
    }
}

#[test]
fn rows_with_categories_dates_and_gaps_are_encoded_in_the_graph() {
    let place = Place::new();
    let mut text = "town,day,area,kind\n".to_owned();
    let mut inputs = Vec::new();
    for row in 0..60 {
        let (town, area) = (row * 7 % 4, row * 5 % 11);
        let day = row % 28 + 1;
        let name = ["Bonn", "Jena", "Ulm", ""][town];
        let gap = row % 9 == 3;
        let shown = if gap {
            String::new()
        } else {
            format!("{area}.5")
        };
        let kind = ["low", "high"][usize::from(area + 2 * town > 7)];
        text += &format!("{name},2024-01-{day:02},{shown},{kind}\n");
        let weekday = (day + 6) % 7;
        inputs.extend([
            if town == 3 { f32::NAN } else { town as f32 },
            2024.0,
            1.0,
            day as f32,
            weekday as f32,
            if gap { f32::NAN } else { area as f32 + 0.5 },
        ]);
    }
    fs::write(place.path("table.csv"), text).unwrap();
    let job = TABLE.replace(
        "features = [\"a\", \"b\"], label = LABEL",
        "label = \"kind\"",
    );
    let scale = "normalise = { mean = [0.1, -0.2], std = [0.5, 0.7] }\n";
    assert!(job.contains(scale));
    let job = job.replace(scale, "");
    // Values of the town as inputs of their own, and as learned vectors.
    let embedded = "label = \"kind\", types = { town = \"embedding\" }";
    for job in [&job, &job.replacen("label = \"kind\"", embedded, 1)] {
        place.write_job(job);
        let run = train(&place, &[]);
        let found = holds_against_predict(&place, run.to_str().unwrap(), &["--floats"], &inputs);
        assert_eq!(found["inputs"][0]["shape"][1], 6);
        let columns = found["metadata"]["lockstep.inputs"].as_str().unwrap();
        assert!(
            columns.contains(r#""values":["Bonn","Jena","Ulm"]"#),
            "{columns}"
        );
    }
}

/// The pixels of a bitmap in PyTorch's order: red, green, blue, each line by line from the top.
fn pixels(bitmap: &[u8], side: usize) -> Vec<f32> {
    let row = (3 * side).next_multiple_of(4);
    let mut pixels = Vec::new();
    for channel in [2, 1, 0] {
        for line in (0..side).rev() {
            let line = &bitmap[54 + line * row..];
            pixels.extend((0..side).map(|x| f32::from(line[3 * x + channel])));
        }
    }
    pixels
}

#[test]
fn a_head_takes_vectors_and_with_its_encoder_pictures() {
    const SIDE: u32 = 40;
    let place = embedding::place();
    let run = train(&place, &[]);
    let run = run.to_str().unwrap();
    // Pictures of the encoder's own size, to which nothing is done on the way.
    let photos = place.path("photos/test");
    fs::remove_dir_all(&photos).unwrap();
    let mut images = Vec::new();
    // In the order of the set, that of the paths.
    for (class, name) in [(1, "tall"), (0, "wide")] {
        fs::create_dir_all(photos.join(name)).unwrap();
        for number in 0..4 {
            let picture = bitmap(SIDE, SIDE, class, number);
            fs::write(photos.join(format!("{name}/{number}.bmp")), &picture).unwrap();
            images.push((
                format!("{name}/{number}.bmp"),
                pixels(&picture, SIDE as usize),
            ));
        }
    }
    let lines = predicted(&place, run);
    // The vectors of a set are in an order of their own.
    let samples: Vec<f32> = lines
        .iter()
        .flat_map(|line| {
            let path = line["path"].as_str().unwrap();
            let mut known = images.iter().filter(|(name, _)| path.ends_with(name));
            known.next().unwrap().1.clone()
        })
        .collect();
    let found = holds_against_predict(&place, run, &["--with-encoder"], &samples);
    assert_eq!(found["inputs"][0]["shape"][1], 3);
    let transform = found["metadata"]["lockstep.transform"].as_str().unwrap();
    assert!(transform.contains("bicubic"), "{transform}");

    let found = answers(&place, run, &[], &[0.5; 20]);
    assert_eq!(found["inputs"][0]["shape"][1], 20);
    assert!(found["metadata"].get("lockstep.transform").is_none());
}
