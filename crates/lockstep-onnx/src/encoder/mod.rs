//! Encoders of pictures as operations of ONNX.

mod clip;
mod efficientnet;

use crate::graph::{Graph, GraphWriter, OnnxModel, Value};
use crate::port::Element;
use crate::scale::normalise;
use crate::{InputForm, OnnxError};
use lockstep_embed::{EmbedRecipe, EncoderKind, EncoderModel};
use serde_json::json;

/// An encoder alone: pictures in its size, as bytes, become vectors.
///
/// # Errors
/// When a tensor of the encoder cannot be read, or the file would be too large.
pub fn of_encoder(encoder: &EncoderModel, form: InputForm) -> Result<OnnxModel, OnnxError> {
    let recipe = EmbedRecipe::new(encoder, None, None)?;
    let mut graph = Graph::default();
    let (vector, width) = of_pictures(&mut graph, ("input", form), encoder, &recipe)?;
    let said = graph.node("Identity", "embedding", &[&vector], &[]);
    graph.output(&said, Element::Float32, &[width]);
    graph.note("lockstep.task", "embedding");
    graph.finish("encoder")
}

/// The vectors of pictures, and how many numbers each has.
pub(crate) fn of_pictures(
    graph: &mut Graph,
    (input, form): (&str, InputForm),
    encoder: &EncoderModel,
    recipe: &EmbedRecipe,
) -> Result<(Value, usize), OnnxError> {
    let [height, width] = encoder.image_size.map(|side| side as usize);
    let shape = [3, height, width];
    let element = form.of_bytes();
    let pictures = graph.input(input, element, &shape);
    let pictures = graph.as_floats(pictures, element);
    graph.note("lockstep.input_shape", json!(shape).to_string());
    graph.note("lockstep.transform", json!(recipe.transform).to_string());
    graph.note("lockstep.encoder_sha256", &encoder.sha256[..]);
    let scale = recipe.normalise;
    let bytes = |numbers: [f32; 3]| numbers.map(|number| 255.0 * number);
    let (mean, std) = (bytes(scale.mean), bytes(scale.std));
    let pictures = normalise(graph, pictures, &mean, &std, &[3, 1, 1]);
    match &encoder.kind {
        EncoderKind::Clip(config) => clip::clip(graph, encoder, config, pictures),
        EncoderKind::EfficientNetLite(variant) => {
            efficientnet::lite(graph, encoder, *variant, pictures)
        }
    }
}

/// Puts a tensor of the encoder into the graph.
fn tensor(
    graph: &mut Graph,
    encoder: &EncoderModel,
    name: &str,
    shape: &[usize],
) -> Result<Value, OnnxError> {
    let numbers = encoder.read(name, shape)?;
    Ok(graph.numbers(name, shape, &numbers))
}
