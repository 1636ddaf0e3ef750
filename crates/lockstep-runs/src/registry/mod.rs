//! Names for models: numbered versions, each a copy of what a run learned, and aliases that point to one of them.
//!
//! The registry is files in a store of runs, below `models/`, and works the same in a bucket:
//!
//! ```text
//! models/NAME/versions/000003.json     what version 3 is: its run, its metrics, its hashes, where its files lie
//! models/NAME/files/abcdefgh/...       the files of one version, as they were in the run's folder
//! models/NAME/aliases.json             which version `champion` is
//! models/NAME/details.json             what people say of the model and its versions, once they say something
//! ```
//!
//! - **A version never changes.** Its files are copied first, and its number is then taken by writing its description on
//!   the condition that there is none. The number of a version that was removed is not given again.
//! - **It needs nothing else.** The run that it was made from may go.
//! - **Nobody's change is lost.** Aliases are changed on the condition that they are as they were read.

mod details;
mod error;
mod models;
mod reference;
mod version;

pub use details::{Details, VersionDetails};
pub use error::RegistryError;
pub use models::{MLFLOW_FOLDER, Model, NewVersion, PROMPT_TAG, Registry};
pub use reference::{Pick, Reference};
pub use version::{Lineage, MlflowVersion, Version};
