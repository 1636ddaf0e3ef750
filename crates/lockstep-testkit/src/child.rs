//! A test that runs in a process of its own: the test program, started again for this one test.

use crate::succeed;
use std::path::Path;
use std::process::Command;

/// This test program, to be started again for one test alone, also one that is ignored. Called through
/// [`child!`](crate::child!). `module` is the test's `module_path!()`: the program's name, then the module's path in it.
///
/// # Panics
/// When the system does not say which program this is.
pub fn child(module: &str, test: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().expect("a test program has a file"));
    let path = match module.split_once("::") {
        Some((_program, path)) => format!("{path}::{test}"),
        None => test.to_owned(),
    };
    command.args([
        "--exact",
        &path,
        "--include-ignored",
        "--nocapture",
        "--quiet",
    ]);
    command
}

/// Writes a program that runs `script`, lines of a shell, and then becomes `child`.
///
/// # Panics
/// When it cannot be written.
pub fn write_child(path: &Path, script: &str, child: &Command) {
    let words = std::iter::once(child.get_program()).chain(child.get_args());
    let words: Vec<String> = words.map(|word| format!("'{}'", word.display())).collect();
    write_program(path, &format!("{script}exec {}\n", words.join(" ")));
}

/// Writes a script of a shell that can be executed at once.
///
/// It cannot be executed while any process has it open for writing, which a process that another test starts would
/// inherit from this one: so a shell writes it.
///
/// # Panics
/// When it cannot be written.
pub fn write_program(path: &Path, script: &str) {
    let write = r#"printf '#!/bin/sh\n%s' "$1" > "$2" && chmod +x "$2""#;
    succeed(
        Command::new("sh")
            .args(["-c", write, "sh", script])
            .arg(path),
    );
}

/// A [`Command`] that starts this test program again for one test of this module alone.
///
/// That test looks for an environment variable which says that it is the child, and does nothing without it. Its own
/// standard output has the test runner's lines too.
#[macro_export]
macro_rules! child {
    ($test:ident) => {{
        // The compiler says when there is no such test.
        let _: fn() = $test;
        $crate::child(module_path!(), stringify!($test))
    }};
}
