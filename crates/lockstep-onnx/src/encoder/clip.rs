//! CLIP's image encoder: patches become tokens, a transformer lets them look at each other, and the token that stands
//! for the picture is projected to its vector.

use super::tensor;
use crate::OnnxError;
use crate::graph::{Graph, GraphWriter, Value, float, int, ints};
use lockstep_embed::EncoderModel;
use lockstep_nn::encoder::{Activation, ClipConfig};
use lockstep_nn::layers::Gelu;

/// What the parts of the encoder have in common.
struct Clip<'a> {
    graph: &'a mut Graph,
    encoder: &'a EncoderModel,
    config: &'a ClipConfig,
    /// Patches of a picture, and the token that stands for all of it.
    tokens: usize,
}

/// The vectors of normalised pictures, and how many numbers each has.
pub(super) fn clip(
    graph: &mut Graph,
    encoder: &EncoderModel,
    config: &ClipConfig,
    pictures: Value,
) -> Result<(Value, usize), OnnxError> {
    let grid = config.image_size / config.patch_size;
    let mut clip = Clip {
        graph,
        encoder,
        config,
        tokens: grid * grid + 1,
    };
    let mut tokens = clip.embed(&pictures)?;
    for block in 0..config.num_hidden_layers {
        tokens = clip.block(&format!("vision_model.encoder.layers.{block}"), tokens)?;
    }
    let vector = clip.project(&tokens)?;
    Ok((vector, config.projection_dim))
}

impl Clip<'_> {
    /// An operation without settings.
    fn node(&mut self, operator: &str, name: &str, inputs: &[&str]) -> Value {
        self.graph.node(operator, name, inputs, &[])
    }

    /// The tokens that the transformer begins with.
    fn embed(&mut self, pictures: &str) -> Result<Value, OnnxError> {
        let (hidden, side) = (self.config.hidden_size, self.config.patch_size);
        let name = "vision_model.embeddings";
        let part = |part: &str| format!("{name}.{part}");
        let weight = part("patch_embedding.weight");
        let weight = tensor(self.graph, self.encoder, &weight, &[hidden, 3, side, side])?;
        let window = [
            ints("kernel_shape", &[side; 2]),
            ints("strides", &[side; 2]),
        ];
        let inputs = [pictures, &weight];
        let patches = self.graph.node("Conv", &part("patches"), &inputs, &window);
        let shape = [0, hidden as i64, self.tokens as i64 - 1];
        let lines = self.reshape(&part("lines"), &patches, &shape);
        let turned = self.transpose(&part("turned"), &lines, &[0, 2, 1]);
        // Room for the token that stands for the picture: before the first of each, a row of zeros.
        let room = self.graph.integers(&part("room"), &[0, 1, 0, 0, 0, 0]);
        let padded = self.node("Pad", &part("padded"), &[&turned, &room]);
        let mut start = self
            .encoder
            .read(&part("position_embedding.weight"), &[self.tokens, hidden])?;
        let class = self.encoder.read(&part("class_embedding"), &[hidden])?;
        for (start, class) in start.iter_mut().zip(&class) {
            *start += class;
        }
        let start = self
            .graph
            .numbers(&part("start"), &[self.tokens, hidden], &start);
        let begun = self.node("Add", name, &[&padded, &start]);
        // Its name is misspelt in every file there is.
        self.norm("vision_model.pre_layrnorm", &begun)
    }

    /// A transformer block.
    fn block(&mut self, name: &str, tokens: Value) -> Result<Value, OnnxError> {
        let (hidden, inner) = (self.config.hidden_size, self.config.intermediate_size);
        let part = |part: &str| format!("{name}.{part}");
        let normalised = self.norm(&part("layer_norm1"), &tokens)?;
        let mixed = self.attention(&part("self_attn"), &normalised)?;
        let tokens = self.node("Add", &part("attended"), &[&tokens, &mixed]);
        let normalised = self.norm(&part("layer_norm2"), &tokens)?;
        let up = self.dense(&part("mlp.fc1"), &normalised, (hidden, inner))?;
        let bent = match self.config.hidden_act {
            Activation::Gelu => Gelu::write(self.graph, &part("mlp.gelu"), &up),
            Activation::QuickGelu => self.quick_gelu(&part("mlp.quick_gelu"), &up),
        };
        let down = self.dense(&part("mlp.fc2"), &bent, (inner, hidden))?;
        Ok(self.node("Add", name, &[&tokens, &down]))
    }

    /// Tokens look at each other, head by head.
    fn attention(&mut self, name: &str, tokens: &str) -> Result<Value, OnnxError> {
        let hidden = self.config.hidden_size;
        let heads = self.config.num_attention_heads;
        let width = hidden / heads;
        let part = |part: &str| format!("{name}.{part}");
        let shape = [0, self.tokens, heads, width].map(|size| size as i64);
        let mut of = |own: &str, order: &[usize]| {
            let all = self.dense(&part(own), tokens, (hidden, hidden))?;
            let heads = self.reshape(&part(&format!("{own}.heads")), &all, &shape);
            Ok::<_, OnnxError>(self.transpose(&part(&format!("{own}.turned")), &heads, order))
        };
        let queries = of("q_proj", &[0, 2, 1, 3])?;
        let keys = of("k_proj", &[0, 2, 3, 1])?;
        let values = of("v_proj", &[0, 2, 1, 3])?;
        let products = [&queries[..], &keys];
        let scores = self.node("MatMul", &part("scores"), &products);
        let scale = 1.0 / (width as f32).sqrt();
        let scale = self.graph.numbers(&part("scale"), &[1], &[scale]);
        let scaled = self.node("Mul", &part("scaled"), &[&scores, &scale]);
        let shares = part("shares");
        let shares = self
            .graph
            .node("Softmax", &shares, &[&scaled], &[int("axis", -1)]);
        let mixed = self.node("MatMul", &part("mixed"), &[&shares, &values]);
        let turned = self.transpose(&part("turned"), &mixed, &[0, 2, 1, 3]);
        let shape = [0, self.tokens as i64, hidden as i64];
        let joined = self.reshape(&part("joined"), &turned, &shape);
        self.dense(&part("out_proj"), &joined, (hidden, hidden))
    }

    /// The vectors of the pictures, from the first token of each.
    fn project(&mut self, tokens: &str) -> Result<Value, OnnxError> {
        let (hidden, width) = (self.config.hidden_size, self.config.projection_dim);
        let first = self.graph.integers("vision_model.first_token", &[0]);
        let name = "vision_model.first";
        let first = self
            .graph
            .node("Gather", name, &[tokens, &first], &[int("axis", 1)]);
        let shape = [0, hidden as i64];
        let first = self.reshape("vision_model.pooled", &first, &shape);
        let normalised = self.norm("vision_model.post_layernorm", &first)?;
        let name = "visual_projection";
        let weight = format!("{name}.weight");
        let weight = tensor(self.graph, self.encoder, &weight, &[width, hidden])?;
        let inputs = [&normalised[..], &weight];
        Ok(self.graph.node("Gemm", name, &inputs, &[int("transB", 1)]))
    }

    /// Tokens times a matrix, plus a bias.
    fn dense(
        &mut self,
        name: &str,
        tokens: &str,
        (inputs, outputs): (usize, usize),
    ) -> Result<Value, OnnxError> {
        let part = |part: &str| format!("{name}.{part}");
        let rows = self.encoder.read(&part("weight"), &[outputs, inputs])?;
        // A product of tokens takes the matrix as inputs x outputs.
        let mut turned = vec![0.0; rows.len()];
        for (output, row) in rows.chunks_exact(inputs).enumerate() {
            for (input, &weight) in row.iter().enumerate() {
                turned[input * outputs + output] = weight;
            }
        }
        let weight = self
            .graph
            .numbers(&part("weight"), &[inputs, outputs], &turned);
        let bias = tensor(self.graph, self.encoder, &part("bias"), &[outputs])?;
        let product = self.node("MatMul", &part("product"), &[tokens, &weight]);
        Ok(self.node("Add", name, &[&product, &bias]))
    }

    /// Each token to mean 0 and variance 1, then scaled and shifted.
    fn norm(&mut self, name: &str, tokens: &str) -> Result<Value, OnnxError> {
        let hidden = [self.config.hidden_size];
        let part = |part: &str| format!("{name}.{part}");
        let scale = tensor(self.graph, self.encoder, &part("weight"), &hidden)?;
        let shift = tensor(self.graph, self.encoder, &part("bias"), &hidden)?;
        let epsilon = float("epsilon", self.config.layer_norm_eps);
        let settings = [int("axis", -1), epsilon];
        let inputs = [tokens, &scale, &shift];
        Ok(self
            .graph
            .node("LayerNormalization", name, &inputs, &settings))
    }

    /// `x` times the logistic function of `1.702 x`.
    fn quick_gelu(&mut self, name: &str, value: &str) -> Value {
        let part = |part: &str| format!("{name}.{part}");
        let factor = self.graph.numbers(&part("factor"), &[1], &[1.702]);
        let scaled = self.node("Mul", &part("scaled"), &[value, &factor]);
        let share = self.node("Sigmoid", &part("share"), &[&scaled]);
        self.node("Mul", name, &[value, &share])
    }

    /// The same numbers in another shape; 0 stands for as many as there are.
    fn reshape(&mut self, name: &str, value: &str, shape: &[i64]) -> Value {
        let shape = self.graph.integers(&format!("{name}.shape"), shape);
        self.node("Reshape", name, &[value, &shape])
    }

    /// The same numbers with their dimensions in another order.
    fn transpose(&mut self, name: &str, value: &str, order: &[usize]) -> Value {
        let order = [ints("perm", order)];
        self.graph.node("Transpose", name, &[value], &order)
    }
}
