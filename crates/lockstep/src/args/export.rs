//! The arguments of `lockstep export`.

use super::key_value;
use clap::{Args, ValueHint};
use lockstep_base::known_encoders::EncoderRef;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  lockstep export runs/NAME --onnx model.onnx
  lockstep export NAME --onnx model.onnx                   its name in the folder `runs`
  lockstep export NAME --with-encoder --onnx model.onnx    pictures in, not the vectors of [embed]
  lockstep export --encoder clip/ --onnx clip.onnx         the encoder alone: pictures in, vectors out
  lockstep export NAME --floats --onnx model.onnx          one input of float32, for programs that take no others

The file holds the weights and all that is done to samples: it takes pictures as bytes, and each column of a table as an
input under its own name.")]
pub(crate) struct ExportArgs {
    /// The run: its folder or URL, its name in the folder `runs` or a part of it that no other has, its job's name or
    /// `latest` for the newest
    #[arg(value_name = "RUN", required_unless_present = "encoder", value_hint = ValueHint::DirPath)]
    pub(crate) run: Option<PathBuf>,
    /// The file to write; one that is there is replaced
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) onnx: PathBuf,
    /// Put the encoder of the run's job before its model, in the same file
    #[arg(long, requires = "run")]
    pub(crate) with_encoder: bool,
    /// Write this encoder instead of a run's model: a name, a folder or a file, as embed.model
    #[arg(long, value_name = "MODEL", conflicts_with = "run", value_hint = ValueHint::AnyPath)]
    pub(crate) encoder: Option<EncoderRef>,
    /// Take one tensor of float32 instead: pictures as 0 to 255, rows of a table as decoded numbers
    #[arg(long)]
    pub(crate) floats: bool,
    /// Set a key of the run's job to a TOML value, such as embed.model; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = key_value)]
    pub(crate) set: Vec<String>,
}
