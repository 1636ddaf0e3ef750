//! The model of a run as ONNX.

use crate::graph::{Graph, OnnxModel, Value};
use crate::outputs::outputs;
use crate::port::Element;
use crate::scale::normalise;
use crate::{InputForm, OnnxError, columns, encoder, encoding};
use lockstep_data::TargetKind;
use lockstep_embed::{EmbedRecipe, EncoderModel};
use lockstep_nn::Dims;
use lockstep_nn::graph::{Flow, GraphWeights, write_layers};
use lockstep_resolve::{ModelInput, ResolveError};
use lockstep_runs::RunDir;
use lockstep_train::{InputElement, SavedModel};
use serde_json::json;

/// What the model takes, by name, where it takes one thing.
const INPUT: &str = "input";

/// The model of a run as the content of an ONNX file: raw samples in, what `lockstep predict` says of them out.
///
/// # Errors
/// When the run has no model, or one that cannot be written.
pub fn export_run(run: &RunDir) -> Result<Vec<u8>, OnnxError> {
    Ok(of_run(run, InputForm::Stored)?.to_bytes())
}

/// The model of a run: it takes samples in this form, and holds all that is done to them.
///
/// # Errors
/// When the run has no model, or one that cannot be written.
pub fn of_run(run: &RunDir, form: InputForm) -> Result<OnnxModel, OnnxError> {
    let job = input_of(run, &[])?;
    let saved = SavedModel::open(run)?;
    let mut graph = Graph::default();
    let shape = sample_shape(saved.input_shape);
    let numbers = saved.input_shape.iter().product();
    let by_columns = form != InputForm::Floats && columns::are_known(&saved.inputs, numbers);
    let rows = match by_columns {
        true => columns::rows(&mut graph, &saved.inputs),
        false => {
            let element = match saved.input {
                InputElement::Bytes => form.of_bytes(),
                InputElement::Numbers => Element::Float32,
            };
            graph.note("lockstep.input_shape", json!(shape).to_string());
            let input = graph.input(INPUT, element, &shape);
            graph.as_floats(input, element)
        }
    };
    let input = match &saved.encoding {
        Some(encoding) => encoding::encode(&mut graph, &rows, encoding),
        None => normalised(&mut graph, rows, &saved),
    };
    if saved.encoding.is_some() || by_columns {
        graph.note("lockstep.inputs", json!(saved.inputs).to_string());
    }
    if let (Some(transform), None) = (&job.transform, &job.encoder) {
        graph.note("lockstep.transform", json!(transform).to_string());
    }
    if let Some(features) = &job.features {
        graph.note("lockstep.features", features.to_string());
    }
    rest(graph, run, &saved, input, by_columns)
}

/// The model of a run whose job turns pictures into vectors first, and the encoder that does so, in one graph: it
/// takes pictures of the encoder's size. `set` changes keys of the run's job, such as where the
/// encoder lies. `progress` hears that a known encoder is brought.
///
/// # Errors
/// When the run's model takes no vectors of an encoder, or a part of it cannot be read or written.
pub fn of_run_with_encoder(
    run: &RunDir,
    set: &[String],
    form: InputForm,
    progress: &mut dyn FnMut(&str),
) -> Result<OnnxModel, OnnxError> {
    let input = input_of(run, set)?;
    let Some(plan) = input.encoder else {
        return Err(OnnxError::NoEncoder {
            run: run.name.clone(),
        });
    };
    let encoder = EncoderModel::open(&plan.model, progress)?;
    let recipe = EmbedRecipe::new(&encoder, input.transform, plan.normalise)?;
    let saved = SavedModel::open(run)?;
    let mut graph = Graph::default();
    let (vector, width) = encoder::of_pictures(&mut graph, (INPUT, form), &encoder, &recipe)?;
    if saved.input_shape != [width, 1, 1] {
        return Err(OnnxError::OtherEncoder {
            encoder: encoder.path.display().to_string(),
            found: width,
            run: run.name.clone(),
            expected: saved.dims().len(),
        });
    }
    let vector = normalised(&mut graph, vector, &saved);
    rest(graph, run, &saved, vector, false)
}

/// What the network of a run takes, as its job says.
fn input_of(run: &RunDir, set: &[String]) -> Result<ModelInput, OnnxError> {
    let file = run.job().local_copy()?;
    ModelInput::load(file.path(), set).map_err(|error| {
        let run = run.name.clone();
        match error {
            ResolveError::ScriptModel => OnnxError::Script { run },
            ResolveError::TreesModel => OnnxError::Trees { run },
            error => OnnxError::Job(error),
        }
    })
}

/// The shape of a sample: numbers of a vector, or channels, height and width.
fn sample_shape(shape: [usize; 3]) -> Vec<usize> {
    match shape {
        [numbers, 1, 1] => vec![numbers],
        shape => shape.to_vec(),
    }
}

fn is_vector(dims: Dims) -> bool {
    dims.pixels() == 1
}

/// The input as the network takes it: bytes from 0 to 1, and each channel with its own mean and deviation.
fn normalised(graph: &mut Graph, input: Value, saved: &SavedModel) -> Value {
    // As training does it: the normalisation of bytes is brought to their scale, not they to that of the numbers.
    let one = match saved.input {
        InputElement::Bytes => 255.0,
        InputElement::Numbers => 1.0,
    };
    let (mean, std) = match &saved.normalise {
        Some(normalise) => (&normalise.mean[..], &normalise.std[..]),
        None => (&[0.0][..], &[1.0][..]),
    };
    let dims = saved.dims();
    let each = mean.len().max(std.len());
    let of = |numbers: &[f64]| -> Vec<f32> {
        let number = |channel| numbers[if numbers.len() == 1 { 0 } else { channel }];
        (0..each)
            .map(|channel| (one * number(channel)) as f32)
            .collect()
    };
    let shape = match is_vector(dims) {
        true => vec![each],
        false => vec![each, 1, 1],
    };
    normalise(graph, input, &of(mean), &of(std), &shape)
}

/// All that comes after the normalised input. With `words`, classes come out by their names too.
fn rest(
    mut graph: Graph,
    run: &RunDir,
    saved: &SavedModel,
    input: Value,
    words: bool,
) -> Result<OnnxModel, OnnxError> {
    let model = &saved.model;
    let weights = GraphWeights::new(model.layout(), &saved.state, model.summary());
    let dims = saved.dims();
    let flow = Flow {
        value: input,
        dims,
        flat: is_vector(dims),
    };
    let scores = write_layers(&saved.layers, &weights, &mut graph, flow);
    let scores = scores.flattened("scores", &mut graph);
    outputs(&mut graph, &scores.value, &saved.outputs, words);
    let names = json!(saved.outputs.names).to_string();
    let (key, task) = match saved.outputs.kind {
        TargetKind::Classes => ("lockstep.classes", "classes"),
        TargetKind::Labels => ("lockstep.labels", "labels"),
        TargetKind::Numbers => ("lockstep.columns", "numbers"),
    };
    graph.note(key, names);
    graph.note("lockstep.task", task);
    graph.note("lockstep.run", &run.name[..]);
    graph.note("lockstep.weights_sha256", &saved.weights_sha256[..]);
    graph.finish(&run.name)
}
