"""A stand-in for nodes: pods are bound to them, and their commands run as processes of this machine.

What is as on a node: a pod's life (binding, phases, exit codes, deletion with its grace, eviction), its volumes as
folders of its own, variables with the downward API, and logs, which the API server fetches from here over HTTPS. What
is not: there are no images, so a pod sees this machine's files. Paths at which volumes are mounted are replaced in its
command and variables by the folders that stand for them. Without a network of pods (pod_network.py), addresses are those
of the loopback: the name of index 0 under its Service is replaced by the address that index 0 of that job always has,
and 0.0.0.0 by the pod's own. Ports are forwarded by the websockets of `v4.channel.k8s.io`.
"""

import base64
import datetime
import hashlib
import http.server
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

LOOK = 0.1
WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


class Api:
    """Requests to the API server."""

    def __init__(self, server, token, authority):
        self.server, self.token = server, token
        self.context = ssl.create_default_context(cafile=authority)

    def ask(self, method, path, body=None, kind="application/json"):
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": kind}
        request = urllib.request.Request(self.server + path, data, headers, method=method)
        with urllib.request.urlopen(request, context=self.context, timeout=10) as answer:
            return json.load(answer)

    def tried(self, *words, **more):
        """The same, where it does not matter if the object has gone or the server is away."""
        try:
            return self.ask(*words, **more)
        except (OSError, ValueError):
            return None


class Pod:
    """A pod that runs here."""

    def __init__(self, kubelet, value):
        self.kubelet, self.value = kubelet, value
        meta = value["metadata"]
        self.namespace, self.name, self.uid = meta["namespace"], meta["name"], meta["uid"]
        self.path = f"/api/v1/namespaces/{self.namespace}/pods/{self.name}"
        self.lines, self.done, self.child, self.ending = [], False, None, False
        self.more = threading.Condition()
        self.network, self.ready = None, False
        if kubelet.network:
            self.network, self.address = kubelet.network.add()
        else:
            self.address = kubelet.address_of(value)
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        try:
            spec = self.value["spec"]["containers"][0]
            self.container = spec["name"]
            for first in self.value["spec"].get("initContainers", []):
                self.child = self.start(first, subprocess.STDOUT)
                self.hear()
                if self.child.wait() != 0:
                    raise OSError(f"the init container {first['name']} failed")
            self.child = self.start(spec, subprocess.STDOUT)
        except (OSError, KeyError, urllib.error.HTTPError) as error:
            self.container = self.value["spec"]["containers"][0]["name"]
            self.report("Failed", {"terminated": {"exitCode": 128, "reason": "StartError", "message": str(error)}})
            self.finish()
            return
        started = now().strftime("%Y-%m-%dT%H:%M:%SZ")
        running = {"running": {"startedAt": started}}
        self.ready = not self.kubelet.network or "readinessProbe" not in spec
        self.report("Running", running)
        if not self.ready:
            threading.Thread(target=self.probe, args=(spec, running), daemon=True).start()
        self.hear()
        code = self.child.wait()
        code = 128 - code if code < 0 else code
        self.finish()
        last = b"\n".join(line for _, line in self.lines[-5:]).decode(errors="replace")
        end = {"exitCode": code, "reason": "Completed" if code == 0 else "Error", "startedAt": started,
               "finishedAt": now().strftime("%Y-%m-%dT%H:%M:%SZ")}
        if code:
            end["message"] = last[-2000:]
        self.report("Failed" if code else "Succeeded", {"terminated": end})

    def start(self, spec, errors):
        mounts = self.mounts(spec)
        variables = self.variables(spec, mounts)
        words = [self.local(word, mounts) for word in spec.get("command", []) + spec.get("args", [])]
        # As the kubelet does with $(NAME).
        words = [re.sub(r"\$\((\w+)\)", lambda found: variables.get(found[1], found[0]), word) for word in words]
        if self.network:
            ray = f"{self.folder()}/ray"
            os.makedirs(ray, exist_ok=True)
            words = self.kubelet.network.inside(self.network, words, ray)
        return subprocess.Popen(
            words, env=variables, stdout=subprocess.PIPE, stderr=errors, stdin=subprocess.DEVNULL,
            start_new_session=True, cwd="/",
        )

    def hear(self):
        """Reads what the container writes, until it ends."""
        for line in self.child.stdout:
            with self.more:
                self.lines.append((now(), line.rstrip(b"\n")))
                self.more.notify_all()

    def probe(self, spec, running):
        """Asks whether the pod is ready, until it is."""
        asked = spec["readinessProbe"]
        while not self.done and not self.ending:
            if "exec" in asked:
                child = self.start({**spec, "command": asked["exec"]["command"], "args": []}, subprocess.STDOUT)
                child.communicate()
                self.ready = child.returncode == 0
            else:
                port = asked["httpGet"]["port"]
                named = [found["containerPort"] for found in spec.get("ports", []) if found.get("name") == port]
                url = f"http://{self.address}:{named[0] if named else port}{asked['httpGet'].get('path', '/')}"
                try:
                    with urllib.request.urlopen(url, timeout=2):
                        self.ready = True
                except OSError:
                    pass
            if self.ready:
                self.report("Running", running)
                return
            time.sleep(5 * LOOK)

    def finish(self):
        if self.network:
            self.kubelet.network.remove(self.network)
        with self.more:
            self.done = True
            self.more.notify_all()

    def folder(self):
        return f"{self.kubelet.folder}/pods/{self.uid}"

    def mounts(self, spec):
        """Folders for the volumes, by the path at which they are mounted in a container."""
        folder = self.folder()
        volumes = {}
        for volume in self.value["spec"].get("volumes", []):
            place = f"{folder}/{volume['name']}"
            if "hostPath" in volume:
                volumes[volume["name"]] = volume["hostPath"]["path"]
                continue
            if "persistentVolumeClaim" in volume:
                place = f"{self.kubelet.folder}/claims/{self.namespace}/{volume['persistentVolumeClaim']['claimName']}"
            os.makedirs(place, exist_ok=True)
            volumes[volume["name"]] = place
            for kind, plural, key in [("configMap", "configmaps", "name"), ("secret", "secrets", "secretName")]:
                if kind in volume:
                    self.fill(place, plural, volume[kind], volume[kind][key])
        mounts = {}
        for mount in sorted(spec.get("volumeMounts", []), key=lambda mount: len(mount["mountPath"])):
            path, place = mount["mountPath"], volumes[mount["name"]]
            if "subPath" not in mount:
                mounts[path] = place
                continue
            # One file of a volume, which may lie in another volume: there is a copy.
            outer = max((other for other in mounts if path.startswith(other + "/")), key=len, default=None)
            copy = mounts[outer] + path[len(outer):] if outer else f"{folder}/files{path}"
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            shutil.copyfile(f"{place}/{mount['subPath']}", copy)
            if not outer:
                mounts[path] = copy
        return mounts

    def fill(self, place, plural, volume, name):
        """Files of a ConfigMap or a Secret. One that is not there yet is waited for, as a kubelet does."""
        until = time.time() + 30
        while True:
            try:
                value = self.kubelet.api.ask("GET", f"/api/v1/namespaces/{self.namespace}/{plural}/{name}")
                break
            except urllib.error.HTTPError:
                if time.time() > until:
                    raise
                time.sleep(LOOK)
        secret = plural == "secrets"
        files = {}
        for key, text in (value.get("data") or {}).items():
            files[key] = base64.b64decode(text) if secret else text.encode()
        for key, text in (value.get("binaryData") or {}).items():
            files[key] = base64.b64decode(text)
        items = volume.get("items") or [{"key": key, "path": key} for key in files]
        for item in items:
            path = f"{place}/{item['path']}"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(files[item["key"]])
            os.chmod(path, volume.get("defaultMode", 0o644))

    def local(self, text, mounts):
        # In one go: a folder that stands for one path may lie below another.
        paths = "|".join(re.escape(path) for path in sorted(mounts, key=len, reverse=True))
        if paths:
            pattern = rf"(?<![\w./-])({paths})(?=$|[/\s'\":])"
            text = re.sub(pattern, lambda found: mounts[found[1]], text)
        if self.network:
            return text
        text = text.replace("0.0.0.0", self.address)
        # The name of a pod under its Service, as cluster DNS would resolve it.
        subdomain = self.value["spec"].get("subdomain")
        if subdomain:
            name = rf"\b{re.escape(subdomain)}-(\d+)\.{re.escape(subdomain)}\b"
            text = re.sub(name, lambda found: self.kubelet.address(subdomain, int(found[1])), text)
        return text

    def variables(self, spec, mounts):
        keep = {name: os.environ[name] for name in ["LANG", "LOCKSTEP_FAILPOINTS"] if name in os.environ}
        found = {**keep, "PATH": self.kubelet.path + ":" + os.environ["PATH"], "HOSTNAME": self.name}
        for source in spec.get("envFrom", []):
            name = source["secretRef"]["name"]
            value = self.kubelet.api.ask("GET", f"/api/v1/namespaces/{self.namespace}/secrets/{name}")
            found.update({key: base64.b64decode(text).decode() for key, text in value.get("data", {}).items()})
        for variable in spec.get("env", []):
            found[variable["name"]] = self.local(self.value_of(variable), mounts)
        return found

    def value_of(self, variable):
        source = variable.get("valueFrom")
        if not source:
            return variable.get("value", "")
        if "secretKeyRef" in source:
            reference = source["secretKeyRef"]
            value = self.kubelet.api.ask("GET", f"/api/v1/namespaces/{self.namespace}/secrets/{reference['name']}")
            return base64.b64decode(value["data"][reference["key"]]).decode()
        if "resourceFieldRef" in source:
            return "0"
        field = source.get("fieldRef", {}).get("fieldPath", "")
        meta = self.value["metadata"]
        label = re.match(r"metadata\.(labels|annotations)\['(.*)'\]", field)
        if label:
            return meta.get(label[1], {}).get(label[2], "")
        return {"status.podIP": self.address, "metadata.name": self.name, "metadata.namespace": self.namespace,
                "spec.nodeName": self.value["spec"].get("nodeName", "")}.get(field, "")

    def report(self, phase, state):
        """Tells the server how the pod is, until it has heard it."""
        while True:
            try:
                current = self.kubelet.api.ask("GET", self.path)
                if current["metadata"]["uid"] != self.uid:
                    return
                kept = [condition for condition in current["status"].get("conditions", [])
                        if condition["type"] not in ("Ready", "ContainersReady")]
                ready = "True" if phase == "Running" and self.ready else "False"
                status = {
                    "phase": phase, "podIP": self.address, "podIPs": [{"ip": self.address}], "hostIP": "127.0.0.1",
                    "startTime": now().strftime("%Y-%m-%dT%H:%M:%SZ"),
                    "conditions": kept + [{"type": kind, "status": ready} for kind in ("Ready", "ContainersReady")],
                    "containerStatuses": [{
                        "name": self.container, "image": self.value["spec"]["containers"][0]["image"], "imageID": "",
                        "ready": ready == "True", "restartCount": 0, "state": state,
                    }],
                }
                if "initContainers" in self.value["spec"]:
                    status["conditions"].append({"type": "Initialized", "status": "True"})
                self.kubelet.api.ask("PATCH", self.path + "/status", {"status": status}, "application/merge-patch+json")
                return
            except urllib.error.HTTPError as error:
                if error.code == 404:
                    return
            except OSError:
                pass
            time.sleep(LOOK)

    def end(self, grace):
        """Ends the process, in good order first, and then removes the pod."""
        if self.ending:
            return
        self.ending = True
        threading.Thread(target=self.ended, args=(grace,), daemon=True).start()

    def ended(self, grace):
        if self.child and not self.done:
            self.signal(signal.SIGTERM)
            until = time.time() + grace
            while not self.done and time.time() < until:
                time.sleep(0.02)
            self.signal(signal.SIGKILL)
        while not self.done:
            time.sleep(0.02)
        # The server has been told how it ended.
        time.sleep(LOOK)
        while True:
            try:
                self.kubelet.api.ask("DELETE", self.path, {"gracePeriodSeconds": 0,
                                                           "preconditions": {"uid": self.uid}})
                return
            except urllib.error.HTTPError as error:
                if error.code in (404, 409):
                    return
            except OSError:
                pass
            time.sleep(LOOK)

    def signal(self, number):
        try:
            os.kill(self.child.pid, number) if number != signal.SIGKILL else os.killpg(self.child.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def log(self, query, write):
        """Writes the log as a kubelet does."""
        follow = query.get("follow") == ["true"]
        stamps = query.get("timestamps") == ["true"]
        since = query.get("sinceTime", [""])[0]
        since = datetime.datetime.fromisoformat(since.replace("Z", "+00:00")) if since else None
        at = 0
        while True:
            with self.more:
                while follow and at == len(self.lines) and not self.done:
                    self.more.wait(1)
                new, at, done = self.lines[at:], len(self.lines), self.done
            for moment, line in new:
                if since and moment < since:
                    continue
                write((stamp(moment).encode() + b" " if stamps else b"") + line + b"\n")
            if not follow or (done and at == len(self.lines)):
                return


class Kubelet:
    """All nodes."""

    def __init__(self, api, folder, path, network):
        self.api, self.folder, self.path, self.network = api, folder, path, network
        self.pods, self.drained, self.gone, self.next = {}, set(), False, 0

    @staticmethod
    def nodes(count, api, folder, certificate, path, network=None):
        kubelet = Kubelet(api, folder, path, network)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), kubelet.handler())
        server.daemon_threads = True
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        port = server.server_address[1]
        kubelet.names = [f"node-{number}" for number in range(count)]
        for name in kubelet.names:
            api.ask("POST", "/api/v1/nodes", {
                "apiVersion": "v1", "kind": "Node",
                "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}},
            })
            api.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
                "conditions": [{"type": "Ready", "status": "True", "reason": "KubeletReady"}],
                "capacity": {"cpu": "64", "memory": "256Gi", "pods": "100"},
                "allocatable": {"cpu": "64", "memory": "256Gi", "pods": "100"},
            }}, kind="application/merge-patch+json")
        threading.Thread(target=kubelet.watch, daemon=True).start()
        return kubelet

    def address(self, job, index):
        """The address that an index of a job always has: names need no resolving then."""
        part = hashlib.sha256(job.encode()).digest()
        return f"127.{1 + part[0] % 250}.{part[1]}.{index + 1}"

    def address_of(self, pod):
        labels = pod["metadata"].get("labels", {})
        index = labels.get("batch.kubernetes.io/job-completion-index")
        if index is not None:
            return self.address(labels["batch.kubernetes.io/job-name"], int(index))
        return self.address(pod["metadata"]["uid"], 0)

    def watch(self):
        while not self.gone:
            listed = self.api.tried("GET", "/api/v1/pods")
            if listed is not None:
                self.look(listed["items"])
                if self.network:
                    self.know(listed["items"])
            time.sleep(LOOK)

    def look(self, pods):
        there, bound = set(), False
        for pod in pods:
            meta, spec = pod["metadata"], pod["spec"]
            there.add(meta["uid"])
            if meta.get("deletionTimestamp"):
                known = self.pods.get(meta["uid"])
                if known:
                    known.end(meta.get("deletionGracePeriodSeconds", 30))
                else:
                    self.api.tried("DELETE", f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}",
                                   {"gracePeriodSeconds": 0})
            elif not spec.get("nodeName"):
                # One at a time: the next one is bound when it is seen where this one is.
                if not bound:
                    bound = self.bind(pod, pods)
            elif meta["uid"] not in self.pods and pod["status"].get("phase") == "Pending":
                self.pods[meta["uid"]] = Pod(self, pod)
        for uid, pod in list(self.pods.items()):
            if uid not in there and pod.child and not pod.done:
                pod.signal(signal.SIGKILL)

    def know(self, pods):
        """Makes the names known that the cluster's DNS would know."""
        services = self.api.tried("GET", "/api/v1/services")
        names = {}
        for service in services["items"] if services else []:
            meta, selector = service["metadata"], service["spec"].get("selector")
            short = [meta["name"], f"{meta['name']}.{meta['namespace']}", f"{meta['name']}.{meta['namespace']}.svc"]
            full = [*short, short[-1] + ".cluster.local"]
            for pod in pods if selector else []:
                labels, address = pod["metadata"].get("labels", {}), pod["status"].get("podIP")
                same = pod["metadata"]["namespace"] == meta["namespace"] and pod["status"].get("phase") == "Running"
                if not address or not same or any(labels.get(key) != value for key, value in selector.items()):
                    continue
                found = names.setdefault(address, set())
                found.update(full)
                if pod["spec"].get("subdomain") == meta["name"]:
                    found.update(f"{pod['spec'].get('hostname')}.{name}" for name in full)
        if services:
            self.network.know(names)

    def bind(self, pod, pods):
        """What the scheduler does, where nothing but the selector of nodes, a drain, and a pod that must not be
        on the same node speaks against a node."""
        meta = pod["metadata"]
        path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}"
        open_nodes = [name for name in self.names if name not in self.drained]
        wanted = pod["spec"].get("nodeSelector") or {}
        open_nodes = [name for name in open_nodes if all(
            key == "kubernetes.io/hostname" and value == name for key, value in wanted.items())]
        affinity = pod["spec"].get("affinity", {}).get("podAntiAffinity", {})
        for term in affinity.get("requiredDuringSchedulingIgnoredDuringExecution", []):
            apart = term["labelSelector"]["matchLabels"]
            taken = {other["spec"].get("nodeName") for other in pods
                     if other["status"].get("phase") in ("Pending", "Running")
                     and all(other["metadata"].get("labels", {}).get(key) == value for key, value in apart.items())}
            open_nodes = [name for name in open_nodes if name not in taken]
        if not open_nodes:
            message = (f"0/{len(self.names)} nodes are available: {len(self.names)} node(s) didn't match Pod's node "
                       "affinity/selector.")
            conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message}]
            if not pod["status"].get("conditions"):
                self.api.tried("PATCH", path + "/status", {"status": {"conditions": conditions}},
                               kind="application/merge-patch+json")
            return False
        self.next += 1
        node = open_nodes[self.next % len(open_nodes)]
        self.api.tried("POST", path + "/binding", {
            "apiVersion": "v1", "kind": "Binding", "metadata": {"name": meta["name"]},
            "target": {"apiVersion": "v1", "kind": "Node", "name": node},
        })
        return bool(affinity)

    def obey(self, verb, what):
        running = [pod for pod in self.pods.values() if pod.child and not pod.done]
        if verb == "kill":
            for pod in running:
                if pod.name.startswith(what):
                    os.killpg(pod.child.pid, signal.SIGKILL)
        elif verb == "drain":
            self.drained.add(what)
            for pod in running:
                if pod.value["spec"]["nodeName"] == what:
                    self.api.tried("POST", pod.path + "/eviction", {
                        "apiVersion": "policy/v1", "kind": "Eviction",
                        "metadata": {"name": pod.name, "namespace": pod.namespace}})
        elif verb == "undrain":
            self.drained.discard(what)

    def end(self):
        self.gone = True
        for pod in self.pods.values():
            if pod.child and not pod.done:
                pod.signal(signal.SIGKILL)
        if self.network:
            self.network.end()

    def handler(self):
        kubelet = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                url = urllib.parse.urlsplit(self.path)
                parts = url.path.strip("/").split("/")
                found = [pod for pod in kubelet.pods.values() if [pod.namespace, pod.name] == parts[1:3]]
                if not found or parts[0] not in ("containerLogs", "portForward"):
                    self.send_error(404)
                    return
                if parts[0] == "portForward":
                    self.forward(found[-1], int(urllib.parse.parse_qs(url.query)["port"][0]))
                    return
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    found[-1].log(urllib.parse.parse_qs(url.query), self.piece)
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    self.close_connection = True

            def forward(self, pod, port):
                """Carries bytes between a websocket and a port of a pod, as a kubelet does."""
                self.close_connection = True
                key = self.headers["Sec-WebSocket-Key"] + WEBSOCKET
                self.send_response(101)
                self.send_header("Upgrade", "websocket")
                self.send_header("Connection", "Upgrade")
                self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
                self.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
                self.end_headers()
                for channel in (0, 1):
                    self.frame(bytes([channel]) + struct.pack("<H", port))
                try:
                    inside = socket.create_connection((pod.address, port), timeout=5)
                except OSError as error:
                    self.frame(bytes([1]) + f"error forwarding port {port} to pod {pod.name}: {error}".encode())
                    self.frame(b"", 8)
                    return
                inside.settimeout(None)

                def back():
                    try:
                        while data := inside.recv(1 << 15):
                            self.frame(bytes([0]) + data)
                        self.frame(b"", 8)
                    except OSError:
                        pass

                threading.Thread(target=back, daemon=True).start()
                try:
                    while (message := self.message()) is not None:
                        if message[:1] == bytes([0]):
                            inside.sendall(message[1:])
                    inside.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass

            def frame(self, data, kind=2):
                size = len(data)
                head = struct.pack("!BB", 0x80 | kind, size) if size < 126 else struct.pack("!BBH", 0x80 | kind, 126, size)
                self.wfile.write(head + data)
                self.wfile.flush()

            def message(self):
                """The next message of the websocket; nothing when it ends."""
                head = self.rfile.read(2)
                if len(head) < 2 or head[0] & 15 == 8:
                    return None
                size = head[1] & 127
                if size == 126:
                    size = struct.unpack("!H", self.rfile.read(2))[0]
                elif size == 127:
                    size = struct.unpack("!Q", self.rfile.read(8))[0]
                mask = self.rfile.read(4)
                data = self.rfile.read(size)
                return bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))

            def piece(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def log_message(self, *_):
                pass

        return Handler
