"""Ports for servers that must be told one and take it only seconds later.

A port is reserved for as long as this process lives: neither this process nor another test's can be given it meanwhile
(a locked file says so), and the system does not hand it out by itself either, since those lie above 32767.
"""

import fcntl
import os
import random
import socket
import tempfile

# What is open stays locked.
_locks = []


def _lock(port, how=0):
    """Makes the port this process's; raises BlockingIOError where it is another's."""
    folder = os.path.join(tempfile.gettempdir(), f"lockstep-test-ports-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    file = open(os.path.join(folder, str(port)), "w")
    fcntl.flock(file, fcntl.LOCK_EX | how)
    _locks.append(file)


def reserve():
    """A port that nobody has."""
    while True:
        port = random.randrange(20000, 32000)
        try:
            _lock(port, fcntl.LOCK_NB)
            with socket.socket() as probe:
                # Someone may have it who reserves nothing.
                probe.bind(("127.0.0.1", port))
            return port
        except OSError:
            continue


def keep(port):
    """Reserves a port that a server of the same test had, as soon as that server has ended."""
    _lock(port)
