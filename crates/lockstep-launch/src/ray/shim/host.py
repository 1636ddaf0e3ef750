

class Host:
    """What this process knows of one seat: its place, its actor, and the launches whose end was not told."""

    def __init__(self, room, seat):
        self.room, self.seat = room, seat
        self.lock = threading.Lock()
        self.place = None  # A placement group and a bundle in it, once there is room.
        self.own = None  # The placement group that was made for this seat alone.
        self.actor, self.node, self.address, self.heard, self.killed = None, None, None, None, False
        self.launches = set()
        self.waiting = []  # Orders that came before there was room.

    def sit(self, group, bundle):
        """There is room: makes an actor there, and has it do what was ordered meanwhile."""
        node = ray.util.placement_group_table(group)["bundles_to_node_id"].get(bundle)
        with self.lock:
            self.place, self.node = (group, bundle), node
            self.make()
            waiting, self.waiting = self.waiting, []
            for order in waiting:
                self.pass_on(order)

    def look_for_room(self):
        """Looks for room for this seat alone, for as long as it takes."""
        threading.Thread(target=self.find_room, daemon=True).start()

    def find_room(self):
        try:
            # Those who must not share a node are placed one after the other, since each must know of the others.
            with self.room["turn"]:
                labels = {}
                if self.room["place"] == "STRICT_SPREAD":
                    taken = {host.node for host in self.room["hosts"] if host is not self and host.node}
                    labels = {"ray.io/node-id": f"!in({','.join(sorted(taken))})"} if taken else {}
                self.own = make_group(self.room, 1, f"{self.room['name']}-{self.seat}", labels)
                while not self.own.wait(TELL_S):
                    pass
                self.sit(self.own, 0)
        except Exception as error:
            self.lost(None, error)

    def make(self):
        """Makes an actor in the place of this seat."""
        asked = self.room["worker"]
        group, bundle = self.place
        self.actor = (
            ray.remote(concurrency_groups={"orders": 1, "end": 1, "poll": 1})(Seat)
            .options(
                num_cpus=asked.get("CPU", 0),
                num_gpus=asked.get("GPU", 0),
                memory=asked.get("memory"),
                max_restarts=0,
                max_task_retries=0,
                scheduling_strategy=PlacementGroupSchedulingStrategy(
                    placement_group=group, placement_group_bundle_index=bundle
                ),
            )
            .remote()
        )
        self.heard, self.killed = None, False
        arriving = self.actor.arrive.remote(self.room["program"], self.room["size"])
        threading.Thread(target=self.follow, args=(self.actor, arriving), daemon=True).start()

    def follow(self, actor, arriving):
        """Passes on what an actor tells until it is gone."""
        after = 0
        try:
            node, ip, found = ray.get(arriving)
            self.node, self.address, self.heard = node, ip, time.monotonic()
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
            self.lost(actor, error)

    def lost(self, actor, error):
        """An actor is gone. Its worker died with it, unless its node is only out of reach: then the worker has
        a lease, and is gone when that ran out."""
        # Ray adds a table of ids, each line of which begins with a tab.
        lines = [line for line in str(error).splitlines() if not line.startswith("\t")]
        words = " ".join(line.strip() for line in lines if line.strip())
        with self.lock:
            if self.actor is not actor:
                return  # It was let go.
            launches, self.launches, self.waiting = self.launches, set(), []
            node, heard, killed = self.node, self.heard, self.killed
            self.actor, self.node = None, None
        dead = node is not None and not is_alive(node)
        if heard is not None and (dead or killed):
            time.sleep(max(0.0, heard + self.room["lease_s"] + 1.0 - time.monotonic()))
        what = "its node is gone" if dead else "its actor is gone"
        for launch in sorted(launches):
            report_end(launch, {"lost": f"{what}: {words[:600]}"})
        if not launches and self.seat < self.room["enough"]:
            report("unseated", seat=self.seat, error=words[:600])

    def warn(self, draining):
        """Says of a worker whose node is about to be taken away that it is. As often as this is asked: the first
        time, it may not be at work yet."""
        with self.lock:
            if self.node not in draining:
                return
            waiting = {order["launch"] for order in self.waiting}
            launches = self.launches - waiting
            left = draining[self.node] / 1000 - time.time()
        when = f", and ends within {left:.0f} s" if left > 0 else ""
        for launch in sorted(launches):
            report("leaving", launch=launch, value=f"its node {self.address} is drained{when}")

    def start(self, order):
        with self.lock:
            self.launches.add(order["launch"])
            if self.place and self.node in self.room["draining"]:
                self.give_place_up()
            if self.place and self.actor is None:
                self.make()
            self.pass_on(order)

    def tell(self, order):
        with self.lock:
            self.pass_on(order)

    def pass_on(self, order):
        """Has the actor do something, now or when there is room for it."""
        if self.place is None:
            self.waiting.append(order)
        elif self.actor is not None and order["do"] == "start":
            self.actor.start.remote(order["launch"], order["command"], order["invitation"], order["speaks"])
        elif self.actor is not None:
            self.actor.tell.remote(order["launch"], order["line"])

    def give_place_up(self):
        """Looks for room elsewhere. Ray does not move what it reserved on a node that drains: if this place belongs to
        the group of all, that part of it lies idle until the node is gone."""
        if self.actor is not None:
            ray.kill(self.actor)
        if self.own is not None:
            ray.util.remove_placement_group(self.own)
        self.place, self.own, self.actor, self.node = None, None, None, None
        self.look_for_room()

    def end(self, order):
        launch = order["launch"]
        with self.lock:
            actor = self.actor
            others = [waiting for waiting in self.waiting if waiting["launch"] != launch]
            began = len(others) == len(self.waiting)
            self.waiting = others
            if not began:
                self.launches.discard(launch)
        if not began:
            report_end(launch, {"signal": 9})
        elif actor is not None:
            actor.end.remote(launch)
            threading.Timer(KILL_S, self.insist, (actor, launch)).start()

    def insist(self, actor, launch):
        with self.lock:
            if launch not in self.launches or self.actor is not actor:
                return
            self.killed = True
        ray.kill(actor)


def report_end(launch, end):
    """Says that a worker is gone, and that nothing more will be heard of it."""
    report("silent", launch=launch, value=None)
    report("ended", launch=launch, value=end)


def copy(room):
    """The coordinator's program in Ray's object store, for nodes that do not have it."""
    with room["copying"]:
        if "copy" not in room:
            content = room["own"].read()
            if len(content) != room["size"]:
                raise OSError(f"{room['program']} was changed while the job began")
            room["copy"] = ray.put(content)
        return room["copy"]


def is_alive(node):
    try:
        return any(known["NodeID"] == node and known["Alive"] for known in ray.nodes())
    except Exception:
        return False
