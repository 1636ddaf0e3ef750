//! A real browser: Chromium, driven by a script in Node.

use crate::kept::Kept;
use crate::succeed;
use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const PLAYWRIGHT: &str = "playwright-core@1.65.0";
const AXE: &str = "axe-core@4.14.0";
/// What Chromium may be called.
const PROGRAMS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// Runs a script of the folder `browser` with a browser, and tells it what is there on its standard input. What it said.
/// [`Peer::Browser`](crate::Peer::Browser) says whether there is one.
///
/// # Panics
/// When there is no browser, or when the script fails, with all that it wrote.
pub fn browse(script: &str, told: &Value) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("browser");
    let mut command = Command::new("node");
    command
        .arg(folder.join(script))
        .env("BROWSER_MODULES", modules())
        .env("BROWSER_PROGRAM", program().expect("Chromium"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("Node");
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
    Kept::new("browser", &format!("{PLAYWRIGHT} {AXE}")).folder(|folder| {
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
    })
}

/// Chromium, if it is installed.
pub(crate) fn program() -> Option<PathBuf> {
    PROGRAMS.iter().find_map(|name| installed(name))
}

/// Whether Node and its installer of packages are installed.
pub(crate) fn has_node() -> bool {
    ["node", "npm"].iter().all(|name| installed(name).is_some())
}

fn installed(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let mut files = std::env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}
