"""A Ray cluster of several nodes on this machine, for tests.

The first line of standard input is a JSON object: {"folder": ..., "nodes": [{"CPU": 2, "labels": {...}, "env": {...}}, ...]}.
With "autoscaler": "works", Ray's autoscaler runs beside the head, and may bring up to two nodes of the kind "small".
With "hangs", it tries to bring them for ever.
What follows are orders, each answered with one JSON line:
  {"do": "add", "node": {...}}   adds a node
  {"do": "remove"}               removes the node that was added last
  {"do": "drain", "label": "1"}  announces that the node with the label node=1 will be taken away in 30 s
  {"do": "kill_head"}            kills the head, after which nothing can be asked
  {"do": "left"}                 placement groups and actors that are alive
The end of standard input ends all processes of the cluster, and no other process.
"""

import json
import os
import signal
import subprocess
import sys
import time

from ports import reserve

HEAD = "ray.head.default"  # As this provider of nodes calls the head.

ANSWERS = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def answer(**values):
    print(json.dumps(values), file=ANSWERS, flush=True)


def end_all(folder):
    """Ends every process that has this cluster's mark in its environment."""
    mark = f"LOCKSTEP_TEST_CLUSTER={folder}".encode()
    for _ in range(20):
        left = 0
        for name in os.listdir("/proc"):
            if not name.isdigit() or int(name) == os.getpid():
                continue
            try:
                with open(f"/proc/{name}/environ", "rb") as file:
                    if mark not in file.read().split(b"\0"):
                        continue
                os.kill(int(name), signal.SIGKILL)
                left += 1
            except OSError:
                pass
        if left == 0:
            return
        time.sleep(0.05)


def autoscaler(folder, works):
    """What a head is started with to have an autoscaler whose nodes are processes of this machine."""
    import ray

    port = reserve()
    lists = ["initialization_commands", "setup_commands", "head_setup_commands", "worker_setup_commands"]
    lists += ["head_start_ray_commands", "worker_start_ray_commands", "cluster_synced_files"]
    lists += ["rsync_exclude", "rsync_filter"]
    # Where nobody answers, its nodes never come.
    provider = {"gcs_address": f"{ray.util.get_node_ip_address()}:{port if works else 1}"}
    settings = {
        **{name: [] for name in lists},
        "cluster_name": "test",
        "max_workers": 2,
        "provider": {"type": "fake_multinode", **provider},
        "head_node_type": HEAD,
        "idle_timeout_minutes": 1,
        "upscaling_speed": 1.0,
        "auth": {},
        "docker": {},
        "file_mounts": {},
        "file_mounts_sync_continuously": False,
        "available_node_types": {
            HEAD: {"resources": {"CPU": 2}, "node_config": {}, "max_workers": 0},
            "small": {"resources": {"CPU": 2}, "node_config": {}, "min_workers": 0, "max_workers": 2},
        },
    }
    os.environ.update({"AUTOSCALER_UPDATE_INTERVAL_S": "1", "RAY_FAKE_CLUSTER": "1"})
    path = os.path.join(folder, "autoscaler.json")
    with open(path, "w") as file:
        json.dump(settings, file)
    return {"autoscaling_config": path, "gcs_server_port": port}


def add(cluster, node, **settings):
    """Adds a node whose processes have these variables."""
    before = dict(os.environ)
    os.environ.update(node.get("env", {}))
    try:
        return cluster.add_node(
            num_cpus=node["CPU"],
            memory=2_000_000_000,
            object_store_memory=80_000_000,
            labels=node.get("labels"),
            **settings,
        )
    finally:
        os.environ.clear()
        os.environ.update(before)


def drain(address, node):
    """Announces that a node will be taken away, as a cloud does that wants its machine back."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "drain-node", "--address", address, "--node-id", node]
    command += ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "the machine is needed"]
    subprocess.run([*command, "--deadline-remaining-seconds", "30"], check=True)


def main():
    asked = json.loads(sys.stdin.readline())
    os.environ["LOCKSTEP_TEST_CLUSTER"] = asked["folder"]
    os.environ["RAY_TMPDIR"] = asked["folder"]
    # A node that is gone refuses its connection, and is noticed within two seconds instead of fifteen. One that is slow to
    # answer on a busy machine is not gone.
    os.environ["RAY_health_check_initial_delay_ms"] = "0"
    os.environ["RAY_health_check_period_ms"] = "500"
    os.environ["RAY_health_check_timeout_ms"] = "5000"
    os.environ["RAY_health_check_failure_threshold"] = "3"
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    import ray
    from ray.cluster_utils import Cluster

    try:
        cluster = Cluster()
        how = asked.get("autoscaler")
        settings = autoscaler(asked["folder"], how == "works") if how else {}
        for node in asked["nodes"]:
            add(cluster, node, **settings)
            settings = {}
        cluster.wait_for_nodes()
        ray.init(address=cluster.address, log_to_driver=False, logging_level="error")
        answer(address=cluster.address)
        for line in sys.stdin:
            order = json.loads(line)
            if order["do"] == "add":
                added = add(cluster, order["node"])
                answer(done=True)
            elif order["do"] == "remove":
                cluster.remove_node(added)
                answer(done=True)
            elif order["do"] == "drain":
                labelled = (node for node in ray.nodes() if node["Labels"].get("node") == order["label"])
                drain(cluster.address, next(labelled)["NodeID"])
                answer(done=True)
            elif order["do"] == "kill_head":
                ray.shutdown()  # This process would be ended by Ray, which sees that the head is gone.
                cluster.head_node.kill_gcs_server()
                cluster.head_node.kill_raylet()
                answer(done=True)
            else:
                groups = ray.util.placement_group_table().values()
                actors = ray._private.state.actors().values()
                answer(
                    groups=[group["name"] for group in groups if group["state"] != "REMOVED"],
                    actors=[actor["ActorClassName"] for actor in actors if actor["State"] != "DEAD"],
                )
    finally:
        end_all(asked["folder"])
        os._exit(0)


main()
