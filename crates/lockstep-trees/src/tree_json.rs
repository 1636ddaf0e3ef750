//! The part of XGBoost's JSON that says which trees a model has, and what their leaves are worth.

use crate::TreesError;
use crate::xgboost::{Booster, ModelFormat, Xgboost};
use serde_json::{Value, json};

/// A model as XGBoost's JSON has it, taken apart.
#[derive(Debug)]
pub(crate) struct ModelJson {
    /// All but the trees.
    form: Value,
    /// The trees, each of which is a round.
    pub(crate) trees: Vec<TreeJson>,
}

/// One tree.
#[derive(Debug, Clone)]
pub(crate) struct TreeJson(Value);

const MODEL: &str = "/learner/gradient_booster/model";
const BASE_SCORE: &str = "/learner/learner_model_param/base_score";

impl ModelJson {
    /// Takes a model apart.
    pub(crate) fn of(booster: &mut Booster) -> Result<Self, TreesError> {
        let text = booster.save(ModelFormat::Json)?;
        let mut form: Value = serde_json::from_slice(&text).map_err(|_| strange("JSON"))?;
        let trees = form.pointer_mut(&format!("{MODEL}/trees"));
        let trees = trees.and_then(Value::as_array_mut).map(std::mem::take);
        let trees = trees.ok_or_else(|| strange("trees"))?;
        Ok(Self {
            form,
            trees: trees.into_iter().map(TreeJson).collect(),
        })
    }

    /// What is predicted without any tree.
    pub(crate) fn base_score(&self) -> Result<f32, TreesError> {
        let text = self.form.pointer(BASE_SCORE).and_then(Value::as_str);
        // Newer versions write a list of one.
        let number = text.and_then(|text| text.trim_matches(['[', ']']).parse().ok());
        number.ok_or_else(|| strange("base_score"))
    }

    /// The model with all its trees.
    pub(crate) fn booster(&self, xgboost: &Xgboost) -> Result<Booster, TreesError> {
        let mut whole = self.form.clone();
        let count = self.trees.len();
        let model = whole.pointer_mut(MODEL).ok_or_else(|| strange("model"))?;
        model["gbtree_model_param"]["num_trees"] = json!(count.to_string());
        model["tree_info"] = json!(vec![0; count]);
        model["iteration_indptr"] = (0..=count).collect();
        let numbered = self.trees.iter().enumerate().map(|(number, tree)| {
            let mut tree = tree.0.clone();
            tree["id"] = json!(number);
            tree
        });
        model["trees"] = numbered.collect();
        let text = serde_json::to_vec(&whole).expect("a value is plain data");
        let mut booster = Booster::new(xgboost, &[])?;
        booster.load(&text)?;
        Ok(booster)
    }
}

impl TreeJson {
    /// The nodes that are leaves, in order.
    pub(crate) fn leaves(&self) -> Result<Vec<usize>, TreesError> {
        let children = self.0["left_children"].as_array();
        let children = children.ok_or_else(|| strange("left_children"))?;
        let is_leaf = |(_, child): &(usize, &Value)| child.as_i64() == Some(-1);
        let leaves = children.iter().enumerate().filter(is_leaf);
        Ok(leaves.map(|(node, _)| node).collect())
    }

    /// What each node adds to the margin, if it is a leaf.
    pub(crate) fn worths(&self) -> Result<Vec<f32>, TreesError> {
        let all = self.0["split_conditions"].as_array();
        let worths = all.and_then(|all| all.iter().map(|one| Some(one.as_f64()? as f32)).collect());
        worths.ok_or_else(|| strange("split_conditions"))
    }

    /// Sets what a leaf adds to the margin.
    pub(crate) fn set_leaf(&mut self, node: usize, value: f32) -> Result<(), TreesError> {
        let place = self.0.get_mut("split_conditions");
        let place = place.and_then(|all| all.get_mut(node));
        let place = place.ok_or_else(|| strange("split_conditions"))?;
        // As few digits as an f32 needs: XGBoost reads no more.
        let shortest: f64 = value.to_string().parse().unwrap_or(f64::from(value));
        *place = json!(shortest);
        Ok(())
    }
}

fn strange(part: &'static str) -> TreesError {
    TreesError::StrangeModel { part }
}
