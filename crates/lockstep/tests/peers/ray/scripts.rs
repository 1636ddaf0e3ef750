//! A user's script on the nodes of a cluster.

use super::{assert_nothing_is_left, cluster, disturbed, run};
use crate::common::{EIGHT_STEPS, Place, send};
use rustix::process::Signal;

#[test]
fn a_script_runs_on_the_nodes_and_goes_on_after_a_kill() {
    let mut cluster = cluster();
    let place = Place::new();
    std::fs::write(place.path("train.py"), EIGHT_STEPS).unwrap();
    let python = cluster.python.clone();
    place.write_job(&format!(
        "name = \"script\"\n[train]\ncommand = [{python:?}, \"train.py\"]\nworkers = 2\n\
         [resources]\nplace = \"strict-spread\"\n[gang]\nlease_s = 3\n"
    ));
    let ran = run(&cluster, &place, &["run", "job.toml", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(ran.result()["reported"]["step"], 7);

    let (result, _) = disturbed(&cluster, &place, &[], |pid| send(pid, Signal::KILL));
    assert_eq!(result["restarts"], 1, "{result}");
    assert_eq!(result["reported"]["step"], 7);
    assert_nothing_is_left(&mut cluster, &place);
}
