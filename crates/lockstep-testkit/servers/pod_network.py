"""A network of pods on this machine: each pod has a network of its own, with an address and names as in a cluster.

Addresses are those of a bridge that goes away with the cluster. Names are those that the cluster's DNS would know: of
Services, and of pods under a headless Service. They are in one hosts file, which pods and the operator see in place of
/etc/hosts. Needs to be root on Linux.
"""

import os
import secrets
import signal
import subprocess


class Network:
    def __init__(self, folder):
        if os.geteuid() != 0:
            raise SystemExit("pods with a network of their own need root; run the tests as root, or in a container")
        self.mark = secrets.token_hex(3)
        self.bridge = f"ls{self.mark}"
        self.prefix = f"10.{128 + secrets.randbelow(100)}.{secrets.randbelow(250)}"
        self.next = 1
        self.names = []
        self.hosts = f"{folder}/hosts"
        self.folder = folder
        with open("/etc/hosts") as file:
            self.base = file.read().rstrip("\n") + "\n"
        with open(self.hosts, "w") as file:
            file.write(self.base)
        self.resolver = f"{folder}/resolv.conf"
        with open(self.resolver, "w") as file:
            file.write("nameserver 127.0.0.1\noptions timeout:1 attempts:1\n")
        self.ip("link", "add", self.bridge, "type", "bridge")
        self.ip("addr", "add", f"{self.prefix}.1/24", "dev", self.bridge)
        self.ip("link", "set", self.bridge, "up")

    @staticmethod
    def ip(*words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def add(self):
        """A network for one pod: its name and its address."""
        self.next += 1
        name, address = f"{self.bridge}-{self.next}", f"{self.prefix}.{self.next}"
        outside = f"{self.bridge}p{self.next}"
        self.ip("netns", "add", name)
        self.names.append(name)
        self.ip("link", "add", outside, "type", "veth", "peer", "name", "eth0", "netns", name)
        self.ip("link", "set", outside, "master", self.bridge, "up")
        self.ip("-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
        self.ip("-n", name, "link", "set", "lo", "up")
        self.ip("-n", name, "link", "set", "eth0", "up")
        self.ip("-n", name, "route", "add", "default", "via", f"{self.prefix}.1")
        return name, address

    def remove(self, name):
        """Ends what still runs in a pod, as the end of a container does, and takes its network away."""
        if name in self.names:
            self.names.remove(name)
            left = subprocess.run(["ip", "netns", "pids", name], capture_output=True, text=True).stdout.split()
            for pid in left:
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
            subprocess.run(["ip", "netns", "del", name], capture_output=True)

    def inside(self, name, words, ray=None):
        """A command that runs in a network, or in that of this machine if it has no name, and knows the names."""
        script = f"mount --bind {self.hosts} /etc/hosts && "
        if name:
            # Nobody is asked for names that the file does not have: it would not be reached, and waited for.
            script += f"mount --bind {self.resolver} /etc/resolv.conf && "
        if ray:
            # Ray's sockets and logs: other pods have theirs at the same path.
            os.makedirs("/tmp/ray", exist_ok=True)
            script += f"mount --bind {ray} /tmp/ray && "
        enter = ["ip", "netns", "exec", name] if name else []
        return [*enter, "unshare", "-m", "--propagation", "private", "sh", "-c", script + 'exec "$@"', "sh", *words]

    def know(self, names):
        """Writes what names stand for, in place: those who have the file mounted see it."""
        lines = "".join(f"{address} {' '.join(sorted(words))}\n" for address, words in sorted(names.items()))
        text = (self.base + lines).encode()
        with open(self.hosts, "rb") as file:
            if file.read() == text:
                return
        with open(self.hosts, "r+b") as file:
            file.write(text)
            file.truncate()

    def end(self):
        for name in list(self.names):
            self.remove(name)
        subprocess.run(["ip", "link", "del", self.bridge], capture_output=True)
