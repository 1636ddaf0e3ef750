//! What a run's `model.json` says of its model, as far as MLflow and Python must know it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What is needed of a run's `model.json`: that of a network, or of trees.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Description {
    /// What the model is, where it is no network.
    #[serde(default)]
    kind: String,
    #[serde(default)]
    input_shape: Vec<usize>,
    /// What the samples of a network are; older runs do not say it.
    input: Option<String>,
    /// The numbers of a row that trees take.
    #[serde(default)]
    columns: usize,
    #[serde(default)]
    column_names: Vec<String>,
    #[serde(default)]
    inputs: Vec<Column>,
    /// A row of the training table; older runs have none.
    #[serde(default)]
    pub(super) example: Vec<Value>,
    /// How rows are encoded, which is all but that they are.
    encoding: Option<serde::de::IgnoredAny>,
    pub(super) normalise: Option<Normalise>,
    #[serde(default)]
    classes: Vec<String>,
    /// Of two classes, the one that is looked for, and the probability from which on it is predicted.
    positive: Option<String>,
    threshold: Option<f64>,
    targets: Option<Targets>,
    /// The column whose number trees predict.
    target: Option<String>,
    objective: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Normalise {
    pub(super) mean: Vec<f64>,
}

#[derive(Debug, Deserialize)]
struct Targets {
    columns: Vec<String>,
    #[serde(default)]
    loss: String,
}

/// A column of the table that a model takes, and what it holds, in the words of `model.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Column {
    pub(super) name: String,
    /// `number`, `boolean`, `category` or `date`.
    #[serde(rename = "type")]
    pub(super) kind: String,
    /// The values of a category.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) values: Vec<String>,
    /// Whether a date is a `day`, a `clock` or `both`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    form: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    day_first: bool,
}

/// What a model predicts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Task {
    Classes,
    Labels,
    Numbers,
}

/// All that Python must know to read the rows of a table: `table.json`.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Table {
    pub(super) columns: Vec<Column>,
    /// Whether cells may be empty.
    gaps: bool,
    task: Task,
    /// What is predicted: the classes, the labels, or the columns of numbers.
    names: Vec<String>,
    /// Of two classes, the place of the one that is predicted from the threshold on.
    #[serde(skip_serializing_if = "Option::is_none")]
    positive: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threshold: Option<f64>,
    /// XGBoost's name for what trees minimised.
    #[serde(skip_serializing_if = "Option::is_none")]
    objective: Option<String>,
}

impl Description {
    /// Whether the model is boosted trees.
    pub(super) fn is_of_trees(&self) -> bool {
        self.kind == "xgboost"
    }

    /// Whether samples are bytes.
    pub(super) fn takes_bytes(&self) -> bool {
        match self.input.as_deref() {
            Some(input) => input == "bytes",
            None => self.shape().len() == 3,
        }
    }

    /// The shape of a sample as an array: what is no picture is flat.
    pub(super) fn shape(&self) -> Vec<usize> {
        match self.input_shape.as_slice() {
            [] => vec![self.columns],
            [width, 1, 1] => vec![*width],
            shape => shape.to_vec(),
        }
    }

    /// What the model predicts, and what that is called.
    pub(super) fn outputs(&self) -> (Task, &[String]) {
        match (&self.targets, &self.target) {
            (Some(targets), _) => match &targets.loss[..] {
                "bce" => (Task::Labels, &targets.columns),
                _ => (Task::Numbers, &targets.columns),
            },
            (None, Some(target)) => (Task::Numbers, std::slice::from_ref(target)),
            (None, None) => (Task::Classes, &self.classes),
        }
    }

    /// The table that the model takes rows of; none if it takes arrays.
    pub(super) fn table(&self) -> Option<Table> {
        let columns = match &self.inputs[..] {
            // Where nothing is said of the columns, there is one for each number, and all are numbers.
            [] if self.shape() == [self.column_names.len()] => {
                let number = |name: &String| Column {
                    name: name.clone(),
                    kind: "number".to_owned(),
                    values: Vec::new(),
                    form: None,
                    day_first: false,
                };
                self.column_names.iter().map(number).collect()
            }
            known => known.to_vec(),
        };
        if columns.is_empty() || columns.iter().any(|column| column.name.is_empty()) {
            return None;
        }
        let (task, names) = self.outputs();
        Some(Table {
            columns,
            gaps: self.is_of_trees() || self.encoding.is_some(),
            task,
            positive: (self.threshold.and(self.positive.as_ref()))
                .and_then(|positive| names.iter().position(|name| name == positive)),
            threshold: self.threshold,
            names: names.to_vec(),
            objective: self.objective.clone().filter(|_| self.is_of_trees()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn table(text: &str) -> Value {
        let description: Description = serde_json::from_str(text).unwrap();
        json!(description.table())
    }

    #[test]
    fn models_of_tables_take_columns_and_all_others_arrays() {
        let plain = r#"{"input_shape":[2,1,1],"column_names":["a","b"],"classes":["x","y"]}"#;
        let known = table(plain);
        assert_eq!(known["columns"][1]["name"], "b");
        assert_eq!(
            (&known["gaps"], &known["task"]),
            (&json!(false), &json!("classes"))
        );
        let vectors = r#"{"input_shape":[2,1,1],"classes":["x","y"]}"#;
        assert_eq!(table(vectors), Value::Null);
        let pictures = r#"{"input_shape":[1,2,2],"classes":["x","y"]}"#;
        assert_eq!(table(pictures), Value::Null);
    }

    #[test]
    fn trees_and_encoded_rows_may_have_gaps() {
        let trees = table(
            r#"{"kind":"xgboost","columns":5,"column_names":["t","d.year","d.month","d.day","d.weekday"],
                "inputs":[{"name":"t","type":"category","values":["x"]},{"name":"d","type":"date","form":"day"}],
                "objective":"reg:gamma","classes":[],"target":"price"}"#,
        );
        assert_eq!(trees["objective"], "reg:gamma");
        assert_eq!(
            (&trees["gaps"], &trees["names"]),
            (&json!(true), &json!(["price"]))
        );
        assert_eq!(trees["columns"][0]["values"], json!(["x"]));
        let encoded = table(
            r#"{"input_shape":[1,1,1],"inputs":[{"name":"a","type":"number"}],"encoding":{"numbers":[]},
                "targets":{"columns":["y","z"],"loss":"bce"},"classes":[]}"#,
        );
        assert_eq!(
            (&encoded["gaps"], &encoded["task"]),
            (&json!(true), &json!("labels"))
        );
    }
}
