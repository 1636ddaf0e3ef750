

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


def cores():
    """The whole processors that Ray keeps for this worker, as lockstep is told of them; at least one."""
    return str(max(1, int(ray.get_runtime_context().get_assigned_resources().get("CPU", 1))))


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
        self.program, self.size = program, size
        return ray.get_runtime_context().get_node_id(), ray.util.get_node_ip_address(), self.is_whole()

    def is_whole(self):
        """Whether the program is here, and nobody is writing it."""
        try:
            return os.path.getsize(self.program) == self.size
        except OSError:
            return False

    @ray.method(concurrency_group="orders")
    def take(self, copy):
        """Keeps a copy of the coordinator's program in this node's cache, and starts workers with that."""
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        cache = os.environ.get("LOCKSTEP_CACHE") or os.path.join(home, "lockstep")
        folder = os.path.join(cache, "programs")
        os.makedirs(folder, mode=0o700, exist_ok=True)
        digest = hashlib.sha256(copy).hexdigest()
        self.program, self.size = os.path.join(folder, digest), len(copy)
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
            process = self.spawn(launch, command, speaks)
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

    def spawn(self, launch, command, speaks):
        """Starts a process. Raylets of one machine share the folder of a job, and each unpacks it anew: then the program
        is not there for a moment, or not whole, or may not be executed yet."""
        until = time.monotonic() + UNPACK_S
        while True:
            try:
                with self.changed:
                    if launch in self.processes:
                        raise InterruptedError("it was ended before it began")
                    self.processes[launch] = subprocess.Popen(
                        [self.program, command],
                        stdin=subprocess.PIPE,
                        stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE if speaks else subprocess.STDOUT,
                        env={**os.environ, "LOCKSTEP_PARENT": str(os.getpid()), "LOCKSTEP_CORES": cores()},
                    )
                    return self.processes[launch]
            except OSError as error:
                unpacked = self.is_whole() and os.access(self.program, os.X_OK) and error.errno != errno.ETXTBSY
                if unpacked or time.monotonic() > until or isinstance(error, InterruptedError):
                    raise
            time.sleep(0.05)

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
