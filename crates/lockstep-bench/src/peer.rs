//! Other systems that train the same job, to be held against.
//!
//! One readable program in Python ([`Peer::SCRIPT`]) trains it in PyTorch. What it needs is installed into an environment
//! of its own.

use crate::{BenchError, EpochPoint, Measured};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Peer {
    /// PyTorch in one process, with as many threads as there are workers.
    TorchThreads,
    /// PyTorch's DistributedDataParallel over gloo, one process a worker.
    TorchDdp,
    /// Ray Train's TorchTrainer.
    RayTrain,
}

impl Peer {
    /// All of them.
    pub const ALL: [Peer; 3] = [Peer::TorchThreads, Peer::TorchDdp, Peer::RayTrain];
    /// The program that trains.
    pub const SCRIPT: &str = include_str!("../peers/peer.py");

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Peer::TorchThreads => "torch-threads",
            Peer::TorchDdp => "torch-ddp",
            Peer::RayTrain => "ray-train",
        }
    }

    /// What is installed for it, and how many gigabytes that takes.
    pub fn packages(self) -> (&'static [&'static str], f64) {
        const TORCH: [&str; 2] = ["torch==2.15.0", "numpy==2.4.6"];
        const RAY: [&str; 3] = ["torch==2.15.0", "numpy==2.4.6", "ray[train]==2.60.0"];
        match self {
            Peer::TorchThreads | Peer::TorchDdp => (&TORCH, 6.0),
            Peer::RayTrain => (&RAY, 6.5),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Peer {
    type Err = BenchError;

    fn from_str(text: &str) -> Result<Self, BenchError> {
        let known = Peer::ALL.into_iter().find(|peer| peer.name() == text);
        known.ok_or_else(|| BenchError::Peer {
            found: text.to_owned(),
        })
    }
}

/// What the program answers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct PeerAnswer {
    training_s: f64,
    start_s: f64,
    samples_per_s: f64,
    epochs: Vec<EpochPoint>,
    parameters: u64,
}

impl PeerAnswer {
    /// The same as a measurement that took `total_s` seconds from its start to its end.
    pub fn measured(self, total_s: f64) -> Measured {
        let last = self.epochs.last();
        Measured {
            training_s: self.training_s,
            start_s: self.start_s,
            total_s,
            samples_per_s: self.samples_per_s,
            accuracy: last.and_then(|epoch| epoch.accuracy),
            loss: last.and_then(|epoch| epoch.loss),
            parameters: self.parameters,
            epochs: self.epochs,
            ..Measured::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_nn::LayerSpec;

    #[test]
    fn every_layer_is_a_module_of_torch_or_a_class_of_the_script() {
        for (_, layer) in LayerSpec::samples() {
            let module = layer.torch_module();
            let class = module.split('(').next().unwrap();
            let definition = format!("class {class}(nn.Module):");
            let is_known = class.starts_with("nn.") || Peer::SCRIPT.contains(&definition);
            assert!(is_known, "{module}");
        }
    }

    #[test]
    fn peers_are_known_by_their_names_and_others_are_refused_with_them() {
        for peer in Peer::ALL {
            assert_eq!(peer.name().parse::<Peer>().unwrap(), peer);
        }
        let error = "horovod".parse::<Peer>().unwrap_err().to_string();
        assert!(
            error.contains("horovod") && error.contains("torch-ddp"),
            "{error}"
        );
    }

    #[test]
    fn an_answer_is_a_measurement() {
        let answer = r#"{"training_s": 4.0, "start_s": 3.0, "samples_per_s": 10.0, "parameters": 7, "versions": {},
            "epochs": [{"epoch": 1, "seconds": 4.0, "accuracy": 0.5, "loss": 1.0}]}"#;
        let answer: PeerAnswer = serde_json::from_str(answer).unwrap();
        let measured = answer.measured(9.0);
        assert_eq!((measured.total_s, measured.accuracy), (9.0, Some(0.5)));
        assert_eq!(measured.weights_sha256, None);
    }
}
