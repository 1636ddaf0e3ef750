//! What it means for vectors to agree, and encoders from files and from formulas.

use lockstep_nn::Threads;
use lockstep_nn::encoder::{ClipConfig, Encoder, EncoderError};
use lockstep_tensors::TensorFile;
use std::path::Path;

/// How far vectors are from those of a reference.
#[derive(Debug)]
pub(crate) struct Agreement {
    /// The smallest cosine between a vector and the reference's.
    pub(crate) cosine: f64,
    /// The largest difference of two numbers.
    pub(crate) error: f64,
}

impl Agreement {
    pub(crate) fn of(ours: &[f32], theirs: &[f32], width: usize) -> Self {
        assert_eq!(ours.len(), theirs.len());
        let dot = |a: &[f32], b: &[f32]| -> f64 {
            a.iter()
                .zip(b)
                .map(|(&a, &b)| f64::from(a) * f64::from(b))
                .sum()
        };
        let cosines = ours
            .chunks(width)
            .zip(theirs.chunks(width))
            .map(|(a, b)| dot(a, b) / (dot(a, a) * dot(b, b)).sqrt());
        let errors = ours
            .iter()
            .zip(theirs)
            .map(|(a, b)| f64::from((a - b).abs()));
        Self {
            // NaN must not be lost to `min` and `max`.
            cosine: cosines.fold(1.0, |low, x| if x >= low { low } else { x }),
            error: errors.fold(0.0, |high, x| if x <= high { high } else { x }),
        }
    }
}

/// The tensors of a file, as an encoder asks for them.
pub(crate) fn source(
    file: &TensorFile,
) -> impl FnMut(&str, &[usize]) -> Result<Vec<f32>, EncoderError> {
    |name, shape| {
        if let Some(found) = file.shape(name) {
            assert_eq!(found, shape, "{name}");
        }
        file.read(name).map_err(|error| EncoderError::Tensor {
            name: name.to_owned(),
            reason: error.to_string(),
        })
    }
}

/// The encoder of a folder with `config.json` and weights, on so many threads.
pub(crate) fn clip(folder: &Path, rows: usize, threads: usize) -> Encoder {
    let threads = Threads::with_threads(threads).expect("threads");
    let config = std::fs::read_to_string(folder.join("config.json")).expect("config.json is there");
    let config = ClipConfig::from_json(&config).expect("it is CLIP's");
    let file = TensorFile::open(folder).expect("the folder has weights");
    Encoder::clip(&threads, &config, &mut source(&file), rows).expect("the weights fit")
}

/// Pixels, embeddings and the agreement of ours with them, for a folder that `clip_reference.py` wrote.
pub(crate) fn clip_agreement(folder: &Path) -> Agreement {
    let expected = TensorFile::open(folder.join("expected.safetensors")).expect("it is there");
    let rows = expected.shape("pixels").expect("it has pixels")[0];
    let (pixels, theirs) = (
        expected.read("pixels").expect("f32"),
        expected.read("embeddings").expect("f32"),
    );
    let mut encoder = clip(folder, rows, 2);
    let mut ours = vec![0.0; theirs.len()];
    encoder.encode(rows, &pixels, &mut ours);
    Agreement::of(&ours, &theirs, encoder.width())
}

/// Numbers between -1 and 1 that hang on a seed alone.
pub(crate) fn numbers(seed: u64, len: usize) -> Vec<f32> {
    let mut stream = lockstep_base::random::Stream::new(seed, 1);
    (0..len).map(|_| 2.0 * stream.unit_f32() - 1.0).collect()
}

/// Weights that hang on their name alone and keep activations in range.
pub(crate) fn invented(name: &str, shape: &[usize]) -> Result<Vec<f32>, EncoderError> {
    let len = shape.iter().product();
    let seed = name.bytes().fold(7u64, |seed, byte| {
        seed.wrapping_mul(131).wrapping_add(byte.into())
    });
    let inputs: usize = shape[1..].iter().product();
    let (middle, spread) = match shape.len() {
        1 if name.ends_with("running_var") || name.ends_with("weight") => (1.0, 0.3),
        1 => (0.0, 0.3),
        _ => (0.0, (3.0 / inputs as f32).sqrt()),
    };
    Ok(numbers(seed, len)
        .iter()
        .map(|x| middle + spread * x)
        .collect())
}
