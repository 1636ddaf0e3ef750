//! Programs and libraries of others: Python with its packages, XGBoost.

use super::check::{Check, State};
use lockstep_track::ask_program;
use lockstep_trees::xgboost::Xgboost;
use lockstep_trees::{TreesError, find_xgboost};
use std::process::Command;
use std::time::{Duration, Instant};

/// How long Python may take to say what it has.
const PATIENCE: Duration = Duration::from_secs(20);
/// What is asked of Python: its version, and those of packages that jobs use. Nothing is imported, which could take long.
const QUESTION: &str = "\
import importlib.metadata as metadata, platform
found = [platform.python_version()]
for name in ('lockstep', 'numpy', 'torch', 'ray', 'xgboost', 'mlflow'):
    try:
        found.append(name + ' ' + metadata.version(name))
    except metadata.PackageNotFoundError:
        pass
print(', '.join(found))
";

/// `needed` is the name of what the job's learner cannot do without.
pub(super) fn checks(needed: Option<&str>) -> Vec<Check> {
    vec![python(needed), xgboost(needed)]
}

/// How bad it is that something is not there.
fn state_without(name: &str, needed: Option<&str>) -> State {
    match needed == Some(name) {
        true => State::Problem,
        false => State::Absent,
    }
}

fn python(needed: Option<&str>) -> Check {
    let named = std::env::var("LOCKSTEP_PYTHON").ok();
    let program = named.as_deref().unwrap_or("python3");
    let mut command = Command::new(program);
    command.args(["-c", QUESTION]);
    let said = ask_program(&mut command, Instant::now() + PATIENCE);
    let why = match said {
        Ok(Some(said)) => return Check::ok("python", format!("{program} {said}")),
        Ok(None) => format!("{program} does not answer as Python does"),
        Err(error) => format!("{program}: {error}"),
    };
    let state = state_without("python", needed);
    let help = "install Python 3.9 or newer, or set LOCKSTEP_PYTHON to one; scripts and Ray need it, networks and trees do not";
    Check::wrong(state, "python", why, help)
}

fn xgboost(needed: Option<&str>) -> Check {
    let look = || {
        let found = find_xgboost()?;
        let library = Xgboost::load(&found.path)?;
        let more = if library.has_cuda()? {
            ", for GPUs too"
        } else {
            ""
        };
        let (version, path, way) = (library.version(), found.path.display(), found.way);
        Ok::<_, TreesError>(format!("{version} from {path}, {way}{more}"))
    };
    match look().map_err(|error| error.to_string()) {
        Ok(found) => Check::ok("xgboost", found),
        Err(error) => {
            let state = state_without("xgboost", needed);
            let help = "jobs with model.kind = \"xgboost\" need it: lockstep data get xgboost";
            Check::wrong(state, "xgboost", error, help)
        }
    }
}
