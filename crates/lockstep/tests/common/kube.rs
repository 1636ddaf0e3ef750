//! Jobs on Kubernetes, and commands against a cluster.

use super::{JOB, Place, Ran};
use std::path::Path;

/// [`JOB`] with its data by absolute paths, and its runs on a volume that is a folder of this machine.
pub(crate) fn job(place: &Place, more: &str) -> String {
    let at = |name: &str| place.path(name).display().to_string();
    let mut text = JOB.to_owned();
    for name in ["train-images", "train-labels", "test-images", "test-labels"] {
        text = text.replace(&format!("\"{name}\""), &format!("\"{}\"", at(name)));
    }
    text = text.replace("\"runs\"", &format!("\"{}\"", at("runs")));
    let runs = at("runs");
    format!(
        "{text}\n[kube]\nimage = \"registry.example.com/lockstep:1\"\n\
         volumes = {{ \"{runs}\" = \"host:{runs}\" }}\n{more}\n"
    )
}

/// Runs a command against the cluster of a kubeconfig.
pub(crate) fn kube(place: &Place, config: impl AsRef<Path>, args: &[&str]) -> Ran {
    let mut command = place.command(args);
    command.env("KUBECONFIG", config.as_ref());
    let output = command.output().unwrap();
    Ran::from(output)
}
