//! A real MLflow server, and a Python with MLflow's own client.

use crate::kept::Kept;
use crate::{Server, python};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// The newest that can be installed. It brings 900 MB, most of it pandas, scikit-learn, SciPy and pyarrow.
const MLFLOW: [&str; 2] = ["mlflow==3.17.2", "onnxruntime"];

/// A Python that has MLflow, and onnxruntime for the models.
pub fn python_with_mlflow() -> PathBuf {
    python("mlflow", &MLFLOW)
}

/// The environment with MLflow.
pub(crate) fn environment() -> Kept {
    crate::python::environment("mlflow", &MLFLOW)
}

/// A Python with TensorBoard's own reader; without TensorFlow.
pub fn python_with_tensorboard() -> PathBuf {
    python("tensorboard", &["tensorboard", "setuptools"])
}

impl Server {
    /// An MLflow server, whose data base and files are in `folder`. On the port 0 it takes one that is free. Dropping it
    /// kills it at once; another one on the same folder and port has all that was committed.
    ///
    /// # Panics
    /// When it cannot be brought or does not start.
    pub fn mlflow(folder: &Path, port: &str) -> Server {
        Self::mlflow_with(folder, port, &[])
    }

    /// The same, with these variables (`NAME=VALUE`) in its environment, by which it takes its options.
    ///
    /// # Panics
    /// When it cannot be brought or does not start.
    pub fn mlflow_with(folder: &Path, port: &str, variables: &[String]) -> Server {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/mlflow_server.py");
        let mut command = Command::new(python_with_mlflow());
        command.arg(script).arg(folder).arg(port).args(variables);
        let mut server = Server::introduced(command, "MLflow");
        server.patience = Duration::from_secs(15);
        server.quiet()
    }
}
