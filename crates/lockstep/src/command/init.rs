//! `lockstep init`: a commented job file to start from.

mod kind;

use crate::args::{InitArgs, is_quiet};
use crate::view::shell;
use anyhow::{Context, bail};
pub(crate) use kind::JobKind;
use std::fs::{self, OpenOptions};
use std::io::{self, BufRead, ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::process::ExitCode;

/// The job's name where the file's has nothing to offer.
const NAMELESS: &str = "job";

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<ExitCode> {
    let path = &args.path;
    let kind = match args.kind {
        Some(kind) => kind,
        None if io::stdin().is_terminal() && io::stdout().is_terminal() => {
            ask(&mut io::stdin().lock(), &mut io::stdout())?
        }
        None => JobKind::Images,
    };
    write(path, &kind.text(&name_for(path)), args.force)?;
    let mut said = format!("wrote {}", path.display());
    if let Some((name, text)) = kind.beside() {
        let beside = path.with_file_name(name);
        if beside.exists() {
            said += &format!("; {} is there already and stays", beside.display());
        } else {
            write(&beside, text, false)?;
            said += &format!(" and {}", beside.display());
        }
    }
    let shown = shell(&path.display().to_string());
    let first = match kind.needs() {
        Some(needs) => format!("; it needs {needs}"),
        None => String::new(),
    };
    if !is_quiet() {
        super::print(format!(
            "{said}{first}\ntry it with: lockstep run {shown}\n"
        ))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks which kind of job it shall be.
fn ask(input: &mut impl BufRead, output: &mut impl Write) -> anyhow::Result<JobKind> {
    writeln!(output, "What shall it learn from?")?;
    for (number, kind) in (1..).zip(JobKind::ALL) {
        writeln!(output, "  {number}  {:<12} {}", kind.word(), kind.words())?;
    }
    loop {
        write!(output, "number or name: ")?;
        output.flush()?;
        let mut line = String::new();
        if input.read_line(&mut line)? == 0 {
            bail!("nothing was chosen; name one with --kind");
        }
        let answer = line.trim();
        let number = answer
            .parse()
            .ok()
            .and_then(|number: usize| number.checked_sub(1));
        let numbered = number.and_then(|number| JobKind::ALL.get(number).copied());
        let named = || JobKind::ALL.into_iter().find(|kind| kind.word() == answer);
        if let Some(kind) = numbered.or_else(named) {
            return Ok(kind);
        }
        writeln!(output, "{answer:?} is none of them")?;
    }
}

/// Writes a file that is not there, or any with `force`.
fn write(path: &Path, text: &str, force: bool) -> anyhow::Result<()> {
    if force {
        return Ok(lockstep_base::fs::write_atomic(path, text.as_bytes())?);
    }
    match OpenOptions::new().write(true).create_new(true).open(path) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            bail!("{} exists; --force replaces it", path.display());
        }
        file => file
            .and_then(|mut file| {
                let written = file.write_all(text.as_bytes());
                // Half a job file is worse than none.
                written.inspect_err(|_| drop(fs::remove_file(path)))
            })
            .with_context(|| format!("cannot write {}", path.display())),
    }
}

/// The file's name without its ending, as far as it can name a job.
fn name_for(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let name: String = stem.chars().filter(|c| allowed(*c)).take(100).collect();
    match name.trim_start_matches(|c: char| !c.is_ascii_alphanumeric()) {
        "" => NAMELESS.to_owned(),
        name => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_job::Job;

    #[test]
    fn a_job_is_named_after_its_file_as_far_as_that_goes() {
        let name = |path: &str| name_for(Path::new(path));
        assert_eq!(name("a/digits.toml"), "digits");
        assert_eq!(name("my job.toml"), "myjob");
        assert_eq!(name("-x.toml"), "x");
        assert_eq!(name("ä.toml"), NAMELESS);
    }

    #[test]
    fn every_kind_is_a_job_that_is_right() {
        for kind in JobKind::ALL {
            let text = kind.text("mine");
            let job = Job::parse(Path::new("/jobs/mine.toml"), &text, &[], None);
            let job = job.unwrap_or_else(|error| panic!("{}: {error}", kind.word()));
            assert_eq!(&job.name, "mine");
            assert!(!text.contains("NAME\""), "{text}");
        }
    }

    #[test]
    fn who_is_asked_answers_with_a_number_or_a_name_until_it_is_one() {
        let answer = |text: &str| {
            let mut said = Vec::new();
            let kind = ask(&mut text.as_bytes(), &mut said).map(JobKind::word);
            (kind.ok(), String::from_utf8(said).unwrap())
        };
        let (kind, said) = answer("0\nphoto\n2\n");
        assert_eq!(kind, Some("photos"));
        assert_eq!(said.matches("is none of them").count(), 2, "{said}");
        assert_eq!(answer("trees\n").0, Some("trees"));
        assert_eq!(answer("").0, None);
    }
}
