//! Why a program did not even begin, read from what the shell or the loader of its node wrote.
//!
//! The REST API of a head says neither the processor nor the C library of its nodes, so what does not fit is
//! found where it shows: in the job's log.

use crate::{Binary, JobsError};

/// Exit codes of a shell that could not run a command.
const NOT_RUN: std::ops::RangeInclusive<i64> = 126..=127;

/// What kept a job's program from running on its node, if that is what `log` and the exit code say. `sent` is
/// the program that travelled; none if the one in the image was to be used.
pub fn unfit(log: &str, exit_code: Option<i64>, sent: Option<&Binary>) -> Option<JobsError> {
    let not_run = exit_code.is_some_and(|code| NOT_RUN.contains(&code));
    if log.contains("Exec format error") || not_run && log.contains("cannot execute binary file") {
        let program = sent.map_or_else(|| "another processor".to_owned(), Binary::processor);
        return Some(JobsError::Architecture { program });
    }
    if let Some(needs) = missing_glibc(log) {
        // The newest that is asked for, where the loader names the first that is missing.
        let needs = sent.and_then(Binary::glibc).unwrap_or(needs);
        return Some(JobsError::Glibc { needs });
    }
    if let Some(line) = log
        .lines()
        .find(|line| line.contains("error while loading shared libraries"))
    {
        return Some(JobsError::NoProgram {
            what: format!(
                "the node that ran the program lacks a library: {}; --binary image uses the program in the nodes' image",
                line.trim()
            ),
        });
    }
    if exit_code == Some(127) && log.contains("not found") {
        let what = match sent {
            Some(_) => {
                "the node that ran the program has no glibc, as images of Alpine have none; use the program in \
                 the nodes' image with --binary image"
            }
            None => {
                "there is no `lockstep` in the PATH of the nodes' image; without --binary image, the program \
                 travels with the job"
            }
        };
        return Some(JobsError::NoProgram {
            what: what.to_owned(),
        });
    }
    None
}

/// The version in "version `GLIBC_2.39' not found".
fn missing_glibc(log: &str) -> Option<String> {
    let lines = log.lines().filter(|line| line.contains("not found"));
    lines.into_iter().find_map(|line| {
        let (_, rest) = line.split_once("`GLIBC_")?;
        let (version, _) = rest.split_once('\'')?;
        Some(version.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_of_shells_and_loaders_are_understood() {
        for (log, code, wanted) in [
            (
                "/bin/sh: 1: ./lockstep: Exec format error\n",
                126,
                "another processor",
            ),
            (
                "bash: ./lockstep: cannot execute binary file: Exec format error",
                126,
                "another processor",
            ),
            (
                "./lockstep: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.39' not found (required by ./lockstep)",
                1,
                "glibc 2.39",
            ),
            (
                "/bin/sh: 1: lockstep: not found\n",
                127,
                "no `lockstep` in the PATH",
            ),
            (
                "./lockstep: error while loading shared libraries: libgcc_s.so.1: cannot open",
                127,
                "libgcc_s.so.1",
            ),
        ] {
            let error = unfit(log, Some(code), None).expect(log).to_string();
            assert!(error.contains(wanted), "{error}");
            assert!(error.contains("--binary"), "{error}");
        }
    }

    #[test]
    fn a_program_that_ran_is_not_suspected() {
        assert!(unfit("error: data.train: the file was not found", Some(1), None).is_none());
        assert!(unfit("", Some(0), None).is_none());
    }
}
