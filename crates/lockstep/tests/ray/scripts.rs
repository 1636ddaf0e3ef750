//! A user's script on the nodes of a cluster.

use super::{assert_nothing_is_left, cluster, disturbed, run};
use crate::common::{Place, send};
use rustix::process::Signal;

/// Each rank reports where it is; rank 0 keeps a checkpoint of a few steps.
const SCRIPT: &str = r#"
import json, os, tempfile, time
from lockstep import train

context = train.get_context()
checkpoint = train.get_checkpoint()
begin = 0
if checkpoint:
    with checkpoint.as_directory() as folder:
        begin = json.load(open(os.path.join(folder, "rank-0.json"))) + 1
        assert os.path.exists(os.path.join(folder, "rank-1.json"))
for step in range(begin, 8):
    time.sleep(0.2)
    with tempfile.TemporaryDirectory() as folder:
        json.dump(step, open(os.path.join(folder, f"rank-{context.get_world_rank()}.json"), "w"))
        train.report({"step": step}, checkpoint=train.Checkpoint.from_directory(folder))
everyone = train.collective.broadcast_from_rank_zero({"steps": step})
assert everyone == {"steps": 7}
"#;

#[test]
fn a_script_runs_on_the_nodes_and_goes_on_after_a_kill() {
    let mut cluster = cluster();
    let place = Place::new();
    std::fs::write(place.path("train.py"), SCRIPT).unwrap();
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
