//! How trees are grown.

use crate::gradients::Objective;
use lockstep_resolve::TreesDevice;

/// What boosting is told.
#[derive(Debug, Clone, PartialEq)]
pub struct BoostSettings {
    /// What is minimised.
    pub objective: Objective,
    /// Whether the model is the same on any number of ranks; if not, XGBoost does everything in its own way.
    pub exact: bool,
    /// The value that is predicted without any tree, as the objective has it: a probability, a number. By default the
    /// mean of all rows.
    pub base_score: Option<f64>,
    /// The most bins of a column.
    pub bins: usize,
    /// The share of the rows that take part in a round.
    pub row_share: f64,
    /// The share of the columns that take part in a round.
    pub column_share: f64,
    /// The target of the positive one of two classes, and how much a row of it counts.
    pub positive: (f32, f64),
    /// How much a row of each class counts beside its own weight; empty where all count alike.
    pub class_weights: Vec<f32>,
    /// What chance is a function of.
    pub seed: u64,
    /// Threads of a rank.
    pub threads: usize,
    /// What the trees are grown on.
    pub device: TreesDevice,
    /// XGBoost's other parameters, by its own names.
    pub parameters: Vec<(String, String)>,
}

impl BoostSettings {
    /// How many columns take part in a round, where it is not all.
    pub fn chosen_columns(&self, columns: usize) -> Option<usize> {
        let chosen = (self.column_share * columns as f64) as usize;
        (self.exact && self.column_share < 1.0).then_some(chosen.max(1))
    }

    /// By how much each tree counts.
    pub(crate) fn eta(&self) -> f64 {
        let names = ["eta", "learning_rate"];
        let said = (self.parameters.iter().rev()).find(|(name, _)| names.contains(&name.as_str()));
        said.and_then(|(_, value)| value.parse().ok())
            .unwrap_or(0.3)
    }

    /// What XGBoost is told where it grows one tree alone, whose leaves are set afterwards. The objective is one that
    /// leaves them as they are.
    pub(crate) fn for_one_tree(&self, columns: usize) -> Vec<(String, String)> {
        let plain = Self {
            objective: Objective::SquaredError,
            ..self.clone()
        };
        plain.for_xgboost(columns, Some(0.0))
    }

    /// What XGBoost is told, in order. A model that goes on from an earlier one must not be told its base score again:
    /// that would change its bytes.
    pub(crate) fn for_xgboost(
        &self,
        columns: usize,
        base_score: Option<f64>,
    ) -> Vec<(String, String)> {
        let mut all = vec![
            ("tree_method", "hist".to_owned()),
            ("objective", self.objective.xgboost_name().to_owned()),
            ("max_bin", self.bins.to_string()),
            ("nthread", self.threads.to_string()),
            ("seed", self.seed.to_string()),
            ("disable_default_eval_metric", "1".to_owned()),
        ];
        if let TreesDevice::Gpu(number) = self.device {
            let name = number.map_or("cuda".to_owned(), |number| format!("cuda:{number}"));
            all.push(("device", name));
            // Else it would take another one.
            all.push(("fail_on_invalid_gpu_id", "1".to_owned()));
        }
        if let Objective::Softmax { classes } = self.objective {
            all.push(("num_class", classes.to_string()));
        }
        if let Objective::Quantile { share } = self.objective {
            all.push(("quantile_alpha", share.to_string()));
        }
        if let (Objective::Rank { top, .. }, true) = (self.objective, self.exact) {
            all.push(("lambdarank_pair_method", "topk".to_owned()));
            all.push(("lambdarank_num_pair_per_sample", top.to_string()));
        }
        if let Some(base_score) = base_score {
            all.push(("base_score", base_score.to_string()));
        }
        if let Some(chosen) = self.chosen_columns(columns) {
            // Half a column more than are chosen, so that no rounding makes it one less.
            let share = (chosen as f64 + 0.5) / columns as f64;
            all.push(("colsample_bytree", share.min(1.0).to_string()));
        }
        let own = all
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value));
        own.chain(self.parameters.iter().cloned()).collect()
    }
}
