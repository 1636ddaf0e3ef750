"""Ray's side of Lockstep: makes room on a cluster, and one actor for each worker.

The coordinator is a Rust program. It starts this one, sends orders as JSON lines through standard input, and
hears reports as JSON lines through standard output. An actor is the seat of a worker: it starts the Lockstep
binary as a child process, one after the other if one is lost, and passes on what that writes and how it ends.
Nothing is decided here that the coordinator could decide.

The end of standard input means that the coordinator is gone: then so are the actors, their placement group and
this process. If this process dies first, Ray ends its actors, and each child dies with its actor.

Only the public API of Ray is used.
"""

import hashlib
import json
import os
import queue
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
CLOSE_S = 5.0  # How long good manners may take when the coordinator is gone.
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


def oom_kills():
    """How often the kernel ended a process of this cgroup for want of memory."""
    try:
        with open("/proc/self/cgroup") as file:
            path = file.read().strip().rpartition(":")[2]
        with open(f"/sys/fs/cgroup{path}/memory.events") as file:
            events = dict(line.split() for line in file)
        return int(events.get("oom_kill", 0))
    except (OSError, ValueError):
        return 0


def hash_of(path):
    """The hash of a file's content; None if there is none. A power cut may leave another under the right name."""
    try:
        with open(path, "rb") as file:
            return hashlib.sha256(file.read()).hexdigest()
    except OSError:
        return None


def keep(copy, path):
    """Writes a program that is whole or not there; what a full disk cut short is removed."""
    with tempfile.NamedTemporaryFile(dir=os.path.dirname(path), delete=False) as file:
        try:
            file.write(copy)
            file.flush()
            os.fchmod(file.fileno(), 0o700)
            os.fsync(file.fileno())
        except BaseException:
            os.unlink(file.name)
            raise
    os.rename(file.name, path)


class Seat:
    """Runs on a node, in a process of Ray: starts workers there, and remembers what is to be told of them."""

    def __init__(self):
        self.changed = threading.Condition()
        self.notes = []  # What was not acknowledged yet: (number, launch, kind, value).
        self.number = 0
        self.held = 0  # Bytes of output in them.
        self.processes = {}  # By launch: a process, or None for one that was ended before it began.
        threading.Thread(target=self.watch, args=(os.getppid(),), daemon=True).start()

    def watch(self, raylet):
        """Ends with the node's own process, as Ray's processes do not always: then the workers end too."""
        while os.getppid() == raylet:
            time.sleep(WATCH_S)
        os._exit(1)

    @ray.method(concurrency_group="orders")
    def arrive(self, program, size):
        """Says where this is, and whether the coordinator's program is here too."""
        self.program = program
        found = os.path.exists(program) and os.path.getsize(program) == size
        return ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), found

    @ray.method(concurrency_group="orders")
    def take(self, copy):
        """Keeps a copy of the coordinator's program in this node's cache, and starts workers with that."""
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        cache = os.environ.get("LOCKSTEP_CACHE") or os.path.join(home, "lockstep")
        folder = os.path.join(cache, "programs")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        digest = hashlib.sha256(copy).hexdigest()
        self.program = os.path.join(folder, digest)
        if hash_of(self.program) != digest:
            keep(copy, self.program)

    @ray.method(concurrency_group="orders")
    def start(self, launch, command, invitation, speaks):
        begun = threading.Event()
        args = (launch, command, invitation, speaks, begun)
        threading.Thread(target=self.run, args=args, daemon=True).start()
        begun.wait()  # What is told next must find it.

    def run(self, launch, command, invitation, speaks, begun):
        # The kernel ends the worker with the thread that started it, so this one waits until it ended.
        kills = oom_kills()
        try:
            with self.changed:
                if launch in self.processes:
                    raise InterruptedError("it was ended before it began")
                process = subprocess.Popen(
                    [self.program, command],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE if speaks else subprocess.STDOUT,
                    env={**os.environ, "LOCKSTEP_PARENT": str(os.getpid())},
                )
                self.processes[launch] = process
        except OSError as error:
            begun.set()
            self.note(launch, "wrote", f"cannot start {self.program}: {error}\n".encode())
            self.note(launch, "silent", None)
            ended_first = isinstance(error, InterruptedError)
            self.note(launch, "ended", {"signal": 9} if ended_first else {"code": 127})
            return
        self.note(launch, "started", process.pid)
        streams = [(process.stdout, "said" if speaks else "wrote"), (process.stderr, "wrote")]
        readers = [
            threading.Thread(target=self.read, args=(launch, *stream), daemon=True)
            for stream in streams
            if stream[0]
        ]
        for reader in readers:
            reader.start()
        threading.Thread(target=self.silent, args=(launch, readers), daemon=True).start()
        self.write(process, invitation)
        begun.set()
        code = process.wait()
        end = {"code": code} if code >= 0 else {"signal": -code}
        if code == -9 and oom_kills() > kills:
            end = {"oom": True}
        self.note(launch, "ended", end)

    def read(self, launch, stream, kind):
        while piece := os.read(stream.fileno(), 1 << 16):
            self.note(launch, kind, piece)

    def silent(self, launch, readers):
        for reader in readers:
            reader.join()
        self.note(launch, "silent", None)

    def note(self, launch, kind, value):
        with self.changed:
            while self.held > BACKLOG:
                self.changed.wait()
            self.number += 1
            self.held += len(value) if isinstance(value, bytes) else 0
            self.notes.append((self.number, launch, kind, value))
            self.changed.notify_all()

    @ray.method(concurrency_group="orders")
    def tell(self, launch, line):
        if process := self.processes.get(launch):
            self.write(process, line)

    def write(self, process, line):
        try:
            process.stdin.write(line.encode() + b"\n")
            process.stdin.flush()
        except (OSError, ValueError):
            pass  # Its end is told.

    @ray.method(concurrency_group="end")
    def end(self, launch):
        with self.changed:
            process = self.processes.setdefault(launch, None)
        if process:
            process.kill()

    @ray.method(concurrency_group="poll")
    def poll(self, after):
        """What happened since the note `after`, which was heard."""
        until = time.monotonic() + POLL_S
        with self.changed:
            self.notes = [note for note in self.notes if note[0] > after]
            self.held = sum(len(note[3]) for note in self.notes if isinstance(note[3], bytes))
            self.changed.notify_all()
            while not self.notes and (left := until - time.monotonic()) > 0:
                self.changed.wait(left)
            return list(self.notes)


class Host:
    """What this process knows of one seat: its actor, and the launches whose end was not told."""

    def __init__(self, room, seat):
        self.room, self.seat = room, seat
        self.lock = threading.Lock()
        self.actor, self.node, self.heard, self.killed = None, None, None, False
        self.launches = set()

    def make(self):
        """Makes an actor in the place that is reserved for this seat."""
        asked = self.room["worker"]
        self.actor = (
            ray.remote(concurrency_groups={"orders": 1, "end": 1, "poll": 1})(Seat)
            .options(
                num_cpus=asked.get("CPU", 0),
                num_gpus=asked.get("GPU", 0),
                memory=asked.get("memory"),
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement_group=self.room["group"], placement_group_bundle_index=self.seat
                ),
            )
            .remote()
        )
        self.node, self.heard, self.killed = None, None, False
        arriving = self.actor.arrive.remote(self.room["program"], self.room["size"])
        threading.Thread(target=self.follow, args=(self.actor, arriving), daemon=True).start()

    def follow(self, actor, arriving):
        """Passes on what an actor tells until it is gone."""
        after = 0
        try:
            node, ip, found = ray.get(arriving)
            self.node, self.heard = node, time.monotonic()
            if not found:
                ray.get(actor.take.remote(copy(self.room)))
            report("arrived", seat=self.seat, node=ip)
            while True:
                try:
                    notes = ray.get(actor.poll.remote(after))
                except ActorUnavailableError:
                    time.sleep(0.2)  # It may come back; if it does not, Ray says so in time.
                    continue
                self.heard = time.monotonic()
                for after, launch, kind, value in notes:
                    if isinstance(value, bytes):
                        value = value.decode("latin-1")  # Each byte is a character, whatever it means.
                    if kind == "ended":
                        with self.lock:
                            self.launches.discard(launch)
                    report(kind, launch=launch, value=value)
        except Exception as error:
            self.lost(error)

    def lost(self, error):
        """An actor is gone. Its worker died with it, unless its node is only out of reach: then the worker has
        a lease, and is gone when that ran out."""
        # Ray adds a table of ids, each line of which begins with a tab.
        lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
        words = " ".join(line.strip() for line in lines if line.strip())
        with self.lock:
            launches, self.launches = self.launches, set()
            node, heard, killed = self.node, self.heard, self.killed
            self.actor = None
        dead = node is not None and not is_alive(node)
        if heard is not None and (dead or killed):
            time.sleep(max(0.0, heard + self.room["lease_s"] + 1.0 - time.monotonic()))
        what = "its node is gone" if dead else "its actor is gone"
        memory = "memory pressure" in words or "OutOfMemory" in words
        end = {"oom": True} if memory else {"lost": f"{what}: {words[:600]}"}
        for launch in sorted(launches):
            report("silent", launch=launch, value=None)
            report("ended", launch=launch, value=end)
        if not launches:
            report("unseated", seat=self.seat, error=words[:600])

    def start(self, order):
        with self.lock:
            self.launches.add(order["launch"])
            if self.actor is None:
                self.make()
            actor = self.actor
        actor.start.remote(order["launch"], order["command"], order["invitation"], order["speaks"])

    def tell(self, order):
        if self.actor is not None:
            self.actor.tell.remote(order["launch"], order["line"])

    def end(self, order):
        actor = self.actor
        if actor is None:
            return
        actor.end.remote(order["launch"])
        threading.Timer(KILL_S, self.insist, (actor, order["launch"])).start()

    def insist(self, actor, launch):
        with self.lock:
            if launch not in self.launches or self.actor is not actor:
                return
            self.killed = True
        ray.kill(actor)


def copy(room):
    """The coordinator's program in Ray's object store, for nodes that do not have it."""
    with room["copying"]:
        if "copy" not in room:
            with open(room["program"], "rb") as file:
                room["copy"] = ray.put(file.read())
        return room["copy"]


def is_alive(node):
    try:
        return any(known["NodeID"] == node and known["Alive"] for known in ray.nodes())
    except Exception:
        return False


def nodes():
    """The living nodes: what each has, free or not."""
    kinds = ("CPU", "GPU", "memory")
    return [
        {
            "node": node["NodeManagerAddress"],
            "has": {kind: node["Resources"].get(kind, 0) for kind in kinds},
            "labels": node.get("Labels", {}),
        }
        for node in ray.nodes()
        if node["Alive"]
    ]


def reserve(order, room, hosts):
    """Makes room for all workers, and an actor for each. Says what is waited for."""
    worker = order["worker"]
    selector = {"bundle_label_selector": [order["labels"]] * order["workers"]} if order["labels"] else {}
    group = ray.util.placement_group(
        [worker] * order["workers"], strategy=order["place"], name=order["name"], **selector
    )
    room.update(order, group=group)
    while not group.wait(TELL_S):
        free = ray.available_resources()
        report("waiting", nodes=nodes(), free={kind: free.get(kind, 0) for kind in ("CPU", "GPU", "memory")})
    for host in hosts:
        host.make()


def look_for_head():
    """Refuses an address where nobody listens: Ray would try for a long time."""
    address = os.environ.get("RAY_ADDRESS", "")
    if "://" in address:
        raise ValueError("the address of the head is needed, such as 10.0.0.1:6379, and not a URL")
    host, _, port = address.rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()


def main():
    order = ORDERS.get()
    if order is None:
        return
    try:
        look_for_head()
        ray.init(address="auto", log_to_driver=False, logging_level="error", namespace=order["name"])
        here = ray.util.get_node_ip_address()
        report("connected", here=here, ray=ray.__version__, nodes=len(nodes()))
    except Exception as error:
        report("failed", why="connect", error=f"{type(error).__name__}: {error}", python=sys.executable)
        return
    room = {"copying": threading.Lock()}
    hosts = [Host(room, seat) for seat in range(order["workers"])]

    def make_room():
        try:
            reserve(order, room, hosts)
        except Exception as error:
            report("failed", why="reserve", error=f"{type(error).__name__}: {error}", python=sys.executable)

    threading.Thread(target=make_room, daemon=True).start()
    seats = {}
    while (order := ORDERS.get()) is not None:
        if order["do"] == "start":
            seats[order["launch"]] = hosts[order["seat"]]
        host = seats[order["launch"]]
        getattr(host, order["do"])(order)
    for host in hosts:
        if host.actor is not None:
            ray.kill(host.actor)
    if "group" in room:
        ray.util.remove_placement_group(room["group"])
    ray.shutdown()


try:
    main()
finally:
    REPORTS.flush()
    os._exit(0)
