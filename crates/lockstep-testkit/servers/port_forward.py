"""A port of a pod through a websocket, as a kubelet serves it: `v4.channel.k8s.io`.

Messages begin with a byte: 0 for bytes of the connection, 1 for what went wrong. The first of each names the port.
"""

import base64
import hashlib
import select
import socket
import struct

WEBSOCKET = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
# The kind of a message that ends a websocket.
CLOSE = 8


def forward(request, address, port):
    """Answers a request by carrying bytes between its websocket and a port of a pod, until either ends."""
    request.close_connection = True
    key = request.headers["Sec-WebSocket-Key"] + WEBSOCKET
    request.send_response(101)
    request.send_header("Upgrade", "websocket")
    request.send_header("Connection", "Upgrade")
    request.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
    request.send_header("Sec-WebSocket-Protocol", "v4.channel.k8s.io")
    request.end_headers()
    for channel in (0, 1):
        frame(request, bytes([channel]) + struct.pack("<H", port))
    try:
        inside = socket.create_connection((address, port), timeout=5)
    except OSError as error:
        frame(request, bytes([1]) + f"error forwarding port {port} to the pod: {error}".encode())
        frame(request, b"", CLOSE)
        return
    inside.settimeout(None)
    try:
        carry(request, inside)
    except OSError:
        pass
    finally:
        inside.close()


def carry(request, inside):
    """In one thread: a connection with TLS must not be read and written at the same time."""
    outside, heard = request.connection, bytearray()
    while True:
        ready = [outside] if outside.pending() else select.select([outside, inside], [], [])[0]
        if inside in ready:
            data = inside.recv(1 << 15)
            if not data:
                frame(request, b"", CLOSE)
                return
            frame(request, bytes([0]) + data)
        if outside in ready:
            data = outside.recv(1 << 16)
            if not data:
                return
            heard += data
            while (found := message(heard)) is not None:
                kind, words = found
                if kind == CLOSE:
                    return
                if words[:1] == bytes([0]):
                    inside.sendall(words[1:])


def frame(request, data, kind=2):
    size = len(data)
    head = struct.pack("!BB", 0x80 | kind, size) if size < 126 else struct.pack("!BBH", 0x80 | kind, 126, size)
    request.wfile.write(head + data)
    request.wfile.flush()


def message(heard):
    """Takes the first message off what was heard: its kind and its bytes; nothing if it is not there as a whole."""
    if len(heard) < 2:
        return None
    size, at = heard[1] & 127, 2
    if size >= 126:
        at = 4 if size == 126 else 10
        size = int.from_bytes(heard[2:at], "big")
    if len(heard) < at + 4 + size:
        return None
    kind, mask = heard[0] & 15, heard[at:at + 4]
    data = heard[at + 4:at + 4 + size]
    del heard[:at + 4 + size]
    return kind, bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
