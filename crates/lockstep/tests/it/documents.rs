//! What the documents say of the source: files and folders that they name are there, and the table of crates
//! in docs/architecture.md is that of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every document of the repository: those at its root, and all under docs/.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for folder in ["", "docs", "docs/decisions"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "md") {
                found.push(path);
            }
        }
    }
    assert!(found.len() > 10, "{found:?}");
    found
}

/// What stands between every `open` and the next `close`, within a line.
fn between<'a>(text: &'a str, open: &'a str, close: char) -> impl Iterator<Item = &'a str> {
    text.lines().flat_map(move |line| {
        let parts = line.split(open).skip(1);
        parts.filter_map(move |part| part.split_once(close).map(|(inner, _)| inner))
    })
}

#[test]
fn every_file_that_a_document_links_to_is_there() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in between(&text, "](", ')') {
            let file = link.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let path = document.parent().unwrap().join(file);
            assert!(path.exists(), "{}: {link}", document.display());
        }
    }
}

/// What a heading is called in a link: as forges and mdBook do it.
fn place_of(heading: &str) -> String {
    let kept = heading
        .chars()
        .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
    kept.collect::<String>()
        .trim()
        .to_lowercase()
        .replace(' ', "-")
}

#[test]
fn every_heading_that_a_document_links_to_is_there() {
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        for link in between(&text, "](", ')') {
            let Some((file, place)) = link.split_once('#').filter(|_| !link.contains("://")) else {
                continue;
            };
            let path = match file {
                "" => document.clone(),
                _ => document.parent().unwrap().join(file),
            };
            let target = fs::read_to_string(path).unwrap();
            let headings = target.lines().filter(|line| line.starts_with('#'));
            let mut places = headings.map(|line| place_of(line.trim_start_matches('#').trim()));
            assert!(
                places.any(|known| known == place),
                "{}: {link}",
                document.display()
            );
        }
    }
}

#[test]
fn every_document_is_a_page_of_the_book() {
    let summary = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let mut pages = BTreeSet::new();
    for link in between(&summary, "](", ')') {
        let page = fs::canonicalize(root().join("docs").join(link)).unwrap();
        assert!(pages.insert(page), "docs/SUMMARY.md lists {link} twice");
    }
    for document in documents() {
        let path = fs::canonicalize(&document).unwrap();
        assert!(
            path.ends_with("docs/SUMMARY.md") || pages.contains(&path),
            "docs/SUMMARY.md does not list {}",
            path.display()
        );
    }
}

#[test]
fn every_path_of_the_source_that_a_document_names_is_there() {
    for document in documents() {
        // What changed once may be gone since.
        if document.ends_with("CHANGELOG.md") {
            continue;
        }
        let text = fs::read_to_string(&document).unwrap();
        for line in text.lines() {
            for quoted in line.split('`').skip(1).step_by(2) {
                let path = quoted.split(' ').next().unwrap();
                let in_crates = path.starts_with("lockstep") && path.contains("/src");
                let of_ours = path.starts_with("crates/") || path.starts_with("docs/") || in_crates;
                let pattern = path.contains(['*', '<', '…', '{']) || path.contains("NAME");
                if !of_ours || pattern {
                    continue;
                }
                let path = match in_crates {
                    true => root().join("crates").join(path),
                    false => root().join(path),
                };
                assert!(path.exists(), "{}: {quoted}", document.display());
            }
        }
    }
}

/// The crates of the workspace, each with those of them that it uses.
fn crates() -> BTreeMap<String, BTreeSet<String>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let entry = entry.unwrap();
        let Ok(manifest) = fs::read_to_string(entry.path().join("Cargo.toml")) else {
            continue;
        };
        let dependencies = manifest
            .lines()
            .skip_while(|line| *line != "[dependencies]");
        let dependencies = dependencies
            .skip(1)
            .take_while(|line| !line.starts_with('['));
        let ours = dependencies.filter_map(|line| line.strip_prefix("lockstep-"));
        let names = ours.filter_map(|line| line.split(['.', ' ']).next());
        let name = entry.file_name().into_string().unwrap();
        found.insert(name, names.map(str::to_owned).collect());
    }
    found
}

#[test]
fn the_table_of_crates_is_complete_and_its_arrows_point_down() {
    let text = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let mut left = crates();
    let mut above = BTreeSet::new();
    for line in text.lines().filter(|line| line.starts_with("| `lockstep")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        let uses = cells[3].split(", ").filter(|name| !name.is_empty());
        let uses: BTreeSet<String> = uses.map(str::to_owned).collect();
        let found = left.remove(name);
        assert_eq!(Some(&uses), found.as_ref(), "{name} uses other crates");
        above.insert(name.trim_start_matches("lockstep-").to_owned());
        let back: Vec<_> = uses.intersection(&above).collect();
        assert!(
            back.is_empty(),
            "{name} uses what stands above it: {back:?}"
        );
    }
    assert!(left.is_empty(), "not in the table: {:?}", left.keys());
}

/// The crates that may read the job file. Whatever else works on a job is told what it means, by resolve.
const JOB_READERS: [&str; 7] = [
    "lockstep",
    "lockstep-bench",
    "lockstep-cluster",
    "lockstep-engine",
    "lockstep-launch",
    "lockstep-resolve",
    "lockstep-track",
];

#[test]
fn nothing_below_resolve_reads_the_job_file() {
    let crates = crates();
    let readers = crates.iter().filter(|(_, uses)| uses.contains("job"));
    let readers: Vec<&str> = readers.map(|(name, _)| name.as_str()).collect();
    assert_eq!(readers, JOB_READERS);
}
