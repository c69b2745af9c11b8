# SPDX-License-Identifier: Apache-2.0
"""How numbers are shown. Records hold SI base units; here they get a prefix and at least three digits."""
import math
import re


def number(value, digits=3):
    """'1.23', '0.00123', '12,300'; a dash for nothing."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if value == 0:
        return "0"
    if abs(value) >= 10000:
        return f"{value:,.0f}"
    if abs(value) < 1e-3:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def seconds(value):
    """Time with ns, µs, ms or s."""
    if value is None:
        return "–"
    for scale, unit in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if abs(value) >= scale:
            return f"{number(value / scale, 4)} {unit}"
    return f"{number(value * 1e9, 4)} ns"


def binary_bytes(value):
    """Memory in B, KiB, MiB or GiB."""
    if value is None:
        return "–"
    for scale, unit in ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB")):
        if abs(value) >= scale:
            return f"{number(value / scale)} {unit}"
    return f"{value:.0f} B"


def rate(value, unit):
    """A rate in bytes per second as GB/s or TB/s, in flop per second as GFLOP/s or TFLOP/s (decimal)."""
    if value is None:
        return "–"
    name = {"bytes_per_s": "B/s", "flop_per_s": "FLOP/s"}[unit]
    scale, prefix = (1e12, "T") if value >= 1e12 else (1e9, "G")
    return f"{number(value / scale)} {prefix}{name}"


def percent(value, digits=1):
    return "–" if value is None else f"{100 * value:.{digits}f} %"


def file_name(text):
    """`text` as a name of a file: an op's name comes from a record, which may hold anything."""
    return re.sub(r"[^\w.=+-]", "_", text)


def axis_of_rows(record):
    """The first of an op's axes, with which a case's sizes begin: "rope/forward/fused/bf16/T=3,Q=2,K=1,D=8"; "" where the id is none of ours."""
    parts = record["case_id"].split("/")
    return parts[4].split("=")[0] if len(parts) > 4 else ""


def axes_text(axes):
    """'T=4096 V=128256' in the order of the record."""
    return " ".join(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in axes.items())
