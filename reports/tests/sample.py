# SPDX-License-Identifier: Apache-2.0
"""A small made-up run for the tests of the report; the numbers mean nothing."""
import json


def header(device_kind="host", name="AMD EPYC"):
    return {"record": "run", "schema_version": "1.0.0", "run_id": "20260101T120000Z-1a2b3c4d", "seed": 42,
            "time": "2026-01-01T12:00:00.000Z", "started": "2026-01-01T12:00:00.000Z", "command": ["./tigon", "run"],
            "tool": {"name": "tigon", "version": "0.1.0", "commit": "0123456789abcdef", "dirty": False},
            "host": {"cpu": "AMD EPYC", "cores": 2}, "device": {"kind": device_kind, "name": name},
            "build": {"preset": device_kind}, "libraries": {"eigen": "3.4.0"}, "environment": {}, "tags": {}}


def check(verdict="passed", impl="fused", dtype="bf16", error=0.5, **more):
    return {"record": "check", "op": "rms_norm", "pass": "forward", "impl": impl, "dtype": dtype, "executor": "fast",
            "case_id": f"rms_norm/forward/{impl}/{dtype}/T=7,H=127", "axes": {"T": 7, "H": 127}, "options": {},
            "verdict": verdict, "reason": "", "repro": "./tigon check --case '…'",
            "outputs": [{"name": "y", "error_over_budget": error, "rms_over_budget": error / 2}], **more}


def bench(impl, t, v, seconds, executor="cuda", basis="cold"):
    return {"record": "bench", "op": "cross_entropy", "pass": "forward_backward", "impl": impl, "dtype": "bf16",
            "axes": {"T": t, "V": v}, "options": {}, "basis": basis, "executor": executor, "median_s": seconds,
            "q1_s": seconds * 0.99, "q3_s": seconds * 1.02, "n": 30, "flop": 8.0 * t * v,
            "bytes_min_bytes": 4.0 * t * v,
            "bandwidth_bytes_per_s": 4.0 * t * v / seconds, "flop_rate_per_s": 8.0 * t * v / seconds,
            "share_of_copy": min(0.9, 1e-12 * t * v / seconds), "share_of_gemm": None, "bound": "memory",
            "verdict": "passed", "reason": ""}


def memory(impl, t, v, extra):
    return {"record": "memory", "op": "cross_entropy", "pass": "forward_backward", "impl": impl, "dtype": "bf16",
            "axes": {"T": t, "V": v}, "options": {}, "tensors_bytes": 2 * t * v, "workspace_bytes": 64,
            "planned_bytes": 64, "arena_bytes": extra, "device_bytes": None, "host_bytes": None}


def trace():
    return {"record": "trace", "op": "rms_norm", "pass": "forward", "impl": "fused", "dtype": "bf16",
            "axes": {"T": 64, "H": 1024}, "options": {}, "bytes_loaded_bytes": 133120, "bytes_stored_bytes": 131328,
            "bytes_min_bytes": 264448, "traffic_ratio": 1.0, "requests": 10, "sectors": 160,
            "sectors_per_request": 16.0,
            "bank_conflicts": 0, "barriers": 64, "atomics": 0, "kernels": []}


def converge(impl, losses):
    return {"record": "converge", "config": "tiny", "impl": impl, "dtype": "bf16", "steps": len(losses),
            "parameters": 1000000, "vocabulary": 4096, "loss": losses, "final_loss": losses[-1], "held_out_loss": 6.0,
            "peak_bytes": 1 << 28, "planned_bytes": 1 << 27, "tokens_per_s": 1000.0,
            "data": "/usr/share/common-licenses", "attention": "host threads"}


def parts(impl, t, seconds=0.01, outcome="measured", v=4096, **options):
    """A step of `seconds` whose loss takes half of it and holds 4 bytes a logit; nothing is timed unless measured."""
    is_measured = outcome == "measured"
    held = {"norms": 1 << 20, "linear": 1 << 21, "loss": 4 * t * v, "weights": 1 << 22}
    spent = {"norms": 0.1 * seconds, "linear": 0.3 * seconds, "loss": 0.5 * seconds}
    planned = sum(held.values()) + 1024
    sizes = ",".join(f"{key}={value}" for key, value in {"T": t, "V": v, "batch": 4, **options}.items())
    return {"record": "converge_parts", "cell": f"tiny/{impl}/bf16/{sizes}", "config": "tiny", "impl": impl, "kernels": [],
            "dtype": "bf16", "axes": {"T": t, "V": v}, "batch": 4, "options": options, "executor": "fast",
            "outcome": outcome,
            "reason": "planned 3 GiB of 2 GiB" if outcome == "out of memory" else "", "limit_bytes": 1 << 31,
            "planned_bytes": planned, "peak_bytes": planned if is_measured else None, "unused_bytes": 1024,
            "parts": [{"part": name, "seconds_s": spent.get(name, 0.0) if is_measured else None, "bytes": held.get(name, 0),
                       "intermediates_bytes": 0 if is_measured else None}
                      for name in ("norms", "linear", "loss", "weights", "rotary")],
            "step_s": seconds if is_measured else None, "coverage": 0.9 if is_measured else None,
            "tokens_per_s": 4 * t / seconds if is_measured else None, "attention": "host threads",
            "linear_flop": 3e13 * seconds if is_measured else None, "linear_alone_s": 0.28 * seconds if is_measured else None}


def claim(claim, verdict, value=None, measured="-", reason=""):
    return {"record": "claim", "experiment": "train", "claim": claim, "quantity": "gain", "number": 0.2, "paper": "+20%",
            "source": "a paper", "value": value, "measured": measured, "basis": "" if value is None else "tokens/s",
            "size": "tiny", "on": "host executor: AMD EPYC", "verdict": verdict, "reason": reason}


def host_run():
    verdict = {"record": "converge_verdict", "config": "tiny", "dtype": "bf16", "verdict": "passed", "reason": "",
               "largest_difference": 0.002, "budget": 0.01, "differences": [0.0, 0.002], "budgets": [0.001, 0.01],
               "equivalence": [{"what": "held out", "difference": 0.001, "lower": -0.01, "upper": 0.012, "margin": 0.1,
                                "confidence": 0.95, "noticed": 0.09, "shown": True}],
               "pairs": [{"seed": 3, "learning_rate": 0.0015, "last_quarter": 0.001, "last_quarter_margin": 0.03,
                          "held_out": 0.002, "held_out_margin": 0.03}]}
    gradients = {"record": "converge_gradients", "config": "micro", "dtype": "bf16", "verdict": "passed", "reason": "",
                 "first_step": 0, "parameters": [
                     {"step": 1, "parameter": "head", "error": 0.004, "budget": 0.02},
                     {"step": 1, "parameter": "layers.0.qkv", "error": 0.006, "budget": 0.02}]}
    control = {"record": "mutant", "mutant": "rope.sin_sign", "group": "training", "what": "turned the other way",
               "outcome": "caught", "reason": "gradient of head is off", "step": 2, "training": "tiny, 30 steps",
               "parts": [{"part": "states bf16", "verdict": "incorrect_numerical", "step": 2, "reason": "gradient of head is off"},
                         {"part": "curves bf16", "verdict": "passed", "step": 0, "reason": ""}]}
    error = {"error": 0.006, "across": 0.005, "along": 0.001, "cosine": 0.99999, "bias": 0.0004}
    states = {"record": "converge_states", "config": "tiny", "dtype": "bf16", "reference": "f32, naive, on the same device",
              "verdict": "passed", "reason": "", "first_step": -1, "parameters": [
                  {"step": 10, "parameter": name, "naive": error, "fused": {**error, "across": across}, "ratio": 1.0,
                   "budget": 0.01, "bias_budget": 0.005} for name, across in (("embedding", 0.005), ("layers.1.o", 0.007))]}
    repeat = {"record": "converge_repeat", "config": "tiny", "dtype": "bf16", "impl": "fused", "steps": 20,
              "launches": "host executor", "again": "host executor", "verdict": "passed", "reason": "", "first_step": -1}
    seed = {"record": "converge_seed", "config": "tiny", "steps": 30, "seed": 101, "executor": "fast", "seconds_s": 1.0,
            "parts": [{"part": "curves bf16", "verdict": "incorrect_numerical", "step": 7, "reason": "losses differ by 0.1"}]}
    return [header(), check(), check(impl="naive", error=0.9), check(dtype="f32", error=0.1), trace(),
            bench("fused", 64, 1024, 0.01, "fast", "wall"), memory("naive", 64, 1024, 1 << 20),
            memory("naive", 64, 2048, 1 << 21), memory("fused", 64, 1024, 256), memory("fused", 64, 2048, 256),
            converge("naive", [8.3, 7.1]), converge("fused", [8.3, 7.102]), verdict,
            {**converge("fused", [8.3, 7.2]), "twin": 1}, gradients, states, repeat, seed, control,
            claim("throughput", "not measured here", reason="no GPU here"), claim("memory", "holds", 0.61, "-61%"),
            {"record": "end", "passed": 3, "failed": 0, "skipped": 0, "exit_code": 0, "seconds_s": 9,
             "interrupted": False}]


def gpu_run():
    cells = [bench(impl, 8192, v, v * 1e-8 * factor) for v in (32000, 128256)
             for impl, factor in (("naive", 4), ("fused", 1.2))]
    ceilings = [{"record": "ceiling", "name": "copy", "value": 4.2e12, "unit": "bytes_per_s"},
                {"record": "ceiling", "name": "gemm_bf16", "value": 8e14, "unit": "flop_per_s"}]
    return [header("cuda", "NVIDIA H200"), check(executor="cuda"), *ceilings, *cells]


def text(records):
    """The lines of records, with the keys that every record of a run has."""
    common = {"schema_version": "1.0.0", "run_id": "20260101T120000Z-1a2b3c4d"}
    return "".join(json.dumps(_named({**common, **record})) + "\n" for record in records)


def _named(record):
    if record["record"] in ("bench", "memory", "trace") and "case_id" not in record:
        shape = ",".join(f"{key}={value}" for key, value in record["axes"].items())
        names = "/".join(record[key] for key in ("op", "pass", "impl", "dtype"))
        record["case_id"] = f"{names}/{shape},inputs=normal,seed=42"
    return record
