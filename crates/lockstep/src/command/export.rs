//! `lockstep export`: the model of a run in a format that other programs compute with.

use super::inference::open_trained;
use crate::args::ExportArgs;
use crate::view::{bytes, from_here};
use anyhow::bail;
use lockstep_embed::EncoderModel;
use lockstep_onnx::{OPSET, OnnxModel, Port};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    check(&args.onnx)?;
    let model = match (&args.run, &args.encoder) {
        (None, Some(encoder)) => lockstep_onnx::of_encoder(&EncoderModel::open(encoder)?)?,
        (Some(run), _) => of_run(run, args)?,
        (None, None) => bail!("name a run, or an encoder with --encoder"),
    };
    let content = model.to_bytes();
    lockstep_base::fs::write_atomic(&args.onnx, &content)?;
    super::print(said(&model, &args.onnx, content.len() as u64))?;
    Ok(ExitCode::SUCCESS)
}

/// Finds out, before anything is read, that the file has no place to go.
fn check(file: &Path) -> anyhow::Result<()> {
    if file.is_dir() {
        bail!(
            "--onnx {}: this is a folder; name a file in it, such as model.onnx",
            file.display()
        );
    }
    match file
        .parent()
        .filter(|folder| !folder.as_os_str().is_empty())
    {
        Some(folder) if !folder.is_dir() => bail!(
            "--onnx {}: there is no folder {}",
            file.display(),
            folder.display()
        ),
        _ => Ok(()),
    }
}

/// The model of a run, with its encoder if that is asked for.
fn of_run(run: &Path, args: &ExportArgs) -> anyhow::Result<OnnxModel> {
    let run = open_trained(run, &args.set)?;
    if !args.with_encoder {
        return Ok(lockstep_onnx::of_run(&run)?);
    }
    Ok(lockstep_onnx::of_run_with_encoder(&run, &args.set)?)
}

/// What was written, and what to do with it.
fn said(model: &OnnxModel, file: &Path, size: u64) -> String {
    let list = |ports: &[Port]| {
        let ports: Vec<String> = ports.iter().map(Port::to_string).collect();
        ports.join(", ")
    };
    let (file, size) = (from_here(file), bytes(size));
    let (inputs, outputs) = (list(&model.inputs), list(&model.outputs));
    format!(
        "{file}: {size}, ONNX with opset {OPSET}\n\
         takes {inputs}; samples as they are, bytes as 0 to 255\n\
         gives {outputs}\n\
         next: onnxruntime.InferenceSession({file:?}).run(None, {{\"input\": samples}})\n"
    )
}
