"""One pod as a process of this machine; kubelet.py says what of it is as on a node."""

import base64
import datetime
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.error
import urllib.request

from kube_api import LOOK


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%S.%f") + "000Z"


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
