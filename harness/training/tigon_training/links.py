# SPDX-License-Identifier: Apache-2.0
"""What links the GPUs of a training."""
import os
import re
import subprocess


def links(ranks):
    """As nvidia-smi says it, 'NVLink 18' for NV18; '' where it does not, and of a single GPU."""
    try:
        printed = subprocess.run(["nvidia-smi", "topo", "-m"], capture_output=True, text=True, check=True, timeout=60).stdout
    except (OSError, subprocess.SubprocessError):
        return ""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    return of_topology(printed, visible.split(",")[:ranks] if visible else [str(gpu) for gpu in range(ranks)])


def of_topology(printed, gpus):
    """The kinds of links between some GPUs in what `nvidia-smi topo -m` prints."""
    lines = [line.split() for line in re.sub(r"\x1b\[[0-9;]*m", "", printed).splitlines()]
    rows = {words[0]: words[1:] for words in lines if len(words) > 2 and words[0].startswith("GPU") and "X" in words[1:]}
    places = {name: at for at, name in enumerate(rows)}  # a column has the place of its row
    names = [f"GPU{gpu}" for gpu in gpus]
    if not set(names) <= rows.keys():
        return ""
    found = {rows[a][places[b]] for a in names for b in names if a != b}
    return ", ".join(sorted(re.sub(r"^NV(\d+)$", r"NVLink \1", link) for link in found))
