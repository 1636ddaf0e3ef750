//! What a job's command finds around it: its folder, its modules, its variables.

use crate::environments::Environment;
use crate::folder::Folder;
use crate::leftovers::MARK;
use crate::packages::{Packages, beside, package_of};
use crate::{JobRecord, JobUser, QueueError};
use lockstep_base::cores;
use lockstep_base::fs::restricted_folder;
use lockstep_base::zip::{Limits, UnpackError, unpack, unpack_file};
use lockstep_place::{Access, Place};
use serde_json::Value;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// Keys of a runtime environment that ask for something that is not done here.
const NOT_DONE: [&str; 7] = [
    "conda",
    "container",
    "image_uri",
    "java_jars",
    "py_executable",
    "worker_process_setup_hook",
    "nsight",
];

/// What addresses of archives outside begin with.
const OUTSIDE: [&str; 6] = ["https://", "http://", "s3://", "gs://", "az://", "abfss://"];
/// The largest archive that is brought from outside, in bytes.
const LARGEST: u64 = 512 << 20;

/// What a job's command is started with.
pub(crate) struct Surroundings {
    pub(crate) folder: PathBuf,
    pub(crate) variables: BTreeMap<OsString, OsString>,
    /// The Python environment that is to be there first.
    pub(crate) environment: Option<Environment>,
}

/// Makes a job's folder and finds its variables. Says what cannot be done.
pub(crate) fn set_up(
    folder: &Folder,
    asked: &JobRecord,
    attempt: u32,
    gpus: &[u32],
    user: Option<&JobUser>,
) -> Result<Surroundings, String> {
    if let Some(key) = NOT_DONE.iter().find(|key| is_asked(asked, key)) {
        return Err(format!(
            "runtime_env has `{key}`, which this server does not set up; let the command do it, or install it on the \
             machine"
        ));
    }
    let home = beside(folder.path()).ok_or("the job's folder lies nowhere")?;
    let packages = Packages::open(home.clone(), 0).map_err(words)?;
    let environment = Environment::of(asked, home.parent().unwrap_or(&home))?;
    make_work(folder, user)?;
    make_working(folder, asked, &packages, user)?;
    let modules = make_modules(folder, asked, &packages, user)?;
    let mut variables: BTreeMap<OsString, OsString> = std::env::vars_os().collect();
    // Of whoever started the server: the job is none of that cluster.
    for name in ["RAY_ADDRESS", "RAY_API_SERVER_ADDRESS", "RAY_JOB_HEADERS"] {
        variables.remove(std::ffi::OsStr::new(name));
    }
    if let Some(user) = user {
        variables.insert("HOME".into(), user.home.clone().into());
        for name in ["USER", "LOGNAME"] {
            variables.insert(name.into(), user.name.clone().into());
        }
    }
    let programs = home.with_file_name("bin");
    prepend(&mut variables, "PATH", &programs);
    if let Some(environment) = &environment {
        prepend(&mut variables, "PATH", &environment.folder().join("bin"));
        variables.insert("VIRTUAL_ENV".into(), environment.folder().into());
    }
    for (name, value) in own_variables(asked) {
        let value = expanded(&value, &variables);
        variables.insert(name.into(), value.into());
    }
    for module in modules.iter().rev() {
        prepend(&mut variables, "PYTHONPATH", module);
    }
    if asked.needs.gpus > 0.0 {
        let list: Vec<String> = gpus.iter().map(u32::to_string).collect();
        variables.insert("CUDA_VISIBLE_DEVICES".into(), list.join(",").into());
    }
    let told = [
        (MARK, asked.mark.clone()),
        ("LOCKSTEP_JOB", asked.id.clone()),
        ("LOCKSTEP_ATTEMPT", attempt.to_string()),
    ];
    for (name, value) in told {
        variables.insert(name.into(), value.into());
    }
    variables.insert("LOCKSTEP_JOB_FOLDER".into(), folder.work().into());
    // Jobs share the machine by the processors that they asked for.
    let cores = (asked.needs.cpus() as usize).max(1).to_string();
    let own = variables.entry(cores::VARIABLE.into());
    own.or_insert_with(|| cores.into());
    // What Python prints is read as it comes.
    let unbuffered = variables.entry("PYTHONUNBUFFERED".into());
    unbuffered.or_insert_with(|| "1".into());
    Ok(Surroundings {
        folder: folder.working(),
        variables,
        environment,
    })
}

fn is_asked(asked: &JobRecord, key: &str) -> bool {
    match asked.runtime_env.get(key) {
        None | Some(Value::Null) => false,
        Some(Value::Array(list)) => !list.is_empty(),
        Some(Value::Object(map)) => !map.is_empty(),
        Some(_) => true,
    }
}

/// Makes the folder that holds what the command finds. It is the server's own: a job can change what is in the folders
/// in it, not those folders.
fn make_work(folder: &Folder, user: Option<&JobUser>) -> Result<(), String> {
    let mode = if user.is_some() { 0o711 } else { 0o700 };
    restricted_folder(&folder.work(), mode).map_err(words)
}

/// Makes the folder that the command runs in. A further attempt goes on in the folder of the one before.
fn make_working(
    folder: &Folder,
    asked: &JobRecord,
    packages: &Packages,
    user: Option<&JobUser>,
) -> Result<(), String> {
    let working = folder.working();
    if working.exists() {
        return Ok(());
    }
    match asked.runtime_env.get("working_dir") {
        None | Some(Value::Null) => {
            fs::create_dir(&working).map_err(words)?;
            user.map_or(Ok(()), |user| user.give(&working))
                .map_err(words)
        }
        Some(Value::String(uri)) => unpack_whole(packages, asked, uri, &working, user),
        Some(other) => Err(format!("runtime_env.working_dir: {other} is no address")),
    }
}

/// Unpacks the modules that go before Python's own.
fn make_modules(
    folder: &Folder,
    asked: &JobRecord,
    packages: &Packages,
    user: Option<&JobUser>,
) -> Result<Vec<PathBuf>, String> {
    let list = match asked.runtime_env.get("py_modules") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Array(list)) => list,
        Some(other) => return Err(format!("runtime_env.py_modules: {other} is no list")),
    };
    let base = folder.work().join("modules");
    fs::create_dir_all(&base).map_err(words)?;
    let mut found = Vec::new();
    for (number, uri) in list.iter().enumerate() {
        let uri = uri.as_str();
        let uri = uri.ok_or_else(|| format!("runtime_env.py_modules[{number}] is no text"))?;
        let path = base.join(number.to_string());
        if !path.exists() {
            unpack_whole(packages, asked, uri, &path, user)?;
        }
        found.push(path);
    }
    Ok(found)
}

/// Unpacks a package so that `to` is there in full or not at all.
fn unpack_whole(
    packages: &Packages,
    asked: &JobRecord,
    uri: &str,
    to: &Path,
    user: Option<&JobUser>,
) -> Result<(), String> {
    let half = to.with_extension("half");
    if half.exists() {
        fs::remove_dir_all(&half).map_err(words)?;
    }
    let whole = match package_of(uri) {
        Some(name) => {
            let path = packages.path(asked.packages_of.as_deref(), name);
            let path = path.filter(|path| path.is_file());
            let path = path.ok_or_else(|| format!("Package {uri} does not exist"))?;
            unpack_file(&path, &half, &Limits::default()).map_err(words)?;
            half.clone()
        }
        None => {
            unpack(&archive_at(uri, user)?, &half, &Limits::default()).map_err(words)?;
            only_folder(&half).map_err(words)?
        }
    };
    user.map_or(Ok(()), |user| user.give(&whole))
        .map_err(words)?;
    fs::rename(&whole, to).map_err(words)?;
    match whole == half {
        true => Ok(()),
        false => fs::remove_dir(&half).map_err(words),
    }
}

/// The archive that lies at an address outside, as Ray takes it: a `.zip` in a bucket or on a web server.
///
/// Buckets are read with the server's credentials. A job that runs as another user is not to have what these open.
fn archive_at(uri: &str, user: Option<&JobUser>) -> Result<Vec<u8>, String> {
    let is_outside = OUTSIDE.iter().any(|scheme| uri.starts_with(scheme));
    if !is_outside || !uri.ends_with(".zip") {
        return Err(format!(
            "{uri} is not brought by this server; name a .zip that begins with {}, send the folder itself, or let the \
             command bring it",
            OUTSIDE.join(", ")
        ));
    }
    if user.is_some() && !uri.starts_with("http") {
        return Err(format!(
            "{uri} would be read with the server's credentials, and this server keeps jobs apart from itself (`--job-user`); \
             name an https:// address, send the folder itself, or let the command bring it"
        ));
    }
    let place = Place::parse(uri, &Access::default()).map_err(words)?;
    place.read_at_most(LARGEST).map_err(|error| {
        let mut said = words(&error);
        let mut cause = std::error::Error::source(&error);
        while let Some(deeper) = cause {
            said += &format!(": {deeper}");
            cause = deeper.source();
        }
        said
    })
}

/// The only folder of a folder that holds nothing else, as archives of repositories have it; else the folder itself.
fn only_folder(folder: &Path) -> std::io::Result<PathBuf> {
    let mut entries = fs::read_dir(folder)?;
    let first = entries.next().transpose()?;
    Ok(match (first, entries.next()) {
        (Some(only), None) if only.file_type()?.is_dir() => only.path(),
        _ => folder.to_owned(),
    })
}

/// The variables that were asked for.
fn own_variables(asked: &JobRecord) -> Vec<(String, String)> {
    let Some(Value::Object(map)) = asked.runtime_env.get("env_vars") else {
        return Vec::new();
    };
    let pairs = map.iter().filter_map(|(name, value)| {
        let usable = !name.is_empty() && !name.contains(['=', '\0']);
        let value = value.as_str().filter(|value| !value.contains('\0'))?;
        usable.then(|| (name.clone(), value.to_owned()))
    });
    pairs.collect()
}

/// A value in which `${NAME}` is what the variable has without it, as Ray has it.
fn expanded(value: &str, variables: &BTreeMap<OsString, OsString>) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("${") {
        out += before;
        let Some((name, after)) = after.split_once('}') else {
            return out + "${" + after;
        };
        let found = variables.get(std::ffi::OsStr::new(name));
        out += &found.map(|v| v.to_string_lossy()).unwrap_or_default();
        rest = after;
    }
    out + rest
}

fn prepend(variables: &mut BTreeMap<OsString, OsString>, name: &str, folder: &Path) {
    let mut value = folder.as_os_str().to_owned();
    if let Some(old) = variables.get(std::ffi::OsStr::new(name))
        && !old.is_empty()
    {
        value.push(":");
        value.push(old);
    }
    variables.insert(name.into(), value);
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

impl From<UnpackError> for QueueError {
    fn from(error: UnpackError) -> Self {
        QueueError::Wrong(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_servers_credentials_open_nothing_for_jobs_of_another_user() {
        let user = JobUser::find("nobody").unwrap();
        let error = archive_at("s3://bucket/folder.zip", Some(&user)).unwrap_err();
        assert!(error.contains("--job-user"), "{error}");
    }

    #[test]
    fn variables_may_name_what_is_there() {
        let variables = BTreeMap::from([(OsString::from("PATH"), OsString::from("/bin"))]);
        for (value, wanted) in [
            ("${PATH}:/x", "/bin:/x"),
            ("${NO}y", "y"),
            ("$PATH", "$PATH"),
            ("a${b", "a${b"),
        ] {
            assert_eq!(expanded(value, &variables), wanted, "{value}");
        }
    }
}
