//! Real heads of Ray clusters, with their Jobs API.

use crate::{Server, python_with_ray};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

impl Server {
    /// The head of a Ray cluster of one node with 4 processors, with these variables in its environment.
    /// Its temporary folder is `folder`, whose name must be short: paths of sockets have at most 107 bytes.
    ///
    /// # Panics
    /// When Ray cannot be brought or does not start.
    pub fn ray_head(folder: &Path, variables: &[(&str, &str)]) -> Server {
        Server::ray_head_of(1, folder, variables)
    }

    /// The same of a cluster of so many nodes, all on this machine.
    ///
    /// # Panics
    /// When Ray cannot be brought or does not start.
    pub fn ray_head_of(nodes: usize, folder: &Path, variables: &[(&str, &str)]) -> Server {
        let python = python_with_ray();
        let programs = python.parent().expect("a folder of programs");
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/servers/ray_head.py");
        let mut command = Command::new(&python);
        command.arg(script).arg(nodes.to_string());
        command.arg(programs).arg(folder);
        for (name, value) in variables {
            command.arg(format!("{name}={value}"));
        }
        let mut server = Server::introduced(command, "Ray");
        // It has many processes to end.
        server.patience = Duration::from_secs(15);
        server.quiet()
    }
}
