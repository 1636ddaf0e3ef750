"""A stand-in for nodes: pods are bound to them, and their commands run as processes of this machine.

What is as on a node: a pod's life (binding, phases, exit codes, deletion with its grace, eviction), its volumes as
folders of its own, variables with the downward API, and logs, which the API server fetches from here over HTTPS. What
is not: there are no images, so a pod sees this machine's files. Paths at which volumes are mounted are replaced in its
command and variables by the folders that stand for them. Without a network of pods (pod_network.py), addresses are those
of the loopback: the name of index 0 under its Service is replaced by the address that index 0 of that job always has,
and 0.0.0.0 by the pod's own. Ports are forwarded by the websockets of `v4.channel.k8s.io`.
"""

import hashlib
import http.server
import os
import signal
import ssl
import threading
import time
import urllib.parse

import port_forward
from kube_api import LOOK
from pod import Pod


class Kubelet:
    """All nodes."""

    def __init__(self, api, folder, path, network, binds):
        self.api, self.folder, self.path, self.network, self.binds = api, folder, path, network, binds
        self.pods, self.drained, self.gone, self.next = {}, set(), False, 0

    @staticmethod
    def nodes(count, api, folder, certificate, path, network=None, binds=True):
        """So many nodes. Unless they bind pods themselves, a scheduler is to do it."""
        kubelet = Kubelet(api, folder, path, network, binds)
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
            # The server marks a new node as not ready, and nobody here would take the mark off.
            api.ask("PATCH", f"/api/v1/nodes/{name}", {"spec": {"taints": None}}, kind="application/merge-patch+json")
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
                if self.binds and not bound:
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
            self.close(what, True)
            for pod in running:
                if pod.value["spec"]["nodeName"] == what:
                    self.api.tried("POST", pod.path + "/eviction", {
                        "apiVersion": "policy/v1", "kind": "Eviction",
                        "metadata": {"name": pod.name, "namespace": pod.namespace}})
        elif verb == "undrain":
            self.drained.discard(what)
            self.close(what, False)

    def close(self, node, closed):
        self.api.ask("PATCH", f"/api/v1/nodes/{node}", {"spec": {"unschedulable": closed}},
                     kind="application/merge-patch+json")

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
                    port = int(urllib.parse.parse_qs(url.query)["port"][0])
                    port_forward.forward(self, found[-1].address, port)
                    return
                self.send_response(200)
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                try:
                    found[-1].log(urllib.parse.parse_qs(url.query), self.piece)
                    self.wfile.write(b"0\r\n\r\n")
                except OSError:
                    self.close_connection = True

            def piece(self, data):
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()

            def log_message(self, *_):
                pass

        return Handler
