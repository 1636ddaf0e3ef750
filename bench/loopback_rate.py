"""The floor of bench/collective.py: processes that send the bytes of an exchange over loopback, and do nothing else.

To have the sum of all gradients, a rank must send and receive twice what others own: once partial sums, once results.
Here each does just that, with every peer at once, from memory and into memory, without adding, copying or waiting for
one before the other: what any exchange through the kernel's sockets has to take, about. Each line on standard input
is a number of steps; each is answered with one line of JSON.
"""

import json
import multiprocessing as processes
import socket
import sys
import threading
import time

# What one call sends or receives; the fastest of those that were tried.
PIECE = 4 << 20


def send(peer, data):
    for begin in range(0, len(data), PIECE):
        peer.sendall(data[begin : begin + PIECE])


def receive(peer, into):
    got = 0
    while got < len(into):
        got += peer.recv_into(into[got : got + PIECE])


def connections(rank, listeners):
    """A connection to every other rank: the later rank connects."""
    peers = []
    for other in range(rank):
        peer = socket.create_connection(listeners[other].getsockname())
        peer.sendall(bytes([rank]))
        peers.append(peer)
    for _ in range(rank + 1, len(listeners)):
        peer, _ = listeners[rank].accept()
        peer.recv(1)
        peers.append(peer)
    for peer in peers:
        peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return peers


def rank_main(rank, listeners, numbers, begin, orders, answers):
    peers = connections(rank, listeners)
    size = 2 * 4 * numbers // len(listeners)
    buffers = [(memoryview(bytearray(size)), memoryview(bytearray(size))) for _ in peers]
    while count := orders.get():
        begin.wait()
        started = time.perf_counter()
        for _ in range(count):
            threads = [threading.Thread(target=send, args=(peer, out)) for peer, (out, _) in zip(peers, buffers)]
            threads += [threading.Thread(target=receive, args=(peer, into)) for peer, (_, into) in zip(peers, buffers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        answers.put(time.perf_counter() - started)


def main():
    workers, numbers = map(int, sys.argv[1:])
    context = processes.get_context("fork")
    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(workers)]
    begin, answers = context.Barrier(workers), context.SimpleQueue()
    orders = [context.SimpleQueue() for _ in range(workers)]
    for rank, order in enumerate(orders):
        context.Process(target=rank_main, args=(rank, listeners, numbers, begin, order, answers), daemon=True).start()
    for line in sys.stdin:
        for order in orders:
            order.put(int(line))
        print(json.dumps({"seconds": max(answers.get() for _ in range(workers))}), flush=True)
    for order in orders:
        order.put(0)


if __name__ == "__main__":
    main()
