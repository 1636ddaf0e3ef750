//! Requests as the Open Inference Protocol (version 2) has them, which the clients of KServe and Triton speak.
//!
//! A network takes one input of the shape `[rows, …]`; a model on a table takes an input for each column, of the shape
//! `[rows]`, with text as `BYTES`. Elements come as JSON, or as bytes after it, as Triton's clients send them by default.

use crate::Refusal;
use crate::answer::Said;
use crate::content::{Asked, Content};
use crate::json::Json;
use crate::mlflow::{params, shown};
use crate::tensor::Tensor;
use crate::tensor_data::{self, Elements};
use lockstep_model::Predictions;
use serde::Serialize;
use std::borrow::Cow;

/// The outputs that a model of classes has, and what one of numbers has.
const PREDICTED: &str = "predicted";
const PROBABILITY: &str = "probability";
const PROBABILITIES: &str = "probabilities";

/// A request that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct Inference {
    /// Its rows.
    pub(crate) asked: Asked,
    /// What the answer repeats.
    pub(crate) reply: Reply,
}

/// What the answer has of its request.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Reply {
    id: Option<String>,
    /// The outputs that are wanted; all, if none is named.
    outputs: Vec<String>,
}

/// An input of a request.
#[derive(Default)]
struct Input {
    name: String,
    shape: Vec<usize>,
    datatype: String,
    data: Option<Json>,
    bytes: Option<usize>,
}

/// Reads a body of which the first `head` bytes are JSON; all of it, if nothing is said.
///
/// # Errors
/// When it is not as the protocol has it.
pub(crate) fn read(head: Option<usize>, body: &[u8]) -> Result<Inference, Refusal> {
    let head = head.unwrap_or(body.len());
    let parts = body.split_at_checked(head);
    let (text, mut rest) = parts.ok_or_else(|| {
        let length = body.len();
        Refusal::bad(format!(
            "the body has {length} bytes, and its JSON is said to have {head}"
        ))
    })?;
    let Json::Object(keys) = Json::read(text)? else {
        return Err(Refusal::bad("the body must be an object with `inputs`"));
    };
    let mut inputs = None;
    let mut reply = Reply::default();
    let mut probabilities = false;
    for (key, value) in keys {
        match (key.as_str(), value) {
            ("id", Json::Text(id)) => reply.id = Some(id),
            ("inputs", value) => inputs = value.into_items(),
            ("parameters", value) => probabilities |= wants_probabilities(value)?,
            ("outputs", value) => {
                let all = value.into_items().unwrap_or_default();
                reply.outputs = all.into_iter().map(output_name).collect::<Result<_, _>>()?;
            }
            _ => (),
        }
    }
    probabilities |= reply.outputs.iter().any(|name| name == PROBABILITIES);
    let inputs = inputs.ok_or_else(|| Refusal::bad("the body has no list of `inputs`"))?;
    let inputs = inputs.into_iter().map(input);
    let mut inputs: Vec<Input> = inputs.collect::<Result<_, _>>()?;
    let content = match inputs.len() {
        0 => return Err(Refusal::bad("`inputs` is empty")),
        1 => single(inputs.remove(0), &mut rest)?,
        _ => {
            let columns = inputs.into_iter().map(|input| column(input, &mut rest));
            Content::Columns(columns.collect::<Result<_, _>>()?)
        }
    };
    Ok(Inference {
        asked: Asked {
            content,
            probabilities,
        },
        reply,
    })
}

/// The parameters of a request, of which others than ours are for other servers.
fn wants_probabilities(value: Json) -> Result<bool, Refusal> {
    let Json::Object(keys) = value else {
        return Ok(false);
    };
    let own = keys.into_iter().filter(|(key, _)| key == PROBABILITIES);
    params(Json::Object(own.collect()))
}

fn output_name(output: Json) -> Result<String, Refusal> {
    let name = match output {
        Json::Object(keys) => keys.into_iter().find_map(|(key, value)| match value {
            Json::Text(name) if key == "name" => Some(name),
            _ => None,
        }),
        _ => None,
    };
    name.ok_or_else(|| Refusal::bad("each of `outputs` must be an object with a `name`"))
}

fn input(value: Json) -> Result<Input, Refusal> {
    let Json::Object(keys) = value else {
        let found = value.words();
        return Err(Refusal::bad(format!(
            "an input is {found}; it must be an object"
        )));
    };
    let mut input = Input::default();
    for (key, value) in keys {
        match (key.as_str(), value) {
            ("name", Json::Text(name)) => input.name = name,
            ("datatype", Json::Text(datatype)) => input.datatype = datatype,
            ("shape", Json::Numbers(shape)) => {
                input.shape = shape.into_iter().map(|side| side as usize).collect();
            }
            ("data", data) => input.data = Some(data),
            ("parameters", Json::Object(keys)) => {
                input.bytes = keys.iter().find_map(|(key, value)| match value {
                    Json::Number(bytes) if key == "binary_data_size" => Some(*bytes as usize),
                    _ => None,
                });
            }
            _ => (),
        }
    }
    let wrong = |what: &str| Refusal::bad(format!("the input `{}` {what}", shown(&input.name)));
    tensor_data::check(&input.datatype).map_err(|what| wrong(&what))?;
    if input.shape.is_empty() {
        return Err(wrong("has no `shape`"));
    }
    Ok(input)
}

impl Input {
    /// Its elements, of which those that are bytes are the next of `rest`.
    fn elements(&mut self, rest: &mut &[u8]) -> Result<Elements, Refusal> {
        let name = shown(&self.name);
        let wrong = |what: String| Refusal::bad(format!("the input `{name}` {what}"));
        let elements = match (self.data.take(), self.bytes) {
            (Some(data), None) => Elements::Values(tensor_data::flat(data)),
            (None, Some(size)) => {
                let parts = rest.split_at_checked(size);
                let (bytes, after) = parts.ok_or_else(|| {
                    wrong(format!("has {size} bytes, of which {} came", rest.len()))
                })?;
                *rest = after;
                tensor_data::of_bytes(&self.datatype, bytes).map_err(wrong)?
            }
            _ => {
                return Err(wrong(
                    "must have `data`, or bytes after the JSON".to_owned(),
                ));
            }
        };
        let found = match &elements {
            Elements::Values(values) => values.len().unwrap_or(0),
            Elements::Files(files) => files.len(),
        };
        let wanted = self
            .shape
            .iter()
            .try_fold(1_usize, |all, &side| all.checked_mul(side));
        match wanted == Some(found) {
            true => Ok(elements),
            false => Err(wrong(format!(
                "has {found} elements, and the shape {:?}",
                self.shape
            ))),
        }
    }
}

/// The rows of a request with one input.
fn single(mut input: Input, rest: &mut &[u8]) -> Result<Content, Refusal> {
    let elements = input.elements(rest)?;
    let is_column = matches!(input.shape[..], [_] | [_, 1]);
    match elements {
        Elements::Files(files) => Ok(Content::Pictures(files)),
        Elements::Values(values) if is_column || !tensor_data::is_numeric(&input.datatype) => {
            Ok(Content::Columns(vec![(input.name, values)]))
        }
        Elements::Values(values) => Ok(Content::Tensor(Tensor {
            values: tensor_data::numbers(&shown(&input.name), values)?,
            shape: input.shape,
        })),
    }
}

/// One of several inputs: a column of a table.
fn column(mut input: Input, rest: &mut &[u8]) -> Result<(String, Json), Refusal> {
    let name = shown(&input.name);
    if !matches!(input.shape[..], [_] | [_, 1]) {
        return Err(Refusal::bad(format!(
            "the input `{name}` has the shape {:?}; a column has the shape [rows] or [rows, 1]",
            input.shape
        )));
    }
    match input.elements(rest)? {
        Elements::Values(values) => Ok((input.name, values)),
        Elements::Files(_) => Err(Refusal::bad(format!(
            "the input `{name}` holds bytes that are no UTF-8 text"
        ))),
    }
}

/// The answer to a request. Numbers are written in single precision, as the model said them.
#[derive(Serialize)]
pub(crate) struct InferAnswer<'a> {
    model_name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model_version: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    outputs: Vec<Output<'a>>,
}

#[derive(Serialize)]
struct Output<'a> {
    name: &'static str,
    datatype: &'static str,
    shape: Vec<usize>,
    data: OutputData<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum OutputData<'a> {
    Texts(Vec<&'a str>),
    Numbers(Cow<'a, [f32]>),
}

/// The answer to a request.
///
/// # Errors
/// When an output is wanted that the model does not have.
pub(crate) fn answer<'a>(said: &'a Said, reply: &'a Reply) -> Result<InferAnswer<'a>, Refusal> {
    let rows = said.predictions.len();
    let numbers = |name, shape, data| Output {
        name,
        datatype: "FP32",
        shape,
        data: OutputData::Numbers(data),
    };
    let mut outputs = Vec::new();
    match &said.predictions {
        Predictions::Classes(classes) => {
            outputs.push(Output {
                name: PREDICTED,
                datatype: "BYTES",
                shape: vec![rows],
                data: OutputData::Texts(said.classes()),
            });
            let each = classes.iter().map(|said| said.probability).collect();
            outputs.push(numbers(PROBABILITY, vec![rows], each));
            if !said.probabilities.is_empty() {
                let shape = vec![rows, said.about.outputs.names.len()];
                let all = Cow::Borrowed(&said.probabilities[..]);
                outputs.push(numbers(PROBABILITIES, shape, all));
            }
        }
        Predictions::Numbers { width, values } => {
            outputs.push(numbers(
                PREDICTED,
                vec![rows, *width],
                Cow::Borrowed(values),
            ));
        }
    }
    let names: Vec<&str> = outputs.iter().map(|output| output.name).collect();
    let unknown = |name: &&String| !names.contains(&name.as_str());
    if let Some(unknown) = reply.outputs.iter().find(unknown) {
        return Err(Refusal::bad(format!(
            "the model has no output `{}`; it has `{}`",
            shown(unknown),
            names.join("`, `")
        )));
    }
    if !reply.outputs.is_empty() {
        outputs.retain(|output| reply.outputs.iter().any(|name| name == output.name));
    }
    Ok(InferAnswer {
        model_name: &said.about.name,
        model_version: said.about.version.map(|version| version.to_string()),
        id: reply.id.as_deref(),
        outputs,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(body: &str) -> Result<Content, String> {
        let read = read(None, body.as_bytes());
        read.map(|read| read.asked.content)
            .map_err(|refusal| refusal.message)
    }

    #[test]
    fn one_input_is_a_tensor_and_several_are_columns() {
        let body = r#"{"id": "7", "inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [[1, 2], [3, 4]]}],
                       "outputs": [{"name": "probabilities"}]}"#;
        let inference = read(None, body.as_bytes()).unwrap();
        let values = vec![1.0, 2.0, 3.0, 4.0];
        let shape = vec![2, 2];
        assert_eq!(
            inference.asked.content,
            Content::Tensor(Tensor { shape, values })
        );
        assert!(inference.asked.probabilities);
        assert_eq!(inference.reply.id.as_deref(), Some("7"));
        let columns = asked(
            r#"{"inputs": [{"name": "a", "shape": [1], "datatype": "INT64", "data": [5]},
                           {"name": "b", "shape": [1, 1], "datatype": "BYTES", "data": ["west"]}]}"#,
        );
        let expected = vec![
            ("a".to_owned(), Json::Numbers(vec![5.0])),
            ("b".to_owned(), Json::List(vec![Json::Text("west".into())])),
        ];
        assert_eq!(columns, Ok(Content::Columns(expected)));
    }

    #[test]
    fn elements_may_follow_the_json_as_bytes() {
        let head = r#"{"inputs": [{"name": "a", "shape": [1], "datatype": "UINT8", "parameters": {"binary_data_size": 1}},
                                  {"name": "b", "shape": [1], "datatype": "BYTES", "parameters": {"binary_data_size": 5}}]}"#;
        let body = [head.as_bytes(), b"\x09", b"\x01\0\0\0z"].concat();
        let inference = read(Some(head.len()), &body).unwrap();
        let expected = vec![
            ("a".to_owned(), Json::List(vec![Json::Number(9.0)])),
            ("b".to_owned(), Json::List(vec![Json::Text("z".into())])),
        ];
        assert_eq!(inference.asked.content, Content::Columns(expected));
        let short = read(Some(head.len()), &body[..body.len() - 1]).unwrap_err();
        assert!(
            short
                .message
                .contains("the input `b` has 5 bytes, of which 4 came")
        );
        assert!(read(Some(9999), &body).is_err());
    }

    #[test]
    fn requests_that_do_not_fit_are_told_why() {
        for (body, expected) in [
            ("{}", "no list of `inputs`"),
            (r#"{"inputs": []}"#, "`inputs` is empty"),
            (r#"{"inputs": [3]}"#, "an input is a number"),
            (
                r#"{"inputs": [{"name": "x", "shape": [1], "datatype": "FLOAT", "data": [1]}]}"#,
                "has the datatype \"FLOAT\"",
            ),
            (
                r#"{"inputs": [{"name": "x", "datatype": "FP32", "data": [1]}]}"#,
                "the input `x` has no `shape`",
            ),
            (
                r#"{"inputs": [{"name": "x", "shape": [2, 2], "datatype": "FP32", "data": [1]}]}"#,
                "the input `x` has 1 elements, and the shape [2, 2]",
            ),
            (
                r#"{"inputs": [{"name": "x", "shape": [1, 1], "datatype": "FP32"}]}"#,
                "must have `data`",
            ),
            (
                r#"{"inputs": [{"name": "x", "shape": [1, 2], "datatype": "FP32", "data": [1, "a"]}]}"#,
                "the input `x` holds text as element 1; it must be a number",
            ),
        ] {
            let said = asked(body).unwrap_err();
            assert!(said.contains(expected), "{body}: {said}");
        }
    }
}
