

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


def make_group(room, workers, name, labels=None):
    """Asks for room for so many workers at once, on nodes with these labels beside those of the job."""
    labels = {**(labels or {}), **room["labels"]}
    selector = {"bundle_label_selector": [labels] * workers} if labels else {}
    return ray.util.placement_group([room["worker"]] * workers, strategy=room["place"], name=name, **selector)


def reserve(room, hosts):
    """Makes room for as many workers as are enough, all at once, so that no two jobs wait for each other's halves; and
    then for each of the others by itself. Says what is waited for."""
    group = room["group"] = make_group(room, room["enough"], room["name"])
    placed = threading.Event()
    autoscaler = {"pending": [], "failures": []}
    threading.Thread(target=hear_autoscaler, args=(placed, autoscaler), daemon=True).start()
    while not group.wait(TELL_S):
        free = ray.available_resources()
        free = {kind: free.get(kind, 0) for kind in ("CPU", "GPU", "memory")}
        report("waiting", nodes=nodes(), free=free, **autoscaler)
    placed.set()
    for host in hosts[: room["enough"]]:
        host.sit(group, host.seat)
    for host in hosts[room["enough"] :]:
        host.look_for_room()


def hear_autoscaler(placed, autoscaler):
    """Asks the autoscaler, while room is waited for, what it is about to bring and what failed. Its command for people
    is public; what that reads is not."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "status"]
    address = ray.get_runtime_context().gcs_address
    while not placed.wait(AUTOSCALER_S):
        try:
            asked = subprocess.run(
                [*command, "--address", address], capture_output=True, text=True, timeout=10 * AUTOSCALER_S
            )
        except (OSError, subprocess.SubprocessError):
            return
        autoscaler["pending"] = section(asked.stdout, "Pending")
        autoscaler["failures"] = section(asked.stdout, "Recent failures")


def section(text, title):
    """The lines under a title of the autoscaler's report; none where it says that there are none."""
    _, found, rest = text.partition(f"\n{title}:\n")
    lines = []
    for line in rest.splitlines() if found else []:
        if not line.startswith(" "):
            break
        lines.append(line.strip())
    return [line for line in lines if line and not line.startswith("(no ")]


def watch_drains(room, hosts):
    """Tells of workers whose nodes are about to be taken away. Ray has no public way to ask for that; where this one
    is missing, such a node is lost like any other."""
    try:
        from ray._private.state import state

        ask = state.get_draining_nodes
    except (ImportError, AttributeError):
        return
    while True:
        time.sleep(DRAIN_S)
        try:
            room["draining"] = ask()
        except Exception:
            continue  # The cluster is out of reach, which others notice.
        for host in hosts:
            host.warn(room["draining"])


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
        # Opened before any other node unpacks the job, which may write the file anew.
        program = open(order["program"], "rb")
        look_for_head()
        ray.init(address="auto", log_to_driver=False, logging_level="error", namespace=order["name"])
        # Ray sends SIGTERM to all descendants of a job's command that is stopped; the coordinator ends this one.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        here = ray.util.get_node_ip_address()
        report("connected", here=here, ray=ray.__version__, nodes=len(nodes()))
    except Exception as error:
        report("failed", why="connect", error=f"{type(error).__name__}: {error}", python=sys.executable)
        return
    strict = order["place"] == "STRICT_SPREAD"
    turn = threading.Lock() if strict else contextlib.nullcontext()
    room = {**order, "copying": threading.Lock(), "turn": turn, "draining": {}, "own": program}
    hosts = room["hosts"] = [Host(room, seat) for seat in range(order["workers"])]

    def make_room():
        try:
            reserve(room, hosts)
        except Exception as error:
            report("failed", why="reserve", error=f"{type(error).__name__}: {error}", python=sys.executable)

    threading.Thread(target=make_room, daemon=True).start()
    threading.Thread(target=watch_drains, args=(room, hosts), daemon=True).start()
    seats = {}
    while (order := ORDERS.get()) is not None:
        if order["do"] == "start":
            seats[order["launch"]] = hosts[order["seat"]]
        host = seats[order["launch"]]
        getattr(host, order["do"])(order)
    for host in hosts:
        if host.actor is not None:
            ray.kill(host.actor)
    for group in [room.get("group"), *(host.own for host in hosts)]:
        if group is not None:
            ray.util.remove_placement_group(group)
    ray.shutdown()


try:
    main()
finally:
    REPORTS.flush()
    os._exit(0)
