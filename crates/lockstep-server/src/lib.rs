//! The server of a team's machine: jobs, runs and models over HTTP, and the pages that show them.
//!
//! One process answers three kinds of clients on one port: Ray's `ray job` and Lockstep's own `submit`, MLflow's
//! Python client, and browsers. It keeps nothing in memory that is not also in files: a job is a folder of the queue, a
//! run is a folder of the store. So it can be killed and started again at any time.
//!
//! Every request passes the same way: who asks ([`Caller`]), whether that one may, then the part that answers.

mod bounded_json;
mod caller;
mod endpoint;
mod error;
mod file_stream;
mod guard;
mod jobs;
mod listen;
mod log_watch;
mod memory;
mod metrics;
mod mlflow;
mod model_server;
mod openapi;
mod pages;
mod predictions;
mod refusal;
mod routes;
mod server;
mod settings;
mod view;

pub use caller::{Caller, Role};
pub use error::ServerError;
pub use guard::{GuardSettings, Token, Tokens};
pub use model_server::{ModelServer, serve_model};
pub use refusal::Refusal;
pub use server::{Ready, Server, serve};
pub use settings::{FolderFiles, Settings};
