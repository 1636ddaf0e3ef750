//! A real browser: Chromium, driven by a script in Node.

use crate::{cache, once, succeed};
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PLAYWRIGHT: &str = "playwright-core@1.65.0";
const AXE: &str = "axe-core@4.14.0";
/// What Chromium may be called.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Runs a script of the folder `browser` with a browser, and tells it what is there on its standard input. What it said.
///
/// # Panics
/// When there is no browser and none can be brought, or when the script fails, with all that it wrote.
pub fn browse(script: &str, told: &Value) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    let mut command = Command::new("node");
    command
        .arg(folder.join(script))
        .env("BROWSER_MODULES", modules())
        .env("BROWSER_PROGRAM", program())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("Node: install nodejs");
    let mut stdin = child.stdin.take().expect("a standard input");
    stdin
        .write_all(told.to_string().as_bytes())
        .expect("a script that listens");
    drop(stdin);
    let output = child.wait_with_output().expect("a script that ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let said = text(&output.stdout);
    assert!(
        output.status.success(),
        "{script}: {said}{}",
        text(&output.stderr)
    );
    said
}

/// The folder of the packages that scripts use.
fn modules() -> PathBuf {
    let folder = cache().join("browser");
    once(&folder, &format!("{PLAYWRIGHT} {AXE}"), |folder| {
        let install = [
            "install",
            "--silent",
            "--no-fund",
            "--no-audit",
            "--ignore-scripts",
            "--prefix",
        ];
        succeed(
            Command::new("npm")
                .args(install)
                .arg(folder)
                .args([PLAYWRIGHT, AXE]),
        );
    });
    folder
}

/// Chromium: the one that is installed, or Debian's, which is installed now if this is root.
fn program() -> PathBuf {
    if let Some(found) = installed() {
        return found;
    }
    let lock = cache().join("chromium");
    once(&lock, "apt", |_| {
        let apt = |words: &[&str]| {
            let mut command = Command::new("apt-get");
            let command = command.args(words).env("DEBIAN_FRONTEND", "noninteractive");
            command.status().is_ok_and(|status| status.success())
        };
        let install = ["install", "--yes", "--no-install-recommends", "chromium"];
        if installed().is_none() && !apt(&install) {
            assert!(
                apt(&["update"]) && apt(&install),
                "there is no Chromium; as root: apt-get install chromium"
            );
        }
    });
    installed().expect("Chromium; as root: apt-get install chromium")
}

fn installed() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    let files = PROGRAMS
        .iter()
        .flat_map(|name| folders.iter().map(move |folder| folder.join(name)));
    files.into_iter().find(|file| file.is_file())
}
