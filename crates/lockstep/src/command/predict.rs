//! `lockstep predict`: the class of every sample of a set, as a file.

use super::inference::Inference;
use crate::args::PredictArgs;
use crate::signals::INTERRUPTED;
use crate::view::{count, from_here};
use anyhow::bail;
use lockstep_store::AtomicFile;
use lockstep_train::Block;
use serde_json::{Map, Value, json};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

pub(crate) fn run(args: &PredictArgs) -> anyhow::Result<ExitCode> {
    check_format(&args.out)?;
    let inference = Inference::open(&args.model)?;
    let mut file = BufWriter::new(AtomicFile::create(&args.out)?);
    let whole = inference.go(args.probabilities, &mut |block| {
        write_lines(&mut file, &inference.classes, &block)
    })?;
    if !whole {
        eprintln!("interrupted; {} is as it was", args.out.display());
        return Ok(ExitCode::from(INTERRUPTED));
    }
    file.into_inner()
        .map_err(|error| error.into_error())?
        .commit()?;
    let rows = count(inference.set.len() as u64);
    super::print(format!("{rows} rows in {}\n", from_here(&args.out)))?;
    Ok(ExitCode::SUCCESS)
}

/// Found before anything is computed.
fn check_format(out: &Path) -> anyhow::Result<()> {
    match out.extension().and_then(|extension| extension.to_str()) {
        Some("jsonl" | "ndjson") => Ok(()),
        _ => bail!(
            "--out {}: the name must end in .jsonl, which says what is written",
            out.display()
        ),
    }
}

/// A JSON object a sample.
fn write_lines(out: &mut impl Write, classes: &[String], block: &Block) -> anyhow::Result<()> {
    let mut all = block.probabilities.chunks_exact(classes.len().max(1));
    for (row, said) in (block.first..).zip(&block.predictions) {
        let mut line = Map::new();
        line.insert("row".to_owned(), json!(row));
        line.insert("class".to_owned(), json!(classes[said.class as usize]));
        line.insert("probability".to_owned(), json!(said.probability));
        if let Some(all) = all.next() {
            let pairs = classes.iter().cloned().zip(all.iter().map(|p| json!(p)));
            line.insert("probabilities".to_owned(), Value::Object(pairs.collect()));
        }
        writeln!(out, "{}", Value::Object(line))?;
    }
    Ok(())
}
