"""The head of a Ray cluster for one test: python ray_head.py NODES BIN FOLDER [NAME=VALUE ...]

Starts `ray start --head` from the folder BIN, with FOLDER as its temporary folder and the given variables, and
LOCKSTEP_TEST_HEAD_CPUS says how many processors the head has, in place of 4. It
prints {"endpoint": "http://127.0.0.1:PORT", "address": "IP:PORT"} when its Jobs API answers and the further nodes are
there. Ends when its standard input does. Every process of the cluster carries the variable LOCKSTEP_TEST_HEAD with the folder, and only those are
ended: `ray stop` would end those of other tests too.
"""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request

from ports import reserve

MARK = "LOCKSTEP_TEST_HEAD"
START = 90


def marked(folder):
    """The processes of the cluster."""
    mark = f"{MARK}={folder}".encode()
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        try:
            with open(f"/proc/{name}/environ", "rb") as environ:
                if mark in environ.read().split(b"\0"):
                    yield int(name)
        except OSError:
            pass


def end(folder):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        left = list(marked(folder))
        if not left:
            break
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        time.sleep(0.05)
    shutil.rmtree(folder, ignore_errors=True)


def answers(endpoint):
    try:
        with urllib.request.urlopen(f"{endpoint}/api/version", timeout=60):
            return True
    except urllib.error.HTTPError as error:
        return error.code == 401
    except OSError:
        return False


def alive(endpoint):
    """How many nodes the head knows."""
    with urllib.request.urlopen(f"{endpoint}/nodes?view=summary&nocache=1", timeout=60) as answer:
        summary = json.load(answer)["data"]["summary"]
    return sum(node["raylet"].get("state") == "ALIVE" for node in summary)


def heed():
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_DFL)


def main():
    nodes, programs, folder, *variables = sys.argv[1:]
    # What ends the test, such as Ctrl-C, must not end this before the cluster: the end of its input does.
    os.setsid()
    for name in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    home = os.path.join(folder, "home")
    os.makedirs(home)
    environ = {name: value for name, value in os.environ.items() if not name.startswith("RAY_")}
    # Whoever runs the tests may have a token, which would turn authentication on.
    environ.update({MARK: folder, "HOME": home, "RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"})
    environ.update(variable.split("=", 1) for variable in variables)
    head_cpus = environ.pop("LOCKSTEP_TEST_HEAD_CPUS", "4")
    environ["PATH"] = programs + os.pathsep + environ["PATH"]
    gcs, dashboard, client = (reserve() for _ in range(3))
    log = open(os.path.join(folder, "start.log"), "w+b")

    def start(*options, cpus="4"):
        """Starts a node."""
        command = [os.path.join(programs, "ray"), "start", "--block", "--disable-usage-stats", *options]
        command += [f"--dashboard-agent-listen-port={reserve()}", f"--metrics-export-port={reserve()}"]
        command += ["--dashboard-agent-grpc-port=0", "--min-worker-port=0", "--max-worker-port=0"]
        command += ["--object-store-memory=80000000", f"--num-cpus={cpus}", "--num-gpus=0"]
        return subprocess.Popen(
            command,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            # Ray's processes must heed what this one ignores.
            preexec_fn=heed,
        )

    ports = [f"--port={gcs}", f"--dashboard-port={dashboard}", f"--ray-client-server-port={client}"]
    head = start("--head", *ports, "--dashboard-host=127.0.0.1", f"--temp-dir={folder}/t", cpus=head_cpus)
    # The test may end while the head still starts.
    threading.Thread(target=lambda: (sys.stdin.read(), end(folder), os._exit(0)), daemon=True).start()
    endpoint = f"http://127.0.0.1:{dashboard}"
    deadline = time.monotonic() + START

    def until(done):
        while not done():
            if head.poll() is not None or time.monotonic() > deadline:
                log.seek(0)
                sys.stderr.write(log.read().decode(errors="replace"))
                end(folder)
                sys.exit(1)
            time.sleep(0.1)

    until(lambda: answers(endpoint))
    # One after the other: nodes that begin at the same moment on one machine may take each other's ports.
    for number in range(2, int(nodes) + 1):
        start(f"--address=127.0.0.1:{gcs}")
        until(lambda: alive(endpoint) == number)
    print(json.dumps({"endpoint": endpoint, "address": f"127.0.0.1:{gcs}"}), flush=True)
    head.wait()
    end(folder)


main()
