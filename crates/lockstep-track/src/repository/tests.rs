use super::*;
use std::os::unix::fs::PermissionsExt;

fn git(folder: &Path, words: &[&str]) -> String {
    let done = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(["-c", "user.name=a", "-c", "user.email=a@b"])
        .args(["-c", "protocol.file.allow=always"])
        .args(words)
        .output()
        .unwrap();
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).unwrap().trim().to_owned()
}

/// A repository with one commit of `job.toml`.
fn repository() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    git(path, &["init", "--quiet", "--initial-branch=trunk"]);
    fs::write(path.join("job.toml"), "a\n").unwrap();
    git(path, &["add", "job.toml"]);
    git(path, &["commit", "--quiet", "-m", "x"]);
    folder
}

/// A program that leaves a trace when it is run, and the trace.
fn trap(folder: &Path) -> (String, std::path::PathBuf) {
    let (program, trace) = (folder.join("trap"), folder.join("it-ran"));
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", trace.display())).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    (program.to_str().unwrap().to_owned(), trace)
}

/// Gives a file another time, so that its content must be compared.
fn touch(path: &Path) {
    let file = fs::File::options().append(true).open(path).unwrap();
    let past = std::time::SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    file.set_modified(past).unwrap();
}

fn text(diff: &[u8]) -> &str {
    std::str::from_utf8(diff).unwrap()
}

#[test]
fn the_commit_and_what_is_not_committed_are_found() {
    let none = tempfile::tempdir().unwrap();
    assert_eq!(find(none.path()), None, "no repository");
    git(none.path(), &["init", "--quiet"]);
    assert_eq!(find(none.path()), None, "no commit");
    let folder = repository();
    let path = folder.path();
    let url = "https://me:hunter2@host/x.git";
    git(path, &["remote", "add", "origin", url]);
    let (found, diff) = find(path).unwrap();
    assert_eq!(found.commit, git(path, &["rev-parse", "HEAD"]));
    assert_eq!(found.branch.as_deref(), Some("trunk"));
    assert_eq!(found.remote.as_deref(), Some("https://host/x.git"));
    assert!(!found.uncommitted && diff.is_empty());
    fs::write(path.join("job.toml"), "b\n").unwrap();
    fs::create_dir(path.join("inner")).unwrap();
    let (found, diff) = find(&path.join("inner")).unwrap();
    assert!(found.uncommitted);
    assert!(text(&diff).contains("-a\n+b\n"));
}

#[test]
fn packed_references_other_work_trees_and_no_branch_are_understood() {
    let folder = repository();
    let path = folder.path();
    let commit = git(path, &["rev-parse", "HEAD"]);
    git(path, &["pack-refs", "--all"]);
    git(path, &["update-index", "--split-index"]);
    assert_eq!(find(path).unwrap().0.branch.as_deref(), Some("trunk"));
    let beside = tempfile::tempdir().unwrap();
    let tree = beside.path().join("tree");
    let words = ["worktree", "add", "--quiet", "-b", "side/line"];
    git(path, &[&words[..], &[tree.to_str().unwrap()]].concat());
    fs::write(tree.join("job.toml"), "c\n").unwrap();
    let (found, diff) = find(&tree).unwrap();
    assert_eq!(found.branch.as_deref(), Some("side/line"));
    assert!(found.commit == commit && text(&diff).contains("+c\n"));
    git(path, &["checkout", "--quiet", "--detach"]);
    let (found, diff) = find(path).unwrap();
    assert_eq!((found.commit, found.branch), (commit, None));
    assert!(diff.is_empty());
}

#[test]
fn hashes_of_64_letters_are_understood() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    git(path, &["init", "--quiet", "--object-format=sha256"]);
    fs::write(path.join("a"), "a\n").unwrap();
    git(path, &["add", "a"]);
    git(path, &["commit", "--quiet", "-m", "x"]);
    assert_eq!(find(path).unwrap().0.commit.len(), 64);
    assert!(find(path).unwrap().1.is_empty());
}

#[test]
fn no_filter_of_a_repository_is_run() {
    for key in ["filter.x.clean", "filter.x.process", "filter.x.smudge"] {
        for attributes in [".gitattributes", ".git/info/attributes"] {
            let folder = repository();
            let path = folder.path();
            let outside = tempfile::tempdir().unwrap();
            let (program, trace) = trap(outside.path());
            fs::write(path.join(attributes), "* filter=x diff=x\n").unwrap();
            git(path, &["config", key, &program]);
            git(path, &["config", "filter.x.required", "true"]);
            touch(&path.join("job.toml"));
            let (found, diff) = find(path).unwrap();
            assert!(!trace.exists(), "{key} was run");
            assert!(!found.uncommitted && diff.is_empty(), "{}", text(&diff));
            fs::write(path.join("job.toml"), "b\n").unwrap();
            let (found, diff) = find(path).unwrap();
            assert!(!trace.exists(), "{key} was run");
            assert!(found.uncommitted && text(&diff).contains("+b\n"));
        }
    }
}

#[test]
fn no_program_that_a_configuration_names_is_run() {
    let folder = repository();
    let path = folder.path();
    let outside = tempfile::tempdir().unwrap();
    let (program, trace) = trap(outside.path());
    fs::write(path.join(".gitattributes"), "* diff=x\n").unwrap();
    for key in [
        "core.fsmonitor",
        "core.pager",
        "pager.diff",
        "diff.external",
        "diff.x.command",
        "diff.x.textconv",
        "core.sshCommand",
        "core.askPass",
        "credential.helper",
        "interactive.diffFilter",
        "alias.diff",
        "core.alternateRefsCommand",
    ] {
        git(path, &["config", "--add", key, &program]);
    }
    let hooks = path.join(".git/hooks");
    fs::create_dir_all(&hooks).unwrap();
    for hook in ["post-index-change", "fsmonitor-watchman"] {
        fs::copy(&program, hooks.join(hook)).unwrap();
    }
    fs::write(path.join("job.toml"), "b\n").unwrap();
    let included = outside.path().join("included");
    fs::write(&included, format!("[core]\n\tfsmonitor = {program}\n")).unwrap();
    git(
        path,
        &["config", "include.path", included.to_str().unwrap()],
    );
    // Setting this up may have run some of it.
    let _ = fs::remove_file(&trace);
    let (found, diff) = find(path).unwrap();
    assert!(!trace.exists());
    assert!(found.uncommitted && text(&diff).contains("-a\n+b\n"));
}

/// What is missing in a partial clone is fetched by git's own commands, with whatever its configuration names.
#[test]
fn nothing_that_is_missing_is_fetched() {
    for url in ["ext::TRAP", "ssh://host/x"] {
        let origin = repository();
        fs::write(origin.path().join("other"), "x\n").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("clone");
        let outside = tempfile::tempdir().unwrap();
        let (program, trace) = trap(outside.path());
        let from = format!("file://{}", origin.path().display());
        git(origin.path(), &["config", "uploadpack.allowFilter", "true"]);
        let words = ["clone", "--quiet", "--filter=blob:none", "--no-checkout"];
        let words = [&words[..], &[&from, path.to_str().unwrap()]].concat();
        git(folder.path(), &words);
        git(&path, &["read-tree", "HEAD"]);
        fs::write(path.join("job.toml"), "b\n").unwrap();
        let url = url.replace("TRAP", &program);
        for (key, value) in [
            ("remote.origin.url", &*url),
            ("core.sshCommand", &*program),
            ("protocol.ext.allow", "always"),
        ] {
            git(&path, &["config", key, value]);
        }
        let (found, diff) = find(&path).unwrap();
        assert!(!trace.exists(), "{url} was fetched");
        assert_eq!(found.branch.as_deref(), Some("trunk"));
        // There is nothing to compare the file with, and that is said.
        assert!(found.uncommitted);
        assert!(text(&diff).contains("is unknown"), "{}", text(&diff));
    }
}

#[test]
fn a_module_is_compared_by_its_commit_and_none_of_its_filters_is_run() {
    let folder = repository();
    let path = folder.path();
    let module = repository();
    let from = module.path().to_str().unwrap().to_owned();
    git(path, &["submodule", "--quiet", "add", &from, "module"]);
    git(path, &["commit", "--quiet", "-m", "module"]);
    let inner = path.join("module");
    let outside = tempfile::tempdir().unwrap();
    let (program, trace) = trap(outside.path());
    git(&inner, &["config", "filter.x.clean", &program]);
    fs::write(inner.join(".gitattributes"), "* filter=x\n").unwrap();
    touch(&inner.join("job.toml"));
    let (found, diff) = find(path).unwrap();
    assert!(!trace.exists());
    assert!(!found.uncommitted, "{}", text(&diff));
    git(&inner, &["commit", "--quiet", "--allow-empty", "-m", "y"]);
    let _ = fs::remove_file(&trace);
    let (_, diff) = find(path).unwrap();
    assert!(!trace.exists());
    assert!(text(&diff).contains("+Subproject commit"));
}

#[test]
fn what_would_have_to_be_waited_for_is_no_repository() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    fs::create_dir_all(path.join(".git/objects")).unwrap();
    let pipe = path.join(".git/HEAD");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    assert_eq!(find(path), None);
    fs::remove_file(&pipe).unwrap();
    for wrong in ["ref: refs/../../secret", "ref: refs/heads/x", "hunter2", ""] {
        fs::write(&pipe, wrong).unwrap();
        assert_eq!(find(path), None, "{wrong}");
    }
    fs::write(&pipe, "ref: refs/heads/x").unwrap();
    fs::create_dir_all(path.join(".git/refs/heads")).unwrap();
    fs::write(path.join(".git/refs/heads/x"), "ref: refs/heads/x").unwrap();
    assert_eq!(find(path), None);
}

#[test]
fn no_secret_is_in_what_is_not_committed() {
    let folder = repository();
    let path = folder.path();
    let tracked = [
        ".env",
        "deploy/prod.env",
        "server.key",
        "ID_RSA",
        "my-Secrets.yml",
    ];
    fs::create_dir(path.join("deploy")).unwrap();
    for name in tracked {
        fs::write(path.join(name), "before\n").unwrap();
    }
    git(path, &["add", "."]);
    git(path, &["commit", "--quiet", "-m", "y"]);
    for name in tracked {
        fs::write(path.join(name), "KEY=hunter2\n").unwrap();
    }
    fs::write(path.join(".env.staged"), "A=hunter2\n").unwrap();
    git(path, &["add", ".env.staged"]);
    let job = "train = \"https://h/a.csv?X-Amz-Signature=hunter2\"\n\
        webhook = \"https://hooks.example.com/services/hunter2\"\n\
        url = \"https://hooks.slack.com/services/hunter2\"\n\
        api_key = \"hunter2\"\nlr = 0.5\n";
    fs::write(path.join("job.toml"), job).unwrap();
    let (found, diff) = find(path).unwrap();
    let diff = text(&diff);
    assert!(found.uncommitted && diff.contains("+lr = 0.5"), "{diff}");
    assert!(!diff.contains("hunter2"), "{diff}");
    for name in tracked.iter().chain(&[".env.staged"]) {
        let words = format!("Left out, since it may hold secrets: {name}\n");
        assert!(diff.contains(&words), "{diff}");
    }
}

#[test]
fn a_change_of_secrets_alone_is_a_change_too() {
    let folder = repository();
    let path = folder.path();
    fs::write(path.join(".env"), "A=hunter2\n").unwrap();
    git(path, &["add", ".env"]);
    let (found, diff) = find(path).unwrap();
    assert!(found.uncommitted);
    assert_eq!(text(&diff), "Left out, since it may hold secrets: .env\n");
}
