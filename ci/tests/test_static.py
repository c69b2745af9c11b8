# SPDX-License-Identifier: Apache-2.0
"""Tests of the gate without a GPU: what it reads from nvcc's outputs, and faults planted in real kernels.

Run: python3 ci/tests/test_static.py. Without nvcc the tests that compile are skipped.
"""
import contextlib
import io
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "ci"), str(ROOT / "reports"), str(ROOT / "ci/tests"), str(ROOT / "harness/trees")]

import plants  # noqa: E402
from tigon_gate import __main__ as program  # noqa: E402
from tigon_gate import accepted, host_facts, static, static_compare  # noqa: E402
from tigon_report import command, records, schema  # noqa: E402
from tigon_report.errors import UsageError  # noqa: E402
from tigon_trees import build, kernel_facts, sources  # noqa: E402

PTX = """
.visible .entry k1(
	.param .b32 p
)
{
	ld.param.b32 	%r1, [p];
	ld.global.v4.u32 	{%r1, %r2, %r3, %r4}, [%rd1];
	ld.global.nc.L1::no_allocate.v2.b64 	{%rd5, %rd6}, [%rd1+16];
	@%p1 ld.global.u16 	%rs1, [%rd2];
	st.global.u32 	[%rd3+16], %r1;
	st.global.u32 	[%rd3+20], %r2;
	st.global.u32 	[%rd3+24], %r3;
	st.global.u32 	[%rd3+28], %r4;
	st.shared.u32 	[%r9], %r4;
	ret;
}
.visible .entry k2(
)
{
	st.global.u16 	[%rd3], %rs1;
	add.f32 	%f1, %f2, %f3;
	st.global.u16 	[%rd3+2], %rs1;
	st.global.u32 	[%rd3+4], %r1;
	st.global.u32 	[%rd3+8], %r1;
	ret;
}
"""

REPORT = """ptxas info    : Compiling entry function '_Z1kPf' for 'sm_90a'
ptxas info    : Function properties for _Z1kPf
    8 bytes stack frame, 12 bytes spill stores, 20 bytes spill loads
ptxas info    : Function properties for _Z6calleev
    96 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 40 registers, used 1 barriers, 8 bytes cumulative stack size, 4096 bytes smem
ptxas info    : Compiling entry function '_Z1gPf' for 'sm_90a'
ptxas info    : Function properties for _Z1gPf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
"""


class ReadTest(unittest.TestCase):
    def test_accesses_of_ptx(self):
        found = {name: {k: v for k, v in kernel_facts.accesses(body).items() if v} for name, body in kernel_facts.bodies(PTX)}
        self.assertEqual(found["k1"], {"loads_16": 2, "loads_2": 1, "stores_4": 4, "split_stores_16": 1})
        self.assertEqual(found["k2"], {"stores_2": 2, "stores_4": 2})

    def test_asynchronous_copies_are_loads(self):
        found = kernel_facts.accesses("""
\tcp.async.cg.shared.global [%r5], [%rd7], 16;
\t@%p1 cp.async.ca.shared.global [%r5+16], [%rd7+8], 4;
\tcp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd2], %r3, [%r4];
\tcp.async.commit_group;
\tcp.async.wait_group 1;
""")
        self.assertEqual({k: v for k, v in found.items() if v}, {"loads_16": 2, "loads_4": 1})

    def test_resources_of_ptxas(self):
        self.assertEqual(kernel_facts.resources(REPORT), {
            "_Z1kPf": {"registers": 40, "stack_bytes": 104, "spill_bytes": 32, "shared_bytes": 4096, "barriers": 1},
            "_Z1gPf": {"registers": 8, "stack_bytes": 0, "spill_bytes": 0, "shared_bytes": 0, "barriers": 0}})

    def test_names(self):
        self.assertEqual(kernel_facts.short_name("void tigon::swiglu::(anonymous namespace)::k<tigon::P<tigon::bf16, float>, 8>"
                                                 "(tigon::A, long)"), "swiglu::k<P<bf16, float>, 8>")

    def test_instructions_of_cachegrind(self):
        text = ("fn=tigon::swiglu::(anonymous namespace)::a_kernel<8>(long)\n10 5\n11 6\nfn=tigon::launch(long)\n12 7\n"
                "fn=tigon::swiglu::(anonymous namespace)::a_kernel<8>(long)\n13 1\nsummary: 19\n")
        self.assertEqual(host_facts.kernel_instructions(text), {"swiglu::a_kernel<8>": 12})


class CompareTest(unittest.TestCase):
    def effects(self, base, head):
        return [(c.effect, c.number) for c in static_compare.changes(base, head, "why")]

    def test_rises(self):
        self.assertEqual(self.effects({"spill_bytes": 0}, {"spill_bytes": 8}), [("blocks", "spill_bytes")])
        self.assertEqual(self.effects({"stack_bytes": 0}, {"stack_bytes": 8}), [("blocks", "stack_bytes")])
        self.assertEqual(self.effects({"sectors": 10}, {"sectors": 11}), [("blocks", "sectors")])
        self.assertEqual(self.effects({"registers": 31}, {"registers": 32}), [("warns", "registers")])
        self.assertEqual(self.effects({"registers": 32}, {"registers": 31}), [("better", "registers")])
        self.assertEqual(self.effects({"registers": 32}, {"registers": 32}), [])

    def test_wide_accesses(self):
        self.assertEqual(self.effects({"loads_16": 4, "loads_1": 0}, {"loads_16": 3, "loads_1": 16}),
                         [("blocks", "loads_16"), ("blocks", "loads_1")])
        self.assertEqual(self.effects({"loads_16": 4, "loads_8": 0}, {"loads_16": 2, "loads_8": 4}), [("blocks", "loads_16")])
        self.assertEqual(self.effects({"loads_16": 4, "loads_4": 0}, {"loads_16": 2, "loads_4": 1}), [("warns", "loads_16")])

    def test_kernels_made_for_pieces_must_have_them(self):
        one = {"k<P<bf16, float>, 1>": {"loads_2": 2, "stores_2": 1}, "k<P<bf16, float>, 8>": {"loads_16": 2, "stores_16": 0},
               "k<P<float, float>, 1>": {"loads_4": 2}, "k<P<float, float>, 4>": {"loads_16": 2}}
        self.assertEqual([(name, c.number) for name, c in static_compare.missing_wide(one).items()],
                         [("k<P<bf16, float>, 8>", "stores_16")])

    def test_the_same_code_under_new_names_is_the_same(self):
        base = {"k<8>": {"code_hash": "a"}, "k<1>": {"code_hash": "b"}}
        (_, old, new), = static_compare.matched(base, {"k<1, true>": {"code_hash": "b"}, "k<8, true>": {"code_hash": "a"}})
        self.assertEqual(old["code_hash"], new["code_hash"])
        (_, old, new), = static_compare.matched(base, {"k<1, true>": {"code_hash": "b"}, "k<8, true>": {"code_hash": "b"}})
        self.assertNotEqual(old["code_hash"], new["code_hash"])

    def test_new_template_argument_does_not_hide_a_rise(self):
        base = {"k<8>": {"spill_bytes": 0}, "k<1>": {"spill_bytes": 0}}
        head = {"k<8, true>": {"spill_bytes": 4}, "k<1, true>": {"spill_bytes": 0}}
        (name, old, new), = static_compare.matched(base, head)
        self.assertIn("2 kernels under new names", name)
        self.assertNotIn("code_hash", new)
        self.assertEqual(self.effects(old, new), [("blocks", "spill_bytes")])
        (name, old, new), = static_compare.matched(base, {"other<8>": {"spill_bytes": 4}})
        self.assertEqual((name[:7], self.effects(old, new)), ("other (", [("blocks", "spill_bytes")]))
        self.assertEqual(static_compare.matched({}, {"k": {"spill_bytes": 4}}), [("k", None, {"spill_bytes": 4})])


class Tree:
    """A copy of kernels/ with something planted in it."""

    def __init__(self, folder, plant=None):
        self.root = pathlib.Path(folder) / (plant or "base")
        shutil.copytree(ROOT / "kernels", self.root / "kernels")
        if plant:
            plants.plant(plant, self.root)

    def unit(self, file, flags=("-std=c++20", "-O3", "-DNDEBUG", "-DTIGON_CUDA")):
        return sources.Unit(self.root, file, flags, ())


class CauseTest(unittest.TestCase):
    def test_cause_names_source_callee_and_flags(self):
        with tempfile.TemporaryDirectory() as folder:
            base, own, callee = Tree(folder), Tree(folder, "slow_swiglu"), Tree(folder, "lost_wide_store")
            why = lambda a, b: sources.cause(a, b, sources.closure(a), sources.closure(b))  # noqa: E731
            unit = base.unit("kernels/swiglu/swiglu.cu")
            self.assertEqual(why(unit, own.unit(unit.file)), "source changed: kernels/swiglu/swiglu.cu")
            self.assertEqual(why(unit, callee.unit(unit.file)), "callee changed: kernels/device/vec_cuda.h")
            self.assertEqual(why(unit, base.unit(unit.file, ("-std=c++20", "-O2", "-DNDEBUG", "-DTIGON_CUDA"))),
                             "compiler flags: -O3 became -O2")
            keys = {sources.key(u, sources.closure(u), "sm_90a", "nvcc")
                    for u in (unit, own.unit(unit.file), callee.unit(unit.file), base.unit(unit.file, ("-O2",)))}
            self.assertEqual(len(keys), 4)

    def test_plants_fit_the_sources(self):
        with tempfile.TemporaryDirectory() as folder:
            for name in plants.PLANTS:
                Tree(folder, name)


@unittest.skipIf(build.find_nvcc() is None, "nvcc is not here")
class PlantTest(unittest.TestCase):
    """Faults planted in real kernels, compiled by nvcc."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.base = Tree(cls.folder.name)
        cls.trees, cls.facts = {}, {}

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def planted(self, plant):
        if plant not in self.trees:
            self.trees[plant] = Tree(self.folder.name, plant)
        return self.trees[plant]

    def of(self, tree, file):
        if (tree.root, file) not in self.facts:
            self.facts[tree.root, file] = kernel_facts.of_unit(tree.unit(file), "sm_90a", build.find_nvcc())
        return self.facts[tree.root, file]

    def items(self, plant, file):
        head = self.planted(plant)
        unit = head.unit(file)
        why = sources.cause(self.base.unit(file), unit, sources.closure(self.base.unit(file)), sources.closure(unit))
        return static._kernels(unit, "sm_90a", self.of(self.base, file), self.of(head, file), why)

    def blocked(self, items, number):
        return {item.name: change for item in items for change in item.changes
                if change.effect == "blocks" and change.number == number}

    def test_kernels_of_this_tree_have_no_fault(self):
        file = "kernels/swiglu/swiglu.cu"
        items = static._kernels(self.base.unit(file), "sm_90a", None, self.of(self.base, file), "")
        self.assertGreaterEqual(len(items), 12)
        self.assertEqual([(item.name, item.changes) for item in items if item.changes], [])

    def test_spill_blocks_and_names_the_kernel(self):
        items = self.items("spill", "kernels/swiglu/swiglu.cu")
        blocked = self.blocked(items, "spill_bytes")
        self.assertTrue(any("Backward<Policy<bf16" in name for name in blocked), blocked)
        self.assertFalse(any("Forward" in name for name in blocked), blocked)
        self.assertTrue(all("source changed: kernels/swiglu/swiglu.cu" in change.cause for change in blocked.values()))
        self.assertEqual(blocked.keys(), self.blocked(items, "stack_bytes").keys())

    def test_split_store_blocks_in_every_kernel_of_pieces(self):
        items = self.items("lost_wide_store", "kernels/swiglu/swiglu.cu")
        kernels = 2 * 2 * 3 * 3  # passes, with and without multipliers, dtypes, threads of a block
        self.assertEqual(len(self.blocked(items, "stores_16")), kernels)
        self.assertEqual(len(self.blocked(items, "split_stores_16")), kernels)
        elements = [item.same_code for item in items if re.search(r", 1, \d+, \d+>$", item.name)]
        self.assertEqual(elements, [True] * 12)  # unchanged code

    def test_byte_loads_block(self):
        items = self.items("lost_wide_load", "kernels/rope/rope.cu")
        for number in ("loads_1", "loads_16"):
            self.assertIn("rope::rotate_kernel<bf16, 8, false, 128, 8>", self.blocked(items, number))
        change = self.blocked(items, "loads_1")["rope::rotate_kernel<bf16, 8, false, 128, 8>"]
        self.assertIn("callee changed: kernels/device/vec_cuda.h", change.cause)

    def test_spill_without_a_base_is_named(self):
        tree, file = self.planted("spill"), "kernels/swiglu/swiglu.cu"
        items = static._kernels(tree.unit(file), "sm_90a", None, self.of(tree, file), "")
        named = {item.name for item in items for c in item.changes if (c.effect, c.number) == ("warns", "spill_bytes")}
        self.assertTrue(named and all("Backward" in name for name in named), named)

    def test_fault_without_a_base_blocks(self):
        head, file = self.planted("lost_wide_load"), "kernels/rope/rope.cu"
        items = static._kernels(head.unit(file), "sm_90a", None, self.of(head, file), "")
        self.assertTrue(self.blocked(items, "loads_1"))


class UntouchedTreeTest(unittest.TestCase):
    """Without --base kernels are judged beside the last commit: only a fault that is new blocks."""

    FILE = "kernels/swiglu/swiglu.cu"

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        (self.root / self.FILE).parent.mkdir(parents=True)
        (self.root / self.FILE).write_text("split split\n")
        (self.root / "CMakeLists.txt").touch()
        (self.root / ".gitignore").write_text("build\n")
        for words in (["init", "-q"], ["add", "-A"], ["-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "all"]):
            subprocess.run(["git", "-C", str(self.root), *words], check=True)

    @staticmethod
    def facts(unit, arch, nvcc):
        text = (unit.root / unit.file).read_text()
        return {"swiglu::k<8>": {"split_loads_16": text.count("split"), "code_hash": text}}

    def gate(self):
        options = program.parser().parse_args(["--static", "--only", "kernels", "--json", str(self.root.parent / "r.jsonl")])
        out = io.StringIO()
        with (mock.patch.object(build, "find_nvcc", lambda: "nvcc"),
              mock.patch.object(static, "_configured", lambda tree, folder: (
                  [sources.Unit(pathlib.Path(tree), self.FILE, (), ())], ["sm_90a"])),
              mock.patch.object(kernel_facts, "compiler_version", lambda nvcc: "1"),
              mock.patch.object(kernel_facts, "of_unit", self.facts), contextlib.redirect_stdout(out)):
            return static.run(options, self.root, lambda text: None), out.getvalue()

    def test_an_untouched_tree_passes_and_names_what_it_has(self):
        code, out = self.gate()
        self.assertEqual(code, 0, out)
        self.assertIn("warns: 2 16-byte loads made piecemeal: swiglu::k<8> sm_90a", out)
        self.assertIn("as in the base", out)

    def test_a_file_that_moved_is_compared(self):
        moved = self.FILE.replace("swiglu.cu", "rows.cu")
        (self.root / self.FILE).rename(self.root / moved)
        head, base = ([sources.Unit(pathlib.Path(tree), file, (), ())] for tree, file in ((self.root, moved), ("/base", self.FILE)))
        facts = {"swiglu::k<8>": {"split_loads_16": 2, "code_hash": "a"}}
        with (mock.patch.object(build, "find_nvcc", lambda: "nvcc"), mock.patch.object(sources, "closure", lambda unit: {}),
              mock.patch.object(static, "_configured", lambda tree, folder: (head if tree == self.root else base, ["sm_90a"])),
              mock.patch.object(kernel_facts, "compiler_version", lambda nvcc: "1"),
              mock.patch.object(kernel_facts, "of_unit", lambda unit, arch, nvcc: facts)):
            said = []
            item, = static.kernel_items(self.root, (pathlib.Path("/base"), "", pathlib.Path("/base/build")), said.append, [])
        self.assertEqual((item.same_code, [c.effect for c in item.changes]), (True, ["warns"]))
        self.assertEqual([line for line in said if "gone" in line], [])

    def test_one_more_blocks(self):
        (self.root / self.FILE).write_text("split split split\n")
        code, out = self.gate()
        self.assertEqual(code, 3, out)
        self.assertIn("blocks: 16-byte loads made piecemeal 2 -> 3", out)

    def test_a_tree_without_history_has_nothing_beside_it(self):
        shutil.rmtree(self.root / ".git")
        self.assertEqual(self.gate()[0], 3)


FAKE = """#!{python}
import json, sys
counters = dict(requests=8, sectors={sectors}, bytes_loaded_bytes={sectors} * 32, bytes_stored_bytes=0, bank_conflicts=0,
                barriers=0, atomics=0)
with open(sys.argv[sys.argv.index("--json") + 1], "w") as file:
    print(json.dumps({{"record": "trace", "run_id": "20260101T000000Z-00000000", "case_id": "{case}", "op": "swiglu",
                       "pass": "forward", "impl": "fused", "dtype": "bf16", "verdict": "{verdict}", "reason": "r",
                       "kernels": [dict(counters, name="swiglu::k<8>", launches=1)]}}), file=file)
"""


class CommandTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.addCleanup(setattr, host_facts, "need_valgrind", host_facts.need_valgrind)
        host_facts.need_valgrind = lambda: False

    def program(self, name, sectors, verdict="passed", case="swiglu/forward/fused/bf16/T=1,F=8"):
        (self.folder / name).write_text(FAKE.format(python=sys.executable, sectors=sectors, verdict=verdict, case=case))
        os.chmod(self.folder / name, 0o755)
        return str(self.folder / name)

    def gate(self, *words):
        out, errors = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
            code = command.run("gate", program.main, ["--static", "--json", str(self.folder / "r.jsonl"), *words])
        return code, out.getvalue(), errors.getvalue()

    def test_traffic_rise_blocks(self):
        words = ["--only", "host", "--base-program", self.program("base", 64), "--head-program"]
        code, out, _ = self.gate(*words, self.program("head", 96))
        self.assertEqual(code, 3, out)
        self.assertIn("blocks: 32-byte sectors 64 -> 96", out)
        self.assertIn("because of swiglu::k<8>: two programs", out)
        lines = [line.record for line in records.read_file(self.folder / "r.jsonl")]
        self.assertEqual([r["record"] for r in lines], ["run", "static", "static", "end"])
        self.assertEqual([schema.violation(line) for line in lines], [""] * 4)
        self.assertEqual(self.gate(*words, self.program("head", 64))[0], 0)
        self.assertEqual(self.gate(*words, self.program("head", 32))[0], 0)

    def test_a_commit_may_accept_a_rise(self):
        def git(*words):
            subprocess.run(["git", "-C", str(self.folder), "-c", "user.name=n", "-c", "user.email=e", *words], check=True)

        git("init", "-q")
        git("commit", "-q", "--allow-empty", "-m", "base")
        git("commit", "-q", "--allow-empty", "-m", "rope: more", "-m", "Static-accept: rope sectors 8% L1 has\n  the angles")
        git("commit", "-q", "--allow-empty", "-m", "swiglu: other")
        (known,) = accepted.between(self.folder, "HEAD~2")
        self.assertEqual((known.op, known.number, known.rise, known.reason), ("rope", "sectors", 0.08, "L1 has the angles"))
        rise, spill = (static_compare.Change("blocks", number, 100, 108, "source changed") for number in ("sectors", "spill_bytes"))
        change, other = accepted.marked("rope", [rise, spill], [known])
        self.assertEqual((change.effect, other.effect), ("accepted", "blocks"))
        self.assertIn("accepts up to 8%: L1 has the angles", change.cause)
        more, alone = (static_compare.Change("blocks", "sectors", base, 109, "") for base in (100, None))
        self.assertEqual([c.effect for c in accepted.marked("rope", [more, alone], [known])], ["blocks"] * 2)
        self.assertEqual(accepted.marked("swiglu", [rise], [known]), [rise])
        git("commit", "-q", "--allow-empty", "-m", "x", "-m", "Static-accept: rope time 8% why")
        with self.assertRaisesRegex(UsageError, "'Static-accept: rope time 8% why' is not 'OP NUMBER PERCENT% WHY'"):
            accepted.between(self.folder, "HEAD~1")

    def test_what_is_missing_is_said(self):
        out = self.gate("--only", "host", "--head-program", self.program("head", 64))[1]
        self.assertIn("skipped: without valgrind", out)
        self.assertEqual(out.strip().splitlines()[-1], "1 passed, 0 failed, 1 skipped")

    def test_case_that_is_gone_is_said(self):
        code, out, _ = self.gate("--only", "host", "--base-program", self.program("base", 64, case="rope/forward/fused/bf16/T=1"),
                                 "--head-program", self.program("head", 64))
        self.assertIn("skipped: rope/forward/fused/bf16/T=1 is traced with the base only", out)
        self.assertEqual((code, out.strip().splitlines()[-1]), (0, "1 passed, 0 failed, 2 skipped"))

    def test_failing_trace_is_infrastructure(self):
        code, _, errors = self.gate("--only", "host", "--head-program", self.program("head", 64, "crashed"))
        self.assertEqual((code, errors.count("\n")), (5, 1))
        self.assertIn("crashed", errors)

    def test_unknown_base_or_op(self):
        code, _, errors = self.gate("--base", "no-such-commit")
        self.assertEqual(code, 2, errors)
        code, _, errors = self.gate("--op", "swigloo")
        self.assertEqual((code, errors.count("\n")), (2, 1))
        self.assertIn("--op swigloo: no such op; there are add_rms_norm, cross_entropy, ", errors)
        code, _, errors = self.gate("--base-dir", str(self.folder))
        self.assertEqual((code, "no source tree" in errors), (2, True))


if __name__ == "__main__":
    unittest.main()
