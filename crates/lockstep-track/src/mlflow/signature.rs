//! What MLflow says of a model before it is loaded: what goes in and comes out, and an example of it.
//!
//! MLflow holds what people give to a model against its signature, and refuses what is not of the very type. A column of
//! a table comes in several: numbers as whole ones or with gaps, dates as such or as text. Only words have one type; all
//! other columns are of the type `any`, and the loader checks them. The same holds for pictures, bytes or not: an
//! array of objects in one dimension is MLflow's word for any array.

use super::description::{Column, Description, Table, Task};
use serde_json::{Map, Value, json};

/// The most numbers that a sample may have to be written as an example.
const LARGEST_EXAMPLE: usize = 1 << 20;

/// What a model takes and gives.
pub(super) fn signature(description: &Description) -> Value {
    let (task, names) = description.outputs();
    let (inputs, outputs) = match description.table() {
        Some(table) => (of_columns(&table), of_predicted(task, names)),
        None => {
            let inputs = match description.takes_bytes() {
                true => json!([tensor(None, "object", &[])]),
                false => json!([tensor(None, "float32", &description.shape())]),
            };
            let numbers = |name| tensor(Some(name), "float32", &[names.len()]);
            let outputs = match task {
                Task::Classes => {
                    json!([
                        numbers("probabilities"),
                        tensor(Some("class"), "int64", &[])
                    ])
                }
                Task::Labels => json!([numbers("probabilities")]),
                Task::Numbers => json!([numbers("values")]),
            };
            (inputs, outputs)
        }
    };
    json!({ "inputs": inputs.to_string(), "outputs": outputs.to_string(), "params": null })
}

fn tensor(name: Option<&str>, dtype: &str, shape: &[usize]) -> Value {
    let shape: Vec<i64> = std::iter::once(-1)
        .chain(shape.iter().map(|size| *size as i64))
        .collect();
    let mut tensor = json!({ "type": "tensor", "tensor-spec": { "dtype": dtype, "shape": shape } });
    if let Some(name) = name {
        tensor["name"] = json!(name);
    }
    tensor
}

fn column(name: &str, kind: &str) -> Value {
    json!({ "type": kind, "name": name, "required": true })
}

fn of_columns(table: &Table) -> Value {
    let input = |of: &Column| {
        // Data frames have categories such as the number of a shop as numbers.
        let is_word = |value: &String| value.parse::<f64>().is_err();
        match of.kind == "category" && of.values.iter().all(is_word) {
            true => column(&of.name, "string"),
            false => column(&of.name, "any"),
        }
    };
    table.columns.iter().map(input).collect()
}

fn of_predicted(task: Task, names: &[String]) -> Value {
    let mut columns = Vec::new();
    let each = match task {
        Task::Classes => {
            columns.extend([
                column("predicted", "string"),
                column("probability", "double"),
            ]);
            "probability"
        }
        Task::Labels | Task::Numbers => "predicted",
    };
    let of_name = |name| column(&format!("{each}_{name}"), "double");
    columns.extend(names.iter().map(of_name));
    Value::Array(columns)
}

/// What a signature cannot say of a model's input: what each column holds, or the shape of an array.
pub(super) fn metadata(description: &Description) -> Value {
    match description.table() {
        Some(table) => {
            let columns = table.columns.into_iter();
            let columns: Map<String, Value> = columns
                .map(|column| (column.name, json!(column.kind)))
                .collect();
            json!({ "columns": columns })
        }
        None if description.takes_bytes() => {
            json!({ "input": { "shape": description.shape(), "numbers": "0 to 255" } })
        }
        None => json!({ "input": { "shape": description.shape() } }),
    }
}

/// A sample, as MLflow keeps one beside a model.
pub(super) struct Example {
    /// What `MLmodel` says of it.
    pub(super) info: Value,
    /// `input_example.json`.
    pub(super) input: Value,
    /// `serving_input_example.json`: the same as it is sent to a server.
    pub(super) serving: Value,
}

impl Example {
    /// A row of the training table; of all else, the mean sample.
    pub(super) fn of(description: &Description) -> Option<Self> {
        let mut info = json!({
            "artifact_path": "input_example.json", "type": "ndarray",
            "serving_input_path": "serving_input_example.json",
        });
        let Some(table) = description.table() else {
            let input = mean_sample(description)?;
            let serving = json!({ "inputs": input });
            return Some(Self {
                info,
                input,
                serving,
            });
        };
        let row = &description.example;
        if row.len() != table.columns.len() {
            return None;
        }
        info["type"] = json!("dataframe");
        info["pandas_orient"] = json!("split");
        let names: Vec<&str> = table
            .columns
            .iter()
            .map(|column| &column.name[..])
            .collect();
        let input = json!({ "columns": names, "data": [row] });
        let serving = json!({ "dataframe_split": input });
        Some(Self {
            info,
            input,
            serving,
        })
    }
}

/// The mean sample, as far as that is known: one that looks like the data.
fn mean_sample(description: &Description) -> Option<Value> {
    let shape = description.shape();
    let numbers: usize = shape.iter().product();
    if numbers == 0 || numbers > LARGEST_EXAMPLE {
        return None;
    }
    let mean = description.normalise.as_ref();
    let mean = mean.map(|scale| scale.mean.as_slice());
    // The scale of bytes is that of bytes divided by 255.
    let of_bytes = description.takes_bytes();
    let of_channel = |channel: usize| {
        let mean = match mean {
            Some([one]) => *one,
            Some(mean) => mean.get(channel).copied().unwrap_or(0.0),
            None => 0.0,
        };
        match of_bytes {
            true => json!((255.0 * mean).round() as i64),
            false => json!(mean),
        }
    };
    let values: Vec<Value> = (0..shape[0])
        .map(|channel| nested(&shape[1..], &of_channel(channel)))
        .collect();
    Some(json!([values]))
}

/// An array of this shape, full of one value.
fn nested(shape: &[usize], value: &Value) -> Value {
    match shape {
        [] => value.clone(),
        [first, rest @ ..] => Value::Array(vec![nested(rest, value); *first]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description(text: &str) -> Description {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn pictures_are_any_array_and_their_example_is_of_bytes() {
        let pictures = description(
            r#"{"input_shape":[1,2,3],"normalise":{"mean":[0.5],"std":[1]},"classes":["a","b"]}"#,
        );
        let row = [128, 128, 128];
        assert_eq!(Example::of(&pictures).unwrap().input, json!([[[row, row]]]));
        let said = signature(&pictures);
        let any = r#"{"dtype":"object","shape":[-1]}"#;
        assert!(said["inputs"].as_str().unwrap().contains(any), "{said}");
        assert!(said["outputs"].as_str().unwrap().contains("[-1,2]"));
    }

    #[test]
    fn vectors_are_arrays_of_numbers() {
        let vectors = description(
            r#"{"input_shape":[3,1,1],"normalise":{"mean":[1,2.5,3],"std":[1,1,1]},
                "targets":{"columns":["y"]}}"#,
        );
        let example = Example::of(&vectors).unwrap();
        assert_eq!(example.input, json!([[1.0, 2.5, 3.0]]));
        let said = signature(&vectors);
        assert!(said["inputs"].as_str().unwrap().contains("[-1,3]"));
        assert!(said["outputs"].as_str().unwrap().contains("values"));
    }

    #[test]
    fn a_table_is_said_by_its_columns_and_its_example_is_one_of_its_rows() {
        let text = r#"{"input_shape":[3,1,1],"classes":["no","yes"],"encoding":{},
            "inputs":[{"name":"town","type":"category","values":["Bonn"]},
                      {"name":"zip","type":"category","values":["1","2"]},{"name":"area","type":"number"}],
            "example":["Bonn","2",null]}"#;
        let table = description(text);
        let said = signature(&table);
        let inputs: Value = serde_json::from_str(said["inputs"].as_str().unwrap()).unwrap();
        let types: Vec<&str> = inputs
            .as_array()
            .unwrap()
            .iter()
            .map(|input| input["type"].as_str().unwrap())
            .collect();
        assert_eq!(types, ["string", "any", "any"]);
        assert_eq!(metadata(&table)["columns"]["area"], "number");
        let outputs: Value = serde_json::from_str(said["outputs"].as_str().unwrap()).unwrap();
        let names: Vec<&str> = outputs
            .as_array()
            .unwrap()
            .iter()
            .map(|output| output["name"].as_str().unwrap())
            .collect();
        let expected = [
            "predicted",
            "probability",
            "probability_no",
            "probability_yes",
        ];
        assert_eq!(names, expected);
        let example = Example::of(&table).unwrap();
        assert_eq!(example.info["type"], "dataframe");
        let split = json!({ "columns": ["town", "zip", "area"], "data": [["Bonn", "2", null]] });
        assert_eq!(example.input, split);
        assert_eq!(example.serving, json!({ "dataframe_split": split }));
        // A run of before has no row, and no example is better than one that nobody had.
        let before = text.replace(r#""example":["Bonn","2",null]"#, r#""example":[]"#);
        assert!(Example::of(&description(&before)).is_none());
    }
}
