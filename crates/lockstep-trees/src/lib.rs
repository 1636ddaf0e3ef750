//! Boosted trees that are the same on any number of workers.
//!
//! XGBoost grows the trees; what makes them depend on how the rows are divided is taken away from it. There are three
//! such things:
//!
//! 1. **Cuts.** XGBoost merges sketches of quantiles, and the result depends on what was merged. Here a column's
//!    [`cuts`] are exact order statistics of all rows, found by counting, and sums of counts have no order.
//! 2. **Gradients.** Histograms are sums of floats, which depend on the order. Here [`gradients`] are rounded to a grid
//!    so coarse that every sum of them is exact.
//! 3. **Chance.** Which rows and columns take part in a round is a function of the seed, the round and the row's or
//!    column's number ([`sample`]), not of a generator's state.

mod apart;
mod boosting;
mod contributions;
mod coordinator;
pub mod cuts;
mod error;
mod exact_sum;
pub mod gradients;
mod importance;
mod learner;
mod measure;
mod model_file;
mod part;
mod plan;
mod prepare;
mod publish;
mod quantiles;
mod ranks;
mod recover;
mod refitted;
mod said;
pub mod sample;
mod session;
mod settings;
mod shard;
mod state;
mod together;
mod trained;
mod tree_json;
mod watch;
pub mod xgboost;

pub use boosting::Boosting;
pub use coordinator::{TreesCoordinator, TreesLearner};
pub use error::TreesError;
pub use measure::metric_names;
pub use model_file::{check_model, without_names};
pub use part::{FoundTables, Tables, TreesPart};
pub use plan::plan;
pub use prepare::{PreparedTrees, prepare};
pub use ranks::ranking;
pub use recover::recover_model;
pub use settings::BoostSettings;
pub use together::{Alone, Together};
pub(crate) use trained::load_or_bring_xgboost;
pub use trained::{find_xgboost, load_xgboost};
