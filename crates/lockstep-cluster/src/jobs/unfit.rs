//! Why a program did not even begin: read from what its node said of itself, and from what the node's shell or loader
//! wrote.
//!
//! The REST API of a head says neither the processor nor the C library of its nodes. So the command of a job says both
//! before it becomes the program, and what does not fit is found in the job's log.

use crate::jobs::Needs;
use crate::jobs::elf::glibc;

/// Exit codes of a shell that could not run a command.
const NOT_RUN: std::ops::RangeInclusive<i64> = 126..=127;
/// How the line begins in which a node speaks of itself.
const NODE: &str = "lockstep: this node is ";

/// What a node said of itself.
#[derive(Debug, PartialEq)]
struct Node {
    /// Its processor, as `uname` names it.
    machine: String,
    /// Its version of glibc, if it has one.
    glibc: Option<(u32, u32)>,
}

/// A command for a shell that says what its node is, and then becomes `command`.
pub fn introduced(command: &str) -> String {
    format!("echo \"{NODE}$(uname -m) $(getconf GNU_LIBC_VERSION 2>/dev/null)\"; exec {command}")
}

/// What kept a job's program from running on its node, if that is what `log` and the exit code say. `sent` is
/// what the program needs that travelled; none if the one in the image was to be used.
pub fn unfit(log: &str, exit_code: Option<i64>, sent: Option<&Needs>) -> Option<String> {
    let not_run = exit_code.is_some_and(|code| NOT_RUN.contains(&code));
    let node = Node::find(log);
    let another = |node: &Node| sent.is_some_and(|sent| sent.machine() != node.machine);
    let refused = log.contains("Exec format error");
    if refused || not_run && node.as_ref().is_some_and(another) {
        let unknown = || "another processor".to_owned();
        return Some(format!(
            "the program that was sent is for {}, and the node that was to run it has {}; send one for it with \
             --binary PATH, or use the one in the nodes' image with --binary image",
            sent.map_or_else(unknown, Needs::processor),
            node.map_or_else(unknown, |node| node.machine)
        ));
    }
    let has = node.and_then(|node| node.glibc);
    let older = sent.is_some_and(|sent| has.is_some() && sent.glibc > has);
    let missing = missing_glibc(log);
    if older || missing.is_some() {
        // The newest that is asked for, where the loader names the first that is missing.
        let needs = sent.and_then(|sent| sent.glibc).or(missing)?;
        let text = |(major, minor): (u32, u32)| format!("{major}.{minor}");
        return Some(format!(
            "the program that was sent needs glibc {}, and the node that was to run it has {}; send one that was built \
             on an older system with --binary PATH, or use the one in the nodes' image with --binary image",
            text(needs),
            has.map_or_else(|| "an older one".to_owned(), text)
        ));
    }
    if let Some(line) = log
        .lines()
        .find(|line| line.contains("error while loading shared libraries"))
    {
        return Some(format!(
            "the node that ran the program lacks a library: {}; --binary image uses the program in the nodes' image",
            line.trim()
        ));
    }
    (exit_code == Some(127) && log.contains("not found")).then(|| {
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
        what.to_owned()
    })
}

impl Node {
    /// The first line in which a node speaks of itself: `x86_64 glibc 2.36`.
    fn find(log: &str) -> Option<Node> {
        let said = log.lines().find_map(|line| line.strip_prefix(NODE))?;
        let mut words = said.split_whitespace();
        let machine = words.next()?.to_owned();
        let version = words
            .next()
            .filter(|word| *word == "glibc")
            .and(words.next());
        let glibc = version.and_then(|version| glibc(&format!("GLIBC_{version}")));
        Some(Node { machine, glibc })
    }
}

/// The version in "version `GLIBC_2.39' not found".
fn missing_glibc(log: &str) -> Option<(u32, u32)> {
    let mut lines = log.lines().filter(|line| line.contains("not found"));
    lines.find_map(|line| {
        let (_, name) = line.split_once('`')?;
        let (name, _) = name.split_once('\'')?;
        glibc(name)
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
    fn what_a_node_said_of_itself_is_told() {
        let own = std::env::current_exe().unwrap();
        let own = crate::jobs::Binary::read(&own).unwrap().needs();
        let (major, minor) = own.glibc.unwrap();
        let said = |node: &str, code| {
            let log = format!("lockstep: this node is {node}\nwords of no known language\n");
            unfit(&log, Some(code), Some(&own)).map(|error| error.to_string())
        };
        let error = said("sparc64 glibc 2.99", 126).unwrap();
        assert!(error.contains("was to run it has sparc64"), "{error}");
        let machine = own.machine();
        let error = said(&format!("{machine} glibc 2.5"), 1).unwrap();
        let wanted =
            format!("needs glibc {major}.{minor}, and the node that was to run it has 2.5;");
        assert!(error.contains(&wanted), "{error}");
        assert_eq!(said(&format!("{machine} glibc 2.99"), 1), None);
        // Neither a node without glibc nor what emulates another processor says enough.
        assert_eq!(said(&machine, 1), None);
        assert_eq!(said("sparc64 glibc 2.99", 1), None);
    }

    #[test]
    fn a_node_introduces_itself_before_the_command() {
        let command = introduced("echo 'it ran'");
        let output = std::process::Command::new("sh")
            .args(["-c", &command])
            .output();
        let said = String::from_utf8(output.unwrap().stdout).unwrap();
        let node = Node::find(&said).unwrap();
        assert_eq!(node.machine, std::env::consts::ARCH);
        assert!(node.glibc.is_some(), "{said}");
        assert!(said.ends_with("\nit ran\n"), "{said}");
    }

    #[test]
    fn a_program_that_ran_is_not_suspected() {
        assert!(unfit("error: data.train: the file was not found", Some(1), None).is_none());
        assert!(unfit("", Some(0), None).is_none());
    }
}
