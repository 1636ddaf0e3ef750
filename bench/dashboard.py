"""What the server and its dashboard cost: memory, start, lists of a thousand, and a hundred open pages on a live run.

    make bench-dashboard

It writes 1,000 runs of 10,000 points and submits 1,000 jobs, asks what pages ask, and prints a table. Nothing but
Python's standard library is used; the clients are sockets.
"""

import argparse
import gzip
import http.client
import json
import os
import pathlib
import re
import selectors
import socket
import statistics
import subprocess
import tempfile
import threading
import time

TIMES = 15


def write_run(store, number, points):
    """A run that has ended: half of its points are losses, half are what two workers do."""
    began = 1_794_000_000 + number * 60
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(began))
    letters = "".join(chr(97 + number // 26**place % 26) for place in range(4))
    folder = store / f"digits-{stamp}-{letters}"
    folder.mkdir()
    keys = "".join(f"key_{key} = {key}\n" for key in range(30))
    (folder / "job.toml").write_text(
        f'name = "digits"\n[train]\nepochs = 10\nbatch = 32\n'
        f'optimizer = {{ kind = "sgd", lr = {0.001 * (1 + number % 50)} }}\n[model]\nkind = "mlp"\n[other]\n{keys}'
    )
    lines = [{"v": 2, "time": began, "event": "started", "workers": 2, "lanes": 2, "epochs": 10,
              "steps_per_epoch": points // 20, "parameters": 669706, "metrics": ["loss", "accuracy"]}]
    steps = points // 20
    for point in range(points // 2):
        epoch, step = divmod(point, steps)
        loss = 2.3 * 0.9995**point + 0.05 * ((point * 7919) % 100) / 100
        lines.append({"v": 2, "time": began + point / 100, "event": "progress", "epoch": epoch + 1, "step": step + 1,
                      "steps": steps, "loss": loss, "rank": 0})
        if point % 8 == 0:
            for rank in range(2):
                lines.append({"v": 2, "time": began + point / 100, "event": "usage", "rank": rank, "cpu_percent": 98.5,
                              "memory_bytes": 1 << 27, "waiting": 0.04})
        if step + 1 == steps:
            lines.append({"v": 2, "time": began + point / 100, "event": "epoch", "epoch": epoch + 1, "step": point + 1,
                          "train": {"loss": loss, "accuracy": 0.8}, "val": {"loss": loss, "accuracy": 0.85}, "best": True})
    result = {"status": "succeeded", "epochs": 10, "restarts": 0, "metrics": {"loss": 0.3, "accuracy": 0.8 + number / 1e4},
              "timing": {"samples_per_s": 20000.0}, "weights_sha256": "0" * 64}
    lines.append({"v": 2, "time": began + points / 200, "event": "result", **result})
    (folder / "events.jsonl").write_text("".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines))
    (folder / "result.json").write_text(json.dumps(result))
    return folder.name


class Server:
    def __init__(self, program, store, args=()):
        began = time.perf_counter()
        command = [program, "serve", "--store", str(store), "--port", "0", *args]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        for line in self.process.stderr:
            found = re.match(r"Lockstep serves http://([\d.]+):(\d+)", line)
            if found:
                break
        self.ready = time.perf_counter() - began
        self.host, self.port = found[1], int(found[2])
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def get(self, path, body=None):
        connection = http.client.HTTPConnection(self.host, self.port)
        headers = {"Accept-Encoding": "gzip", "x-lockstep": "1", "Content-Type": "application/json"}
        connection.request("POST" if body is not None else "GET", path, body and json.dumps(body), headers)
        answer = connection.getresponse()
        raw = answer.read()
        if answer.status != 200:
            raise SystemExit(f"{path}: {answer.status} {raw[:300]}")
        connection.close()
        plain = gzip.decompress(raw) if answer.getheader("Content-Encoding") == "gzip" else raw
        return plain, len(raw)

    def json(self, path, body=None):
        return json.loads(self.get(path, body)[0])

    def status(self, name):
        text = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(rf"{name}:\s+(\d+)", text)[1]) / 1024

    def ticks(self):
        words = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        self.process.wait()


def say(what, value, wanted=""):
    print(f"{what:<58} {value:>22}   {wanted}", flush=True)


def measure(server, what, paths, wanted):
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        for path in paths:
            server.get(path)
        times.append((time.perf_counter() - began) * 1e3)
    say(what, f"{statistics.median(times):.1f} ms ({max(times):.1f})", wanted)


def idle(server, what, seconds=10):
    time.sleep(2)
    before = server.ticks()
    time.sleep(seconds)
    used = server.ticks() - before
    say(what, f"{server.status('VmRSS'):.1f} MiB, {used / seconds * 100:.2f} % CPU", "< 30 MiB, about no CPU")


def first_page(server):
    document, total = server.get("/")
    paths = re.findall(rb'"(/assets/[^"]+)"', document)
    more = ["pages/overview", "curve/chart", "curve/series", "curve/scale", "machine"]
    for path in {path.decode() for path in paths} | {f"/assets/js/{name}.js" for name in more} | {"/api/v1/overview"}:
        total += server.get(path)[1]
    say("first page, compressed", f"{total / 1e3:.1f} KB", "< 60 KB")


class Pages:
    """Pages that follow runs: each is a connection that reads whatever is pushed."""

    def __init__(self, server, count, runs):
        self.heard = 0
        self.sockets = []
        for _ in range(count):
            page = socket.create_connection((server.host, server.port))
            page.sendall(f"GET /api/v1/live?runs={','.join(runs)} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n\r\n".encode())
            self.sockets.append(page)
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        chooser = selectors.DefaultSelector()
        for page in self.sockets:
            chooser.register(page, selectors.EVENT_READ)
        while chooser.get_map():
            for key, _ in chooser.select():
                try:
                    piece = key.fileobj.recv(1 << 16)
                except OSError:
                    piece = b""
                self.heard += piece.count(b"event: points")
                if not piece:
                    chooser.unregister(key.fileobj)

    def close(self):
        for page in self.sockets:
            page.shutdown(socket.SHUT_RDWR)
        self.thread.join(10)
        for page in self.sockets:
            page.close()


def train(program, folder, server, pages):
    """How long the training of a run takes while so many pages follow it, in seconds of its own account."""
    job = folder / "job.toml"
    command = [program, "run", str(job), "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    opened, result = None, None
    for line in process.stdout:
        event = json.loads(line)
        if event["event"] == "started" and pages:
            time.sleep(0.3)
            opened = Pages(server, pages, [event["run"]])
        if event["event"] == "result":
            result = event
    process.wait()
    heard = 0
    if opened:
        time.sleep(1.5)
        heard = opened.heard
        opened.close()
    return result["timing"]["train_s"], heard


def live(program, store, server, pages, rounds):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        noise, samples, side = 1, 20000, 28
        pixels, labels = bytearray(), bytearray()
        for _ in range(samples):
            noise = (noise * 1103515245 + 12345) % (1 << 31)
            labels.append(noise % 10)
            pixels += bytes((noise >> (k % 23)) & 255 for k in range(side)) * side
        head = bytes([0, 0, 8, 3]) + b"".join(n.to_bytes(4, "big") for n in (samples, side, side))
        (folder / "images").write_bytes(head + pixels)
        (folder / "labels").write_bytes(bytes([0, 0, 8, 1]) + samples.to_bytes(4, "big") + labels)
        (folder / "job.toml").write_text(
            f'name = "live"\n[data]\ntrain = {{ images = "images", labels = "labels" }}\n'
            f'[model]\nkind = "mlp"\nhidden = [512, 512]\n[train]\nepochs = 12\nbatch = 64\nworkers = 2\nlanes = 2\n'
            f'optimizer = {{ kind = "sgd", lr = 0.001 }}\n[run]\nstore = "{store}"\n'
        )
        train(program, folder, server, 0)
        without, beside, heard, used = [], [], 0, []
        for _ in range(rounds):
            without.append(train(program, folder, server, 0)[0])
            before = server.ticks()
            took, told = train(program, folder, server, pages)
            used.append((server.ticks() - before) / took)
            beside.append(took)
            heard += told
        cost = [b / a - 1 for a, b in zip(without, beside)]
        say(f"{pages} pages on a live run: cost, median of {rounds} pairs", f"{statistics.median(cost) * 100:+.2f} %", "< 1 %")
        cores = os.cpu_count()
        say("  the server's own share of the machine meanwhile", f"{statistics.median(used) / cores * 100:.2f} %", f"of {cores} cores")
        say("  of runs that take, and news that they pushed", f"{statistics.median(without):.1f} s, {heard}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lockstep", required=True)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--points", type=int, default=10_000)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    program = str(pathlib.Path(options.lockstep).resolve())
    with tempfile.TemporaryDirectory() as folder:
        store = pathlib.Path(folder) / "empty"
        store.mkdir()
        starts = []
        for _ in range(5):
            server = Server(program, store)
            starts.append(server.ready * 1e3)
            server.stop()
        say("start to ready", f"{statistics.median(starts):.0f} ms ({max(starts):.0f})", "< 300 ms")
        server = Server(program, store, ["--cpus", "8"])
        idle(server, "idle, nothing there")
        if options.rounds:
            live(program, store, server, options.pages, options.rounds)
        server.stop()

        store = pathlib.Path(folder) / "runs"
        store.mkdir()
        names = [write_run(store, number, options.points) for number in range(options.runs)]
        subprocess.run([program, "runs", "reindex", "--store", str(store)], check=True, stdout=subprocess.DEVNULL)
        server = Server(program, store, ["--cpus", "64", "--keep-jobs", "100000"])
        say(f"start to ready with {options.runs} runs", f"{server.ready * 1e3:.0f} ms", "< 300 ms")
        for _ in range(options.jobs):
            server.json("/api/jobs/", {"entrypoint": "true"})
        while True:
            counts = server.json("/api/v1/jobs?limit=0")["counts"]
            if not counts["pending"] + counts["running"]:
                break
            time.sleep(0.5)
        server.stop()
        server = Server(program, store, ["--cpus", "64", "--keep-jobs", "100000"])
        say(f"start to ready with {options.runs} runs and {options.jobs} jobs", f"{server.ready * 1e3:.0f} ms", "< 300 ms")
        idle(server, "idle with them, before anybody asked")
        server.get("/api/v1/overview")
        middle = names[len(names) // 2]
        measure(server, "list of runs, first page", ["/api/v1/runs?limit=100"], "< 50 ms")
        measure(server, "list of runs, all", ["/api/v1/runs?limit=1000"], "< 50 ms")
        measure(server, "list of runs, filtered and sorted", ["/api/v1/runs?limit=100&filter=lr%20%3C%200.02&sort=accuracy"], "< 50 ms")
        measure(server, "list of jobs, first page", ["/api/v1/jobs?limit=100"], "< 50 ms")
        measure(server, "list of jobs, all", ["/api/v1/jobs?limit=1000"], "< 50 ms")
        measure(server, "overview", ["/api/v1/overview"], "< 50 ms")
        curves = f"/api/v1/curves?runs={middle}&width=800"
        measure(server, "a run's page: what it asks until its curves", [f"/runs/{middle}", f"/api/v1/runs/{middle}", curves], "< 300 ms")
        ten = f"/api/v1/curves?runs={','.join(names[:10])}&width=800"
        measure(server, "curves of ten runs", [ten], "< 300 ms")
        first_page(server)
        idle(server, "idle after all that")
        server.stop()


if __name__ == "__main__":
    main()
