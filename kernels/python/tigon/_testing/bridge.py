# SPDX-License-Identifier: Apache-2.0
"""The judge's worker protocol, spoken by the process that has the function, so that closures and lambdas work.

The judge starts a program where it else loads a library. That program hands its connection to the judge, and the memory
that both share, to this process over a socket, and stays until this process lets it go.
"""
import json
import mmap
import os
import pathlib
import selectors
import socket
import subprocess
import sys
from typing import Any, Protocol

_HANDS_OVER = """#!{python} -IS
import os, socket, sys
link = socket.socket(socket.AF_UNIX)
link.connect({address!r})
socket.send_fds(link, [sys.argv[1].encode()], [3, 4])  # of harness/worker: the connection, the memory
os.close(3)
os.close(4)
link.recv(1)
"""
_CHUNK = 1 << 16


class Kernels(Protocol):
    """What is judged."""

    def described(self) -> list[dict[str, Any]]:
        """Each op and dtype that it has."""

    def run(self, index: int, call: dict[str, Any], memory: mmap.mmap) -> dict[str, Any]:
        """Runs one of them on a call in the shared memory."""


class _Connection:
    """One process of the judge, which asks and waits."""

    def __init__(self, link: socket.socket, kernels: Kernels):
        """ConnectionError: the other side was ended before it handed anything over, as the judge does when its time is over."""
        sandbox, handed, _, _ = socket.recv_fds(link, _CHUNK, 2)
        if len(handed) < 2:
            raise ConnectionError("nothing was handed over")
        asks, memory = handed
        self.link, self.socket, self.descriptor = link, socket.socket(fileno=asks), memory
        self.kernels, self.received = kernels, b""
        self.memory: mmap.mmap | None = None
        self.send({"ops": kernels.described(), "sandbox": sandbox.decode()})  # "load", which was asked before

    def send(self, message: dict[str, Any]) -> None:
        try:
            self.socket.sendall(json.dumps(message).encode() + b"\n")
        except (BrokenPipeError, ConnectionResetError):
            pass  # it is gone, which the next read tells

    def read(self) -> bool:
        """Answers what has come; False when the other side is gone."""
        try:
            chunk = self.socket.recv(_CHUNK)
        except ConnectionResetError:
            chunk = b""
        self.received += chunk
        while b"\n" in self.received:
            line, self.received = self.received.split(b"\n", 1)
            self.send(self.answer(json.loads(line)))
        return bool(chunk)

    def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        if request["do"] == "run":
            return self.kernels.run(request["op"], request["call"], self.map(request["bytes"]))
        if request["do"] == "workspace":
            return {"bytes": 0}
        return {"code": 0, "message": ""}

    def map(self, size: int) -> mmap.mmap:
        if self.memory is None or len(self.memory) < size:
            self.memory = mmap.mmap(self.descriptor, size)
        return self.memory

    def close(self) -> None:
        self.socket.close()
        self.link.close()
        os.close(self.descriptor)


def judge(words: list[str], folder: pathlib.Path, kernels: Kernels) -> tuple[int, str]:
    """Runs the judge and answers it: its exit code and what it said. `words`: the program and its arguments."""
    address, handing = folder / "link", folder / "kernels.py"
    handing.write_text(_HANDS_OVER.format(python=sys.executable, address=str(address)), encoding="utf-8")
    handing.chmod(0o700)
    connections: list[_Connection] = []
    with socket.socket(socket.AF_UNIX) as listener, selectors.DefaultSelector() as selector:
        listener.bind(str(address))
        listener.listen()
        process = subprocess.Popen([*words, "--impl-from", str(handing)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        assert process.stdout is not None
        said = b""
        selector.register(listener, selectors.EVENT_READ)
        selector.register(process.stdout, selectors.EVENT_READ)
        try:
            while True:
                for key, _ in selector.select():
                    if key.fileobj is listener:
                        link = listener.accept()[0]
                        try:
                            connections.append(_Connection(link, kernels))
                        except ConnectionError:
                            link.close()
                            continue
                        selector.register(connections[-1].socket, selectors.EVENT_READ, connections[-1])
                    elif key.data is None:
                        chunk = os.read(process.stdout.fileno(), _CHUNK)
                        if not chunk:
                            return process.wait(), said.decode(errors="replace")
                        said += chunk
                    elif not key.data.read():
                        selector.unregister(key.fileobj)
                        connections.remove(key.data)
                        key.data.close()
        finally:
            process.kill()
            process.wait()
            process.stdout.close()
            for connection in connections:
                connection.close()
