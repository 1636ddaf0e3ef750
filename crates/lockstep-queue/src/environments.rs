//! Python environments that jobs ask for by their packages: `pip` and `uv` of a runtime environment.
//!
//! An environment is known by the hash of all that decides what is in it, so it is made once for all jobs of one user that
//! ask for the same. Packages run code of their own when they are installed, so it is made by a command of the job itself:
//! as the job's user, with its output in the job's log, and it can be stopped. Afterwards it belongs to the server, so that
//! no job changes it for the next one. It stays for as long as the queue remembers a job that names it, and a week after
//! its last use.

use crate::{JobRecord, JobUser};
use lockstep_base::fs::{FileLock, sha256};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

/// The folder of environments, beside that of the jobs.
const FOLDER: &str = "environments";
/// How long one may take to be made, if the job does not say.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long one stays after its last use, though no job that is remembered names it.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);
/// The longest line of requirements, and the most lines.
const LONGEST: usize = 2048;
const MOST: usize = 1000;

/// Makes an environment with pip: `$1` is its folder, `$2` the file of requirements, `$3` the version of pip, `$4` whether
/// the packages are checked; options follow.
const WITH_PIP: &str = r#"set -e
umask 022
environment=$1 requirements=$2 version=$3 check=$4; shift 4
python3 -m venv --system-site-packages "$environment"
python="$environment/bin/python"
if [ -n "$version" ]; then "$python" -m pip install --disable-pip-version-check --no-input "pip$version"; fi
"$python" -m pip install --disable-pip-version-check --no-input "$@" -r "$requirements"
if [ -n "$check" ]; then "$python" -m pip check --disable-pip-version-check; fi"#;
/// The same with uv, which is brought unless it is there.
const WITH_UV: &str = r#"set -e
umask 022
environment=$1 requirements=$2 version=$3 check=$4; shift 4
python3 -m venv --system-site-packages "$environment"
python="$environment/bin/python"
if [ -n "$version" ] || ! uv=$(command -v uv); then
    "$python" -m pip install --disable-pip-version-check --no-input "uv$version"
    uv="$environment/bin/uv"
fi
"$uv" pip install --python "$python" "$@" -r "$requirements"
if [ -n "$check" ]; then "$uv" pip check --python "$python"; fi"#;

/// What installs packages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Installer {
    Pip,
    Uv,
}

/// An environment that a job asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Environment {
    folder: PathBuf,
    installer: Installer,
    packages: Vec<String>,
    options: Vec<String>,
    version: String,
    check: bool,
    /// How long it may take to be made; for ever, if nothing is said.
    pub(crate) patience: Option<Duration>,
}

impl Environment {
    /// The environment that a job asks for, in the folder `home` of the queue. Says what is wrong with it.
    pub(crate) fn of(asked: &JobRecord, home: &Path) -> Result<Option<Environment>, String> {
        let given = |key: &str| asked.runtime_env.get(key).filter(|value| is_given(value));
        let (installer, key, value) = match (given("pip"), given("uv")) {
            (None, None) => return Ok(None),
            (Some(value), None) => (Installer::Pip, "pip", value),
            (None, Some(value)) => (Installer::Uv, "uv", value),
            (Some(_), Some(_)) => {
                return Err("runtime_env has `pip` and `uv`; only one of them can be".to_owned());
            }
        };
        let (packages, rest) = match value {
            Value::Object(keys) => (keys.get("packages").unwrap_or(&Value::Null), Some(keys)),
            value => (value, None),
        };
        let packages = lines(packages, &format!("runtime_env.{key}"))?;
        let of_rest = |name: &str| rest.and_then(|keys| keys.get(name));
        let options = match of_rest(&match installer {
            Installer::Pip => "pip_install_options".to_owned(),
            Installer::Uv => "uv_pip_install_options".to_owned(),
        }) {
            None | Some(Value::Null) => Vec::new(),
            Some(options) => lines(options, &format!("runtime_env.{key}: options"))?,
        };
        let version = of_rest(&format!("{key}_version")).and_then(Value::as_str);
        let version = version.unwrap_or_default().to_owned();
        let check = of_rest(&format!("{key}_check")).and_then(Value::as_bool);
        let mut environment = Environment {
            folder: PathBuf::new(),
            installer,
            packages,
            options,
            version,
            check: check.unwrap_or(false),
            patience: patience(asked),
        };
        environment.folder = home.join(FOLDER).join(environment.name(asked));
        Ok(Some(environment))
    }

    /// A name that says what is in it.
    fn name(&self, asked: &JobRecord) -> String {
        let python = program("python3").and_then(|path| fs::canonicalize(path).ok());
        // What lies in the job's folder may be another thing in each job.
        let local = |line: &String| line.starts_with(['.', '/', '-']) || line.contains("${");
        let folder = match self.packages.iter().any(local) {
            true => asked.runtime_env.get("working_dir").cloned(),
            false => None,
        };
        let all = json!({
            "user": asked.packages_of,
            "installer": format!("{:?}", self.installer),
            "packages": self.packages,
            "options": self.options,
            "version": self.version,
            "check": self.check,
            "python": python,
            "folder": folder,
        });
        let mut name = sha256(all.to_string().as_bytes());
        name.truncate(32);
        name
    }

    /// Its folder.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Whoever holds this makes it. Nothing if another does.
    pub(crate) fn lock(&self) -> Result<Option<FileLock>, String> {
        let above = self.folder.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(above).map_err(|error| error.to_string())?;
        // Jobs of another user find their way through it.
        let mode = fs::Permissions::from_mode(0o711);
        fs::set_permissions(above, mode).map_err(|error| error.to_string())?;
        FileLock::try_take(&self.beside("lock")).map_err(|error| error.to_string())
    }

    /// Whether it is there in full. If so, it is in use from now on.
    pub(crate) fn is_made(&self) -> bool {
        let done = fs::File::options().write(true).open(self.beside("done"));
        done.is_ok_and(|done| done.set_modified(SystemTime::now()).is_ok())
    }

    /// The command that makes it, in an empty folder that belongs to whoever runs it.
    pub(crate) fn begin(&self, user: Option<&JobUser>) -> Result<Command, String> {
        self.remove();
        let words = |error: std::io::Error| error.to_string();
        fs::create_dir(&self.folder).map_err(words)?;
        let open = fs::Permissions::from_mode(0o755);
        fs::set_permissions(&self.folder, open.clone()).map_err(words)?;
        user.map_or(Ok(()), |user| user.give(&self.folder))
            .map_err(words)?;
        let requirements = self.beside("txt");
        fs::write(&requirements, self.packages.join("\n") + "\n").map_err(words)?;
        let readable = fs::Permissions::from_mode(0o644);
        fs::set_permissions(&requirements, readable).map_err(words)?;
        let script = match self.installer {
            Installer::Pip => WITH_PIP,
            Installer::Uv => WITH_UV,
        };
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, "sh"]).arg(&self.folder);
        command.arg(requirements).arg(&self.version);
        command.arg(if self.check { "check" } else { "" });
        command.args(&self.options);
        Ok(command)
    }

    /// Says that it is there in full, and takes it from whoever made it.
    pub(crate) fn finish(&self, user: Option<&JobUser>) -> Result<(), String> {
        if user.is_some() {
            take_back(&self.folder).map_err(|error| error.to_string())?;
        }
        fs::write(self.beside("done"), "").map_err(|error| error.to_string())
    }

    /// Removes what is there of it.
    pub(crate) fn remove(&self) {
        let _ = fs::remove_file(self.beside("done"));
        let _ = fs::remove_dir_all(&self.folder);
    }

    /// What is told of it in a log.
    pub(crate) fn words(&self) -> String {
        let tool = match self.installer {
            Installer::Pip => "pip",
            Installer::Uv => "uv",
        };
        let packages = self.packages.join(", ");
        let shown: String = packages.chars().take(200).collect();
        format!("--- making an environment with {tool}: {shown} ---\n")
    }

    fn beside(&self, extension: &str) -> PathBuf {
        self.folder.with_extension(extension)
    }
}

/// Removes the environments in the folder `home` of the queue that none of these are and that were not used for long.
pub(crate) fn remove_unused(home: &Path, named: &BTreeSet<PathBuf>) {
    for entry in fs::read_dir(home.join(FOLDER))
        .into_iter()
        .flatten()
        .flatten()
    {
        let folder = entry.path().with_extension("");
        if named.contains(&folder) || is_fresh(&folder.with_extension("done")) {
            continue;
        }
        let lock = folder.with_extension("lock");
        // Somebody may be making it.
        let Ok(Some(held)) = FileLock::try_take(&lock) else {
            continue;
        };
        for extension in ["done", "txt"] {
            let _ = fs::remove_file(folder.with_extension(extension));
        }
        let _ = fs::remove_dir_all(&folder);
        drop(held);
        let _ = fs::remove_file(lock);
    }
}

/// Whether an environment that is there in full was used lately. A clock that was set back makes it fresh.
fn is_fresh(done: &Path) -> bool {
    let used = fs::metadata(done).and_then(|done| done.modified());
    used.is_ok_and(|used| used.elapsed().map_or(true, |age| age < KEPT))
}

/// Whether something was asked for.
fn is_given(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Array(list) => !list.is_empty(),
        Value::Object(keys) => !keys.is_empty(),
        _ => true,
    }
}

/// Lines of requirements, or options.
fn lines(value: &Value, key: &str) -> Result<Vec<String>, String> {
    let wrong = || format!("{key}: {value} is no list of texts, such as [\"numpy==2.1\"]");
    let list = value.as_array().ok_or_else(wrong)?;
    let lines = list.iter().map(|line| line.as_str().map(str::to_owned));
    let lines: Vec<String> = lines.collect::<Option<_>>().ok_or_else(wrong)?;
    let odd = |line: &String| line.len() > LONGEST || line.contains(['\0', '\n', '\r']);
    if let Some(line) = lines.iter().find(|line| odd(line)) {
        return Err(format!("{key}: {line:?} is not one line of text"));
    }
    match lines.len() > MOST {
        true => Err(format!(
            "{key}: {} lines, and {MOST} is the most",
            lines.len()
        )),
        false => Ok(lines),
    }
}

/// How long a job lets its environment take: Ray's `config.setup_timeout_seconds`, where -1 means for ever.
fn patience(asked: &JobRecord) -> Option<Duration> {
    let config = asked.runtime_env.get("config");
    match config.and_then(|config| config.get("setup_timeout_seconds")?.as_f64()) {
        Some(seconds) if seconds < 0.0 => None,
        Some(seconds) => Some(Duration::try_from_secs_f64(seconds).unwrap_or(PATIENCE)),
        None => Some(PATIENCE),
    }
}

/// The file of a program in the path.
fn program(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let mut files = env::split_paths(&path).map(|folder| folder.join(name));
    files.find(|file| file.is_file())
}

/// Gives a folder and all that is in it to the user of this process, who alone may change it afterwards. Links are given,
/// not followed. A folder is taken before what is in it, so that nobody puts a link in the place of what was looked at.
fn take_back(path: &Path) -> std::io::Result<()> {
    let (uid, gid) = (rustix::process::geteuid(), rustix::process::getegid());
    std::os::unix::fs::lchown(path, Some(uid.as_raw()), Some(gid.as_raw()))?;
    let found = fs::symlink_metadata(path)?;
    if !found.is_symlink() {
        let mode = found.permissions().mode() & 0o755;
        fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    }
    if found.is_dir() {
        for entry in fs::read_dir(path)? {
            take_back(&entry?.path())?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(runtime_env: Value) -> JobRecord {
        let record = json!({
            "id": "a", "number": 1, "user": "anna", "submitted_ms": 0, "entrypoint": "true",
            "runtime_env": runtime_env, "grace_s": 1.0, "log_limit": 1, "mark": "m",
        });
        serde_json::from_value(record).unwrap()
    }

    fn of(runtime_env: Value) -> Result<Option<Environment>, String> {
        Environment::of(&asked(runtime_env), Path::new("/home"))
    }

    #[test]
    fn environments_are_the_same_if_all_that_decides_is() {
        let name = |runtime_env: Value| of(runtime_env).unwrap().unwrap().folder;
        let plain = name(json!({"pip": ["a==1"]}));
        assert_eq!(
            plain,
            name(json!({"pip": {"packages": ["a==1"]}, "working_dir": "x"}))
        );
        for other in [
            json!({"pip": ["a==2"]}),
            json!({"uv": ["a==1"]}),
            json!({"pip": {"packages": ["a==1"], "pip_check": true}}),
            json!({"pip": {"packages": ["a==1"], "pip_version": "==25.0"}}),
            json!({"pip": {"packages": ["a==1"], "pip_install_options": ["--pre"]}}),
        ] {
            assert_ne!(plain, name(other.clone()), "{other}");
        }
        let local = |folder: &str| name(json!({"pip": ["./lib"], "working_dir": folder}));
        assert_ne!(local("x"), local("y"));
    }

    #[test]
    fn what_is_no_list_of_packages_is_refused_by_its_key() {
        assert_eq!(of(json!({"pip": []})), Ok(None));
        for (wrong, word) in [
            (json!({"pip": "requirements.txt"}), "runtime_env.pip"),
            (json!({"uv": [1]}), "runtime_env.uv"),
            (json!({"pip": ["a\nb"]}), "one line"),
            (json!({"pip": ["a"], "uv": ["b"]}), "only one"),
        ] {
            let error = of(wrong.clone()).unwrap_err();
            assert!(error.contains(word), "{wrong}: {error}");
        }
    }

    #[test]
    fn a_job_says_how_long_it_waits() {
        let patience = |config: Value| {
            let environment = of(json!({"pip": ["a"], "config": config}));
            environment.unwrap().unwrap().patience
        };
        assert_eq!(patience(json!({})), Some(PATIENCE));
        assert_eq!(patience(json!({"setup_timeout_seconds": -1})), None);
        let five = json!({"setup_timeout_seconds": 5});
        assert_eq!(patience(five), Some(Duration::from_secs(5)));
    }
}
