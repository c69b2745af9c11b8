# SPDX-License-Identifier: Apache-2.0
"""Writes a run's records, for programs in Python."""
import datetime
import json
import math
import os
import pathlib
import platform
import secrets
import time

from . import records


def now():
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def new_run_id():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ-") + secrets.token_hex(4)


def host_block():
    cpu = next((line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")), "")
    name = next((line.split("=", 1)[1].strip().strip('"') for line in _lines("/etc/os-release")
                 if line.startswith("PRETTY_NAME=")), platform.system())
    memory = next((int(line.split()[1]) * 1024 for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), 0)
    return {"name": platform.node(), "os": name, "kernel": f"{platform.system()} {platform.release()}", "cpu": cpu,
            "cores": os.cpu_count() or 0, "memory_bytes": memory}


def _lines(path):
    try:
        return pathlib.Path(path).read_text(errors="replace").splitlines()
    except OSError:
        return []


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(v) for key, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


class Recorder:
    """A records file: the run record first, the end record last, every line flushed, all synced at the end.

    `commit` is (commit, whether the tree has changes). `like` is the run record of a program that was measured: device,
    build and libraries are taken from it.
    """

    def __init__(self, path, command, commit, like=None, seed=42):
        self.path, self.run_id, self.begun = pathlib.Path(path), new_run_id(), time.monotonic()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self.file = open(self.path, "w", encoding="utf-8")
        like = like or {}
        self.write("run", {
            "tool": {"name": "tigon", "version": like.get("tool", {}).get("version", "0.1.0"), "commit": commit[0],
                     "dirty": commit[1]},
            "command": command, "seed": seed, "started": now(), "host": like.get("host") or host_block(),
            "device": like.get("device", {"kind": "host"}),
            "build": like.get("build", {"preset": "", "compiler": "", "flags": "", "type": ""}),
            "libraries": like.get("libraries", {}), "environment": like.get("environment", {}), "tags": {}})

    def write(self, kind, fields):
        head = records.head(kind, self.run_id, now())
        self.file.write(records.with_sum(json.dumps(_finite({**head, **fields}))) + "\n")
        self.file.flush()

    def end(self, passed, failed, skipped, exit_code, interrupted=False):
        self.write("end", {"passed": passed, "failed": failed, "skipped": skipped, "exit_code": exit_code,
                           "seconds_s": time.monotonic() - self.begun, "interrupted": interrupted})
        os.fsync(self.file.fileno())
        self.file.close()
