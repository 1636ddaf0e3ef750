//! `lockstep export`: the model of a run in a format that other programs compute with.

use super::inference::open_trained;
use crate::args::{ExportArgs, is_quiet};
use crate::view::{bytes, from_here};
use anyhow::bail;
use lockstep_embed::EncoderModel;
use lockstep_onnx::{InputForm, OPSET, OnnxModel, Port};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &ExportArgs) -> anyhow::Result<ExitCode> {
    check(&args.onnx)?;
    let form = match args.floats {
        true => InputForm::Floats,
        false => InputForm::Stored,
    };
    let model = match (&args.run, &args.encoder) {
        (None, Some(encoder)) => {
            let encoder = EncoderModel::open(encoder, &mut |said| super::tell(said))?;
            lockstep_onnx::of_encoder(&encoder, form)?
        }
        (Some(run), _) => of_run(run, args, form)?,
        (None, None) => bail!("name a run, or an encoder with --encoder"),
    };
    let content = model.to_bytes();
    lockstep_base::fs::write_atomic(&args.onnx, &content)?;
    if !is_quiet() {
        super::print(said(&model, &args.onnx, content.len() as u64))?;
    }
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
fn of_run(run: &Path, args: &ExportArgs, form: InputForm) -> anyhow::Result<OnnxModel> {
    let run = open_trained(run, &args.set)?;
    if !args.with_encoder {
        return Ok(lockstep_onnx::of_run(&run, form)?);
    }
    Ok(lockstep_onnx::of_run_with_encoder(
        &run,
        &args.set,
        form,
        &mut |said| super::tell(said),
    )?)
}

/// What was written, and what to do with it.
fn said(model: &OnnxModel, file: &Path, size: u64) -> String {
    /// Inputs that are listed; a table may have very many columns.
    const LISTED: usize = 12;
    let list = |ports: &[Port]| {
        let listed = ports.iter().take(LISTED).map(Port::to_string);
        let mut listed = listed.collect::<Vec<_>>().join(", ");
        if ports.len() > LISTED {
            listed += &format!(" and {} more", ports.len() - LISTED);
        }
        listed
    };
    let (file, size) = (from_here(file), bytes(size));
    let (inputs, outputs) = (list(&model.inputs), list(&model.outputs));
    let fed = match &model.inputs[..] {
        [one] => format!("{{{:?}: samples}}", one.name),
        _ => "{name: column, …}".to_owned(),
    };
    format!(
        "{file}: {size}, ONNX with opset {OPSET}\n\
         takes {inputs}; samples as they are\n\
         gives {outputs}\n\
         next: onnxruntime.InferenceSession({file:?}).run(None, {fed})\n"
    )
}
