"""Ray's side of Lockstep: makes room on a cluster, and one actor for each worker.

The coordinator is a Rust program. It starts this one, sends orders as JSON lines through standard input, and
hears reports as JSON lines through standard output. An actor is the seat of a worker: it starts the Lockstep
binary as a child process, one after the other if one is lost, and passes on what that writes and how it ends.
Nothing is decided here that the coordinator could decide.

The end of standard input means that the coordinator is gone: then so are the actors, their placement groups
and this process. If this process dies first, Ray ends its actors, and each child dies with its actor.

Only the public API of Ray is used, but for the question which nodes drain, which it has none for.
"""

import contextlib
import errno
import hashlib
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

# Reports go to a copy of standard output; whatever Ray prints goes to standard error.
REPORTS = os.fdopen(os.dup(1), "w", encoding="utf-8")
os.dup2(2, 1)
REPORTING = threading.Lock()

WATCH_S = 0.25  # How often an actor looks whether its node is still there.
POLL_S = 1.0  # How long an actor waits for something to tell before it says that there is nothing.
KILL_S = 1.0  # How long a worker that is ended by its actor is waited for, before the actor is ended too.
TELL_S = 2.0  # How often it is said that room is waited for.
AUTOSCALER_S = 3.0  # How often the autoscaler is asked what it brings, while room is waited for.
DRAIN_S = 1.0  # How often it is asked which nodes are about to be taken away.
CLOSE_S = 5.0  # How long good manners may take when the coordinator is gone.
UNPACK_S = 20.0  # How long Ray may take to unpack a job's folder once more.
CONNECT_S = 5.0  # How long the head may take to accept a connection.
BACKLOG = 1 << 20  # Bytes of output that an actor holds before it lets its worker wait.


def report(kind, **values):
    line = json.dumps({"is": kind, **values})
    with REPORTING:
        try:
            print(line, file=REPORTS, flush=True)
        except OSError:
            os._exit(1)  # Nobody hears it: the coordinator is gone.


ORDERS = queue.Queue()


def hear():
    """Takes in orders from the beginning, so that their end is seen whatever else goes on."""
    for line in sys.stdin:
        ORDERS.put(json.loads(line))
    ORDERS.put(None)
    time.sleep(CLOSE_S)
    os._exit(1)


threading.Thread(target=hear, daemon=True).start()

try:
    import ray
    from ray.exceptions import ActorUnavailableError
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy
except Exception as error:  # Also a wheel that is broken.
    report("failed", why="import", error=f"{type(error).__name__}: {error}", python=sys.executable)
    os._exit(1)
