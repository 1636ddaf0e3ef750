"""A real control plane of Kubernetes on loopback, with nodes that are threads of this process.

usage: kube_cluster.py PROGRAMS FOLDER [--path PATH] [--kubectl PROGRAM] [--nodes N] [--kuberay FOLDER] [--network] [--gangs]

With --network, pods have networks of their own. With --gangs, Kubernetes' own gang scheduling is switched on, and its real
scheduler places pods. PROGRAMS and the folder of KubeRay are what kube/build.sh made. Says in one line of JSON where its
kubeconfig is, and ends when its standard input does. Lines on standard input are orders: `restart apiserver`, `kill POD`, `drain NODE`, `undrain NODE`.
"""

import argparse
import json
import os
import secrets
import signal
import subprocess
import sys
import time
import urllib.request

from certificate import certificate
from kube_api import Api
from kubelet import Kubelet
from pod_network import Network
from ports import reserve


class Cluster:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = os.path.abspath(arguments.folder)
        self.children = {}
        self.etcd = reserve()
        self.port = reserve()
        self.server = f"https://127.0.0.1:{self.port}"
        self.token = secrets.token_hex(16)
        self.guest = secrets.token_hex(16)

    def start(self):
        folder = self.folder
        self.certificate = certificate(folder)
        with open(f"{folder}/tokens.csv", "w") as file:
            file.write(f'{self.token},admin,admin,"system:masters"\n{self.guest},guest,guest\n')
        subprocess.run(["openssl", "genrsa", "-out", f"{folder}/accounts.key", "2048"], check=True, capture_output=True)
        self.kubeconfig("admin", self.token)
        self.kubeconfig("guest", self.guest)
        peers = reserve()
        self.run("etcd", [
            "--data-dir", f"{folder}/etcd", "--listen-client-urls", f"http://127.0.0.1:{self.etcd}",
            "--advertise-client-urls", f"http://127.0.0.1:{self.etcd}",
            "--listen-peer-urls", f"http://127.0.0.1:{peers}",
            "--initial-advertise-peer-urls", f"http://127.0.0.1:{peers}",
            "--initial-cluster", f"default=http://127.0.0.1:{peers}", "--unsafe-no-fsync",
        ])
        self.apiserver()
        self.run("controller-manager", [
            "--kubeconfig", f"{folder}/admin.yaml", "--leader-elect=false", "--secure-port=0",
            "--controllers=job-controller,garbage-collector-controller,ttl-after-finished-controller,"
            "endpointslice-controller,endpoints-controller,namespace-controller,resourcequota-controller,"
            "disruption-controller,ttl-controller,deployment-controller,replicaset-controller"
            + (",podgroup-protection-controller" if self.arguments.gangs else ""),
            "--use-service-account-credentials=false", *self.gates(),
        ])
        self.network = Network(folder) if self.arguments.network else None
        self.kubelets = Kubelet.nodes(
            self.arguments.nodes, Api(self.server, self.token, f"{folder}/ca.pem"), folder, self.certificate,
            self.arguments.path, self.network, binds=not self.arguments.gangs,
        )
        if self.arguments.gangs:
            self.run("scheduler", ["--kubeconfig", f"{folder}/admin.yaml", "--leader-elect=false", "--secure-port=0",
                                   *self.gates()])
        if self.arguments.kuberay:
            self.kuberay()

    def gates(self):
        return ["--feature-gates=GenericWorkload=true"] if self.arguments.gangs else []

    def apiserver(self):
        folder = self.folder
        self.run("apiserver", [
            "--etcd-servers", f"http://127.0.0.1:{self.etcd}", "--bind-address", "127.0.0.1",
            "--secure-port", str(self.port), "--advertise-address", "127.0.0.1",
            "--tls-cert-file", self.certificate[0], "--tls-private-key-file", self.certificate[1],
            "--token-auth-file", f"{folder}/tokens.csv", "--authorization-mode", "RBAC",
            "--service-account-key-file", f"{folder}/accounts.key",
            "--service-account-signing-key-file", f"{folder}/accounts.key",
            "--service-account-issuer", "https://lockstep.test", "--service-cluster-ip-range", "10.9.0.0/16",
            "--disable-admission-plugins", "ServiceAccount", "--kubelet-preferred-address-types", "InternalIP",
            # Nobody looks for the Service `kubernetes`, and its endpoint could not be on loopback.
            "--endpoint-reconciler-type", "none", "--cert-dir", folder, "--profiling=false", *self.gates(),
            *(["--runtime-config=scheduling.k8s.io/v1beta1=true"] if self.arguments.gangs else []),
        ])
        until = time.time() + 120
        while True:
            try:
                request = urllib.request.Request(self.server + "/readyz", headers={
                    "Authorization": f"Bearer {self.token}"})
                api = Api(self.server, self.token, f"{folder}/ca.pem")
                with urllib.request.urlopen(request, context=api.context, timeout=2):
                    return
            except OSError:
                if time.time() > until or self.children["apiserver"].poll() is not None:
                    sys.exit("the API server did not start: " + self.last_words("apiserver"))
                time.sleep(0.1)

    def kuberay(self):
        kubectl = [self.arguments.kubectl, "--kubeconfig", f"{self.folder}/admin.yaml"]
        crds = f"{self.arguments.kuberay}/crds"
        subprocess.run([*kubectl, "create", "-f", crds], check=True, capture_output=True)
        # Until then the server does not know the kinds.
        subprocess.run([*kubectl, "wait", "--for=condition=Established", "crd", "--all", "--timeout=120s"], check=True,
                       capture_output=True)
        self.run("kuberay", ["--enable-leader-election=false", "--metrics-addr=:0",
                             "--health-probe-bind-address=:0"],
                 {"KUBECONFIG": f"{self.folder}/admin.yaml"})

    def kubeconfig(self, user, token):
        with open(f"{self.folder}/{user}.yaml", "w") as file:
            file.write(f"""apiVersion: v1
kind: Config
current-context: test
clusters:
- name: test
  cluster: {{server: "{self.server}", certificate-authority: "{self.folder}/ca.pem"}}
users:
- name: {user}
  user: {{token: "{token}"}}
contexts:
- name: test
  context: {{cluster: test, user: {user}, namespace: default}}
""")

    def run(self, program, words, variables=None):
        log = open(f"{self.folder}/{program}.log", "ab")
        programs = self.arguments.kuberay if program == "kuberay" else self.arguments.programs
        words = [f"{programs}/{program}", *words]
        if program == "kuberay" and self.network:
            words = self.network.inside(None, words)
        self.children[program] = subprocess.Popen(
            words, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            env={**os.environ, **(variables or {})},
        )

    def last_words(self, program):
        with open(f"{self.folder}/{program}.log", errors="replace") as file:
            return "".join(file.readlines()[-10:])

    def end(self):
        if hasattr(self, "kubelets"):
            self.kubelets.end()
        for name in ["kuberay", "scheduler", "controller-manager", "apiserver", "etcd"]:
            child = self.children.get(name)
            if child and child.poll() is None:
                child.send_signal(signal.SIGTERM if name == "etcd" else signal.SIGKILL)
        for child in self.children.values():
            try:
                child.wait(10)
            except subprocess.TimeoutExpired:
                child.kill()

    def obey(self, order):
        verb, _, what = order.strip().partition(" ")
        if verb == "restart" and what == "apiserver":
            self.children["apiserver"].kill()
            self.children["apiserver"].wait()
            self.apiserver()
        else:
            self.kubelets.obey(verb, what)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("programs")
    parser.add_argument("folder")
    parser.add_argument("--path", default="")
    parser.add_argument("--kubectl", default="kubectl")
    parser.add_argument("--nodes", type=int, default=3)
    parser.add_argument("--kuberay")
    parser.add_argument("--network", action="store_true")
    parser.add_argument("--gangs", action="store_true")
    cluster = Cluster(parser.parse_args())
    try:
        cluster.start()
        print(json.dumps({"endpoint": cluster.server, "kubeconfig": f"{cluster.folder}/admin.yaml",
                          "guest": f"{cluster.folder}/guest.yaml"}), flush=True)
        for order in sys.stdin:
            cluster.obey(order)
            print(json.dumps({"done": order.strip()}), flush=True)
    finally:
        cluster.end()


main()
