# SPDX-License-Identifier: Apache-2.0
"""Tests of bench --peers. Run: TIGON_BUILD=build/host python3 harness/peers/tests/test_peers.py"""
import ast
import contextlib
import importlib.util
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import types
import unittest
import unittest.mock

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
sys.path[:0] = [str(HERE.parent), str(ROOT / "harness/worker"), str(ROOT / "reports")]

from tigon_peers import calls, known  # noqa: E402
from tigon_report import schema  # noqa: E402

TIGON = str(pathlib.Path(os.environ.get("TIGON_BUILD") or ROOT / "build/host") / "bin/tigon")
HAS_NUMPY, HAS_TORCH = (importlib.util.find_spec(name) is not None for name in ("numpy", "torch"))


def all_ops():
    said = subprocess.run([TIGON, "describe", "--all", "--json"], capture_output=True, text=True, check=True).stdout
    return [op["name"] for op in json.loads(said)["ops"]]


class BenchTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = pathlib.Path(folder.name) / "records.jsonl"

    def bench(self, *words):
        """(exit code, what it said, records) of a quick bench of fused beside peers."""
        done = subprocess.run([TIGON, "bench", "--quick", "--samples", "2", "--impl", "fused", "--json", self.file, *words],
                              env={**os.environ, "TIGON_PEERS": str(HERE), "TIGON_PEER_PYTHON": sys.executable, "OMP_NUM_THREADS": "1"},
                              capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
        records = [json.loads(line) for line in self.file.read_text().splitlines()] if self.file.exists() else []
        return done.returncode, done.stdout + done.stderr, records

    def one(self, records, kind, impl, one_pass="forward"):
        found = [r for r in records if r["record"] == kind and r.get("impl") == impl and r["pass"] == one_pass]
        self.assertEqual(len(found), 1, found)
        return found[0]

    def refused(self, *words):
        code, said, records = self.bench(*words)
        self.assertEqual(code, 0, said)  # a peer's failure is a result, not ours
        return self.one(records, "bench", "fake"), said

    def test_an_unknown_peer(self):
        code, said, records = self.bench("--peers", "torch,nobody")
        self.assertEqual((code, records), (2, []))
        self.assertIn("no peer 'nobody'; known: absent, apex, cce, compile, fake,", said)
        self.assertEqual(len(said.strip().splitlines()), 1)

    def test_no_peer_and_two_kinds_of_others(self):
        self.assertEqual(self.bench("--peers", "")[0], 2)
        self.assertEqual(self.bench("--peers", "fake", "--impl-from", TIGON)[0], 2)

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_the_records_of_a_right_and_a_wrong_pass(self):
        code, said, records = self.bench("--op", "rms_norm", "--peers", "fake")
        self.assertEqual(code, 0, said)
        for record in records:
            self.assertEqual(schema.violation(record), "")
        bench = self.one(records, "bench", "fake")
        self.assertEqual([bench[key] for key in ("basis", "executor", "verdict", "n", "method")],
                         ["wall", "external", "passed", 2, "the function"])
        self.assertIn("on this CPU, not kernel speed", said)
        self.assertEqual(self.one(records, "memory", "fake")["tensors_bytes"], self.one(records, "memory", "fused")["tensors_bytes"])
        for impl in ("fused", "fake"):
            accuracy = self.one(records, "accuracy", impl)
            self.assertEqual(accuracy["outputs"][0]["name"], "y")
            self.assertLess(accuracy["outputs"][0]["error_over_budget"], 1)
            self.assertLess(accuracy["outputs"][0]["relative_l2"], 0.01)
        wrong = {output["name"]: output for output in self.one(records, "accuracy", "fake", "backward")["outputs"]}
        self.assertGreater(wrong["dx"]["error_over_budget"], 1)
        self.assertLess(wrong["dw"]["error_over_budget"], 1)

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_targets_are_integers(self):
        code, said, records = self.bench("--op", "cross_entropy", "--pass", "forward", "--peers", "fake")
        self.assertEqual((code, self.one(records, "bench", "fake")["verdict"]), (0, "passed"), said)
        self.assertLess(self.one(records, "accuracy", "fake")["outputs"][0]["relative_l2"], 1e-5)

    def judged_axes(self, case):
        """Sizes at which the errors of a case were taken."""
        self.file.unlink(missing_ok=True)
        code, said, records = self.bench("--case", case, "--peers", "absent")
        self.assertEqual(code, 0, said)
        return next(r for r in records if r["record"] == "accuracy" and r["impl"] == "fused")["axes"]

    def test_the_case_whose_errors_are_taken_is_small_and_keeps_what_kernels_choose_by(self):
        for case, axes in (("linear_cross_entropy/forward/fused/bf16/T=128,H=15872,V=512", {"T": 128, "H": 3840, "V": 512}),
                           ("softmax/forward/fused/bf16/T=128,V=32768", {"T": 64, "V": 32768})):
            with self.subTest(case):
                self.assertEqual(self.judged_axes(case), axes)

    def test_a_peer_that_is_not_there(self):
        code, said, records = self.bench("--op", "rms_norm", "--pass", "forward", "--peers", "absent")
        self.assertEqual(code, 0, said)
        bench = self.one(records, "bench", "absent")
        self.assertEqual((bench["verdict"], bench["reason"]),
                         ("unsupported", "not importable: ModuleNotFoundError: No module named 'no_such_package'"))
        self.assertIn(bench["reason"], said)

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_a_call_that_a_library_refuses_is_unsupported_in_its_words(self):
        bench, _ = self.refused("--op", "layer_norm", "--pass", "forward", "--peers", "fake")
        self.assertEqual((bench["verdict"], bench["reason"]), ("unsupported", "raised ValueError: no norms today"))

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_a_mistake_in_a_peers_file_is_an_error(self):
        bench, _ = self.refused("--op", "log_prob", "--pass", "forward", "--peers", "fake")
        self.assertEqual((bench["verdict"], bench["reason"]),
                         ("runtime_error", "raised NameError: name 'entropy' is not defined"))

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_what_a_peer_has_not(self):
        bench, _ = self.refused("--op", "rope", "--pass", "forward", "--peers", "fake")
        self.assertEqual((bench["verdict"], bench["reason"]), ("unsupported", "has nothing for rope forward"))

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_an_option_that_a_peer_has_not(self):
        case = "cross_entropy/forward/fused/bf16/T=3,V=33,softcap=5"
        bench, said = self.refused("--case", case, "--peers", "fake")
        self.assertEqual((bench["verdict"], bench["reason"]), ("unsupported", "has no softcap=5.0"), said)

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_outputs_of_another_size(self):
        code, said, records = self.bench("--op", "softmax", "--pass", "forward", "--peers", "fake")
        self.assertEqual((code, self.one(records, "accuracy", "fake")["verdict"]), (0, "incorrect_shape"), said)

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_a_peer_that_crashes(self):
        bench, _ = self.refused("--op", "swiglu", "--pass", "forward", "--peers", "fake")
        self.assertEqual((bench["verdict"], bench["reason"]), ("crashed", "ended with exit code 3"))

    def starts(self, *words):
        """How often the peer's process was started in a bench, and the bench's record of it."""
        with tempfile.NamedTemporaryFile() as file, unittest.mock.patch.dict(os.environ, TIGON_FAKE_STARTS=file.name):
            bench, _ = self.refused(*words, "--pass", "forward", "--peers", "fake")
            return len(file.read().splitlines()), bench

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_the_process_that_was_made_ready_is_the_one_that_is_measured(self):
        starts, bench = self.starts("--op", "rms_norm")
        self.assertEqual((starts, bench["verdict"]), (1, "passed"))

    @unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
    def test_a_peer_that_hangs_is_not_asked_again(self):
        starts, bench = self.starts("--op", "geglu", "--timeout", "3")
        self.assertEqual((bench["verdict"], bench["reason"]), ("timeout", "no answer within 3 s, asked for its results on a small case"))
        self.assertEqual(starts, 1)

    @unittest.skipUnless(HAS_TORCH, "SKIPPED: this Python has no torch")
    def test_eager_torch_is_right_everywhere(self):
        code, said, records = self.bench("--peers", "torch")
        self.assertEqual(code, 0, said)
        ran = [r for r in records if r["record"] == "accuracy" and r["impl"] == "torch"]
        self.assertEqual({r["op"] for r in ran}, set(all_ops()))
        for record in ran:
            if record["op"].startswith("vocab_parallel_"):  # of several processes, where a peer is one
                self.assertEqual(record["reason"], "has nothing for {op} {pass}".format_map(record))
                continue
            self.assertEqual(record["verdict"], "passed", record["reason"])
            for output in record["outputs"]:
                self.assertLess(output["relative_l2"], 0.02, record["case_id"])

    @unittest.skipUnless(HAS_TORCH, "SKIPPED: this Python has no torch")
    def test_a_frozen_weight_and_a_tensor_that_is_left_out(self):
        for case in ("rms_norm/backward/torch/f32/T=5,H=33,dw=absent", "layer_norm/backward/torch/f32/T=5,H=33,db=absent",
                     "rope/forward/torch/f32/T=5,Q=2,K=1,D=8,q_out=given,k_out=given"):
            with self.subTest(case):
                self.file.unlink(missing_ok=True)
                code, said, records = self.bench("--case", case, "--peers", "torch")
                outputs = next(r for r in records if r["record"] == "accuracy")["outputs"]
                self.assertEqual(code, 0, said)
                self.assertTrue(outputs)
                for output in outputs:
                    self.assertLess(output["relative_l2"], 1e-5, said)


class DefinitionsTest(unittest.TestCase):
    def described(self, op):
        """Names of the tensors and options of all passes of an op."""
        text = subprocess.run([TIGON, "describe", op], capture_output=True, text=True, check=True).stdout
        return set(re.findall(r"^    (\w+) +(?:in|inout|out|default) ", text, re.M))

    def test_every_parameter_is_of_the_signature(self):
        names = {op: self.described(op) for op in all_ops()}
        functions = re.compile(f"({'|'.join(sorted(names, key=len, reverse=True))})(_forward|_backward|_forward_backward)?$")
        count = 0
        for peer, file in known.files().items():
            for node in ast.parse(file.read_text()).body:
                found = functions.match(node.name) if isinstance(node, ast.FunctionDef) else None
                if found:
                    count += 1
                    parameters = {a.arg for a in node.args.args}
                    self.assertEqual(parameters - names[found[1]], set(), f"{peer}: {node.name}")
        self.assertGreater(count, 30)

    def test_packages(self):
        packages = {name: known.package_of(file) for name, file in known.files().items()}
        self.assertEqual(packages["liger_cutedsl"], "liger_kernel")
        self.assertEqual(packages["quack_base"], "quack")
        self.assertNotIn(None, packages.values())

    def test_what_is_installed(self):
        with unittest.mock.patch.dict(os.environ, TIGON_PEERS=str(HERE)):
            self.assertFalse(known.is_installed("absent"))
            self.assertTrue(known.is_installed("fake"))
            self.assertEqual(known.is_installed("torch"), HAS_TORCH)


@unittest.skipUnless(HAS_NUMPY, "SKIPPED: this Python has no numpy")
class TimingTest(unittest.TestCase):
    def test_the_stopping_rule_is_that_of_the_bench(self):
        from tigon_peers import timing
        rule = {"warm_up": 3, "least": 4, "most": 20, "seconds": 1, "agreement": 0.01}
        for samples, spent, wanted in (([1] * 3, 9, False), ([1] * 4, 2, True), ([1] * 4, 0, False), ([1] * 8, 0, True),
                                       ([1] * 4 + [2] * 4, 0, False), ([1] * 10 + [2] * 10, 0, True)):
            self.assertEqual(timing.enough(rule, samples, spent), wanted, (samples, spent))
        taken = []
        self.assertEqual(timing.sampled(rule, lambda i: taken.append(i) or 1.0), [1.0] * 8)
        self.assertEqual(len(taken), 11)


class StandInForCuda:
    """What the GPU paths call of torch.cuda, on the CPU: their code runs, their numbers mean nothing."""

    class Event:
        def __init__(self, enable_timing):
            self.at = None

        def record(self, stream):
            self.at = time.perf_counter()

        def synchronize(self):
            pass

        def elapsed_time(self, end):
            return 1e3 * (end.at - self.at)

    class CUDAGraph:
        replays = 0

        def replay(self):
            StandInForCuda.CUDAGraph.replays += 1

    def __init__(self, refuses=False):
        self.refuses, self.slept = refuses, []

    @contextlib.contextmanager
    def graph(self, graph, stream):
        if self.refuses:
            try:
                raise RuntimeError("operation not permitted when stream is capturing\nmore")
            except RuntimeError as error:
                raise ValueError("capture was invalidated") from error
        yield

    def _sleep(self, cycles):
        self.slept.append(cycles)

    def memory_allocated(self):
        return 1000

    def max_memory_allocated(self):
        return 1500

    memory_reserved = memory_allocated

    def mem_get_info(self):
        return 1 << 30, 1 << 31

    def reset_peak_memory_stats(self):
        pass

    synchronize = empty_cache = reset_peak_memory_stats


@unittest.skipUnless(HAS_TORCH, "SKIPPED: this Python has no torch")
class GpuPathsTest(unittest.TestCase):
    """The code of the GPU's bases over StandInForCuda."""

    def bench(self, cuda, waits=False):
        import torch
        import torch_peer
        from tigon_peers import backends, timing
        backend = backends.Torch(torch)
        backend.on_gpu = True
        backend.torch = types.SimpleNamespace(**{name: getattr(torch, name) for name in ("randint", "int32", "autograd", "float32", "Tensor")},
                                              cuda=cuda, device=torch.device)
        x, w, dy = (torch.randn(4, 8), torch.randn(8), torch.randn(4, 8))
        gradients = {"x": "dx", "w": "dw"}
        values = {"x": x, "w": w, "dy": dy}
        backend.given = lambda t: values[t["name"]]
        options = {"eps": 1e-6, "offset": 0.0, "casting": "llama"}
        tensors = {name: {"name": name, "role": role, "at": 0, "is_required": name != "w" and role == "in", "is_on_request": False}
                   for role, names in (("in", values), ("out", gradients.values())) for name in names}
        op = {"name": "rms_norm", "pass": "backward", "tensors": list(tensors.values()),
              "autograd": {"outputs": ["y"], "upstream": {"y": "dy"}, "of": gradients},
              "options": [{"name": name, "default": value, "is_invisible": False} for name, value in options.items()]}

        def make():
            call = calls.prepared(torch_peer, backend, op, tensors, options)
            call.waits = waits
            return call
        bench = timing.Bench(backend, make, {"warm_up": 1, "least": 3, "most": 5, "seconds": 1, "agreement": 0.5}, 1 << 12)
        bench.fill()
        return bench

    def test_cold_and_graph(self):
        cuda = StandInForCuda()
        bench = self.bench(cuda)
        self.assertEqual(bench.peak_bytes, 1500 - 1000 - 4 * 8 * 4)  # without the output of forward
        for basis in ("cold", "graph"):
            timing = bench.basis(basis)
            self.assertEqual((timing["verdict"], timing["reason"]), ("passed", ""))
            self.assertGreaterEqual(len(timing["samples"]), 3)
            self.assertGreater(min(timing["samples"]), 0)
        self.assertGreaterEqual(len(cuda.slept), 4)
        self.assertGreater(min(cuda.slept), 2e4)  # 20 us
        self.assertGreaterEqual(StandInForCuda.CUDAGraph.replays, 4)

    def test_long_calls_follow_each_other(self):
        cuda = StandInForCuda()
        bench = self.bench(cuda)
        bench._once = lambda: 1.0
        ran = []
        for i, call in enumerate(bench.calls):
            call.run = lambda i=i: ran.append(i)
        count = len(bench.basis("cold")["samples"])
        self.assertEqual(cuda.slept, [])
        timed = ran[5:]  # behind those that the host's time is measured by
        self.assertEqual(len(timed), 2 * (count + 1))  # with one to warm up
        self.assertTrue(all(before != after for before, after in zip(timed[::2], timed[1::2])))

    def test_what_cannot_be_captured(self):
        bench = self.bench(StandInForCuda(refuses=True))
        timing = bench.basis("graph")
        self.assertEqual((timing["verdict"], timing["reason"]),
                         ("unsupported", "cannot be captured into a graph: RuntimeError: operation not permitted when stream is capturing"))
        self.assertTrue(bench.is_broken)
        bench = self.bench(StandInForCuda(), waits=True)
        self.assertIn("the host waits", bench.basis("graph")["reason"])
        self.assertFalse(bench.is_broken)


if __name__ == "__main__":
    unittest.main()
