//! Which files of a folder travel: all but those that a `.gitignore` or a `.rayignore` leaves out.
//!
//! Both have the same rules, those of git. The files count for their own folder and for all below it; what stands later
//! or deeper counts before what stands earlier or higher; what lies in a folder that is left out cannot be brought back.

use crate::jobs::JobsError;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The files that have rules, the later counting before the earlier.
const NAMES: [&str; 2] = [".gitignore", ".rayignore"];
/// What never travels: git's own files.
const NEVER: &str = ".git";
/// Folders within folders that are followed; a link to a folder above would never end.
const DEEPEST: usize = 32;

/// All files of `folder` that are not left out, each by its path from there with `/` between its parts.
///
/// # Errors
/// When a folder cannot be read, or a name is not valid UTF-8.
pub fn files_to_send(folder: &Path) -> Result<Vec<(String, PathBuf)>, JobsError> {
    let mut found = Vec::new();
    let mut rules = Vec::new();
    collect(folder, &mut Vec::new(), &mut rules, &mut found)?;
    found.sort();
    Ok(found)
}

fn collect(
    folder: &Path,
    parts: &mut Vec<String>,
    rules: &mut Vec<(usize, Rule)>,
    found: &mut Vec<(String, PathBuf)>,
) -> Result<(), JobsError> {
    let cannot = |source: io::Error| JobsError::Pack {
        path: folder.to_owned(),
        source,
    };
    if parts.len() > DEEPEST {
        let why = format!("it is more than {DEEPEST} folders deep");
        return Err(cannot(io::Error::other(why)));
    }
    let before = rules.len();
    for name in NAMES {
        // A file that is not there has no rules; one that is not text has none that could be meant.
        let text = fs::read_to_string(folder.join(name)).unwrap_or_default();
        let read = text.lines().filter_map(Rule::parse);
        rules.extend(read.map(|rule| (parts.len(), rule)));
    }
    for entry in fs::read_dir(folder).map_err(cannot)? {
        let entry = entry.map_err(cannot)?;
        let path = entry.path();
        let name = entry.file_name().into_string().map_err(|name| {
            cannot(io::Error::other(format!(
                "the name {name:?} is not valid UTF-8"
            )))
        })?;
        let (is_file, is_folder) = (path.is_file(), path.is_dir());
        // A link that leads nowhere, a FIFO: nothing that could be read there.
        if name == NEVER || !(is_file || is_folder) {
            continue;
        }
        parts.push(name);
        if !is_left_out(rules, parts, is_folder) {
            match is_folder {
                true => collect(&path, parts, rules, found)?,
                false => found.push((parts.join("/"), path)),
            }
        }
        parts.pop();
    }
    rules.truncate(before);
    Ok(())
}

fn is_left_out(rules: &[(usize, Rule)], parts: &[String], folder: bool) -> bool {
    let mut rules = rules.iter().rev();
    let last = rules.find(|(depth, rule)| rule.matches(&parts[*depth..], folder));
    last.is_some_and(|(_, rule)| !rule.brings_back)
}

/// One line of such a file.
#[derive(Debug, PartialEq)]
struct Rule {
    /// The parts of its pattern.
    parts: Vec<String>,
    /// Whether it means files and folders of that name anywhere below.
    anywhere: bool,
    folders_alone: bool,
    brings_back: bool,
}

impl Rule {
    fn parse(line: &str) -> Option<Rule> {
        let mut line = line.strip_suffix('\r').unwrap_or(line);
        while let Some(shorter) = line.strip_suffix(' ')
            && !shorter.ends_with('\\')
        {
            line = shorter;
        }
        if line.starts_with('#') {
            return None;
        }
        let (brings_back, line) = match line.strip_prefix('!') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let (folders_alone, line) = match line.strip_suffix('/') {
            Some(rest) => (true, rest),
            None => (false, line),
        };
        let anywhere = !line.contains('/');
        let line = line.strip_prefix('/').unwrap_or(line);
        if line.is_empty() {
            return None;
        }
        Some(Rule {
            parts: line.split('/').map(str::to_owned).collect(),
            anywhere,
            folders_alone,
            brings_back,
        })
    }

    fn matches(&self, path: &[String], folder: bool) -> bool {
        if self.folders_alone && !folder {
            return false;
        }
        match (self.anywhere, path.last()) {
            (true, Some(name)) => part_matches(&self.parts[0], name),
            (true, None) => false,
            (false, _) => path_matches(&self.parts, path),
        }
    }
}

fn path_matches(pattern: &[String], path: &[String]) -> bool {
    let Some((first, rest)) = pattern.split_first() else {
        return path.is_empty();
    };
    if first == "**" {
        // At the end it means all that is inside, not the folder itself.
        return match rest.is_empty() {
            true => !path.is_empty(),
            false => (0..=path.len()).any(|skipped| path_matches(rest, &path[skipped..])),
        };
    }
    match path.split_first() {
        Some((name, below)) => part_matches(first, name) && path_matches(rest, below),
        None => false,
    }
}

fn part_matches(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    glob(&pattern, &name)
}

/// Whether a name is as a pattern says. Where a `*` could end is found by going back to the last one alone.
fn glob(pattern: &[char], name: &[char]) -> bool {
    let (mut p, mut n) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while n < name.len() {
        if pattern.get(p) == Some(&'*') {
            star = Some((p, n));
            p += 1;
            continue;
        }
        match one(&pattern[p.min(pattern.len())..], name[n]) {
            Some(length) => {
                p += length;
                n += 1;
            }
            None => {
                let Some((at, taken)) = star else {
                    return false;
                };
                star = Some((at, taken + 1));
                (p, n) = (at + 1, taken + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// How many characters of a pattern mean this one character; none if they mean another.
fn one(pattern: &[char], c: char) -> Option<usize> {
    match pattern.first()? {
        '?' => Some(1),
        '\\' => (pattern.get(1) == Some(&c)).then_some(2),
        '[' => {
            let (inside, length) = class(pattern, c)?;
            inside.then_some(length)
        }
        plain => (*plain == c).then_some(1),
    }
}

/// Whether `[...]` at a pattern's beginning has a character, and how long it is; none if it never ends.
fn class(pattern: &[char], c: char) -> Option<(bool, usize)> {
    let not = matches!(pattern.get(1), Some('!' | '^'));
    let first = if not { 2 } else { 1 };
    let mut at = first;
    let mut inside = false;
    loop {
        let mut low = *pattern.get(at)?;
        if low == ']' && at > first {
            return Some((inside != not, at + 1));
        }
        if low == '\\' {
            at += 1;
            low = *pattern.get(at)?;
        }
        at += 1;
        let is_range =
            pattern.get(at) == Some(&'-') && pattern.get(at + 1).is_some_and(|c| *c != ']');
        let mut high = low;
        if is_range {
            at += 1;
            high = *pattern.get(at)?;
            if high == '\\' {
                at += 1;
                high = *pattern.get(at)?;
            }
            at += 1;
        }
        inside |= (low..=high).contains(&c);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::process::Command;

    fn sent(folder: &Path) -> BTreeSet<String> {
        let files = files_to_send(folder).unwrap().into_iter();
        files.map(|(name, _)| name).collect()
    }

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (name, text) in files {
            let path = folder.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    #[test]
    fn the_same_files_are_left_out_as_git_leaves_out() {
        let folder = tempfile::tempdir().unwrap();
        let rules = "*.log\n!keep.log\n# a comment\n\n/top\nbuild/\ndoc/*.txt\n**/deep/x\na/**/z\nall/**\n[ab]?.c\n\
                     [!x-z]q\n\\#odd\ntrailing   \nsp\\ \nx[\nm*n*o\n[]]b\nfile/\n";
        write(
            folder.path(),
            &[
                (".gitignore", rules),
                ("sub/.gitignore", "!b.log\n/top\n*.bin\n"),
                ("sub/under/.gitignore", "!a.bin\n"),
            ],
        );
        for name in [
            "a.log",
            "keep.log",
            "top",
            "sub/top",
            "sub/under/top",
            "other/top",
            "build/x",
            "sub/build/y",
            "build2",
            "doc/a.txt",
            "doc/b/a.txt",
            "deep/x",
            "q/deep/x",
            "deep/y",
            "a/z",
            "a/b/z",
            "a/b/c/z",
            "all/of/it",
            "all2",
            "a1.c",
            "c1.c",
            "ab.c",
            "aq",
            "yq",
            "#odd",
            "trailing",
            "sp ",
            "x[",
            "mnno",
            "mno",
            "mn",
            "]b",
            "file",
            "sub/b.log",
            "sub/c.log",
            "sub/a.bin",
            "sub/under/a.bin",
            "sub/under/b.bin",
            "é.log",
            "é.txt",
        ] {
            write(folder.path(), &[(name, "")]);
        }
        let git = |args: &[&str]| {
            let output = Command::new("git")
                .args(args)
                .current_dir(folder.path())
                .output();
            let output = output.unwrap();
            assert!(output.status.success(), "{args:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        git(&["init", "--quiet"]);
        let listed = git(&["ls-files", "-z", "--others", "--exclude-standard"]);
        let wanted: BTreeSet<String> = listed.split_terminator('\0').map(str::to_owned).collect();
        let ours = sent(folder.path());
        let (more, less): (Vec<_>, Vec<_>) = (
            ours.difference(&wanted).collect(),
            wanted.difference(&ours).collect(),
        );
        assert!(
            more.is_empty() && less.is_empty(),
            "sent {more:?}, left out {less:?}"
        );
        assert!(wanted.len() > 15 && !wanted.contains("a.log"));
    }

    #[test]
    fn rays_file_counts_beside_gits() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                (".gitignore", "*.bin\n"),
                (".rayignore", "data/\n!model.bin\n"),
                ("a.bin", ""),
                ("model.bin", ""),
                ("data/x", ""),
                ("main.py", ""),
                (".git/config", ""),
            ],
        );
        let wanted = [".gitignore", ".rayignore", "main.py", "model.bin"];
        assert_eq!(sent(folder.path()), wanted.map(str::to_owned).into());
    }

    #[test]
    fn a_folder_within_itself_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
        let error = files_to_send(folder.path()).unwrap_err().to_string();
        assert!(error.contains("folders deep"), "{error}");
    }
}
