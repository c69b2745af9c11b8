# SPDX-License-Identifier: Apache-2.0
"""A worker's own end in Python; the other side is process.h, the same end in C++ channel.h. Standard library only.

A worker is started with a socket, on which each request and each answer is a line of JSON, and with the memory that it
shares with the one who asks, if there is any. What it prints is no answer.
"""
import ctypes
import json
import mmap
import signal
import socket

SOCKET, MEMORY = 3, 4
CHUNK_BYTES = 1 << 16
PR_SET_PDEATHSIG = 1


def shared_memory(size):
    """The first `size` bytes of the memory that is shared."""
    return mmap.mmap(MEMORY, size)


class Channel:
    def __init__(self):
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)  # of the thread that started this
        self.socket = socket.socket(fileno=SOCKET)
        self.socket.set_inheritable(False)
        self.received = b""

    def requests(self):
        """Every request, until the other side is gone."""
        while True:
            while b"\n" not in self.received:
                chunk = self.socket.recv(CHUNK_BYTES)
                if not chunk:
                    return
                self.received += chunk
            line, self.received = self.received.split(b"\n", 1)
            yield json.loads(line)

    def send(self, message):
        self.socket.sendall(json.dumps(message).encode() + b"\n")

    def byte(self, spins=False):
        """The byte before a timed call, empty when the other side is gone. `spins`: stays awake, so that no wake-up counts."""
        while True:
            try:
                return self.socket.recv(1, socket.MSG_DONTWAIT if spins else 0)
            except BlockingIOError:
                continue

    def send_byte(self, byte):
        self.socket.sendall(byte)
