# SPDX-License-Identifier: Apache-2.0
"""tigon.judge with inputs in other layouts: who takes them for contiguous is wrong, who refuses them has a limit."""
import pathlib
import tempfile
import unittest

import torch
from tigon import judge as command
from tigon._judge.inputs import LAYOUTS, variants
from tigon._judge.verdict import Settings, judge
from tigon._testing.made import copied, relaid
from tigon.testing import compare

HEAD = "import os, torch\n"
INPUTS = "def get_inputs(): return [torch.randn(6, 10), torch.randint(0, 6, (6, 4)), torch.randn(10)]\n"
REFERENCE = HEAD + "def reference(x, i, w): return (x * w)[i]\n" + INPUTS
RIGHT = "def right(x, i, w): return (w * x)[i]\n"
ROWS, TRANSPOSED, UNALIGNED = LAYOUTS


class Drawn:
    """A problem's inputs."""
    sizes: dict = {}

    def inputs(self, seed):
        g = torch.Generator().manual_seed(seed)
        return [torch.randn(6, 10, generator=g), torch.randint(0, 6, (2, 3, 4), generator=g), torch.randn(10, generator=g), torch.ones(()), 3]


def judged(candidate, reference=REFERENCE, **settings):
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / name for name in ("candidate.py", "reference.py")]
        for file, text in zip(files, (HEAD + candidate, reference)):
            file.write_text(text, encoding="utf-8")
        return judge(*files, Settings(**settings))


class LayoutsTest(unittest.TestCase):
    def assert_verdict(self, verdict, wanted, reason="^", limits=(), notes=()):
        self.assertEqual((verdict.verdict, len(verdict.limits), len(verdict.notes)), (wanted, len(limits), len(notes)), verdict)
        self.assertRegex(verdict.reason, reason)
        for said, text in zip((*verdict.limits, *verdict.notes), (*limits, *notes)):
            self.assertRegex(said, text)

    def test_layouts_have_the_same_values_and_poison_between(self):
        calls = {call.kind: call for call in variants(Drawn(), 3)}
        first = calls["drawn"].inputs
        for kind in LAYOUTS:
            call = calls[kind]
            self.assertTrue(call.fresh and call.relaid_of is first)
            for old, new in zip(first, call.inputs):
                self.assertTrue(torch.equal(torch.as_tensor(old), torch.as_tensor(new)))
        self.assertEqual([t.stride() for t in calls[ROWS].inputs[:3]], [(26, 1), (60, 20, 1), (1,)])
        self.assertEqual([t.stride() for t in calls[TRANSPOSED].inputs[:3]], [(1, 6), (12, 1, 3), (2,)])
        for tensor in calls[UNALIGNED].inputs[:3]:
            self.assertTrue(tensor.is_contiguous() and tensor.data_ptr() % 16)
        self.assertTrue(calls[ROWS].inputs[0].as_strided((26,), (1,))[10:].isnan().all())
        self.assertTrue(calls["scaled"].fresh)  # values of a contiguous tensor are not put into another layout

    def test_copies_keep_layouts(self):
        x = torch.randn(4, 6)
        for strides, lead in (((10, 1), 0), ((1, 4), 0), ((6, 1), 1), ((20, 2), 3)):
            given = relaid(x, strides, lead)
            for own in (copied(given), copied(given, torch.float64)):
                self.assertEqual((own.stride(), own.storage_offset()), (strides, lead))
                self.assertTrue(torch.equal(own.float(), x) and own.data_ptr() != given.data_ptr())
        for shared in (x.expand(3, 4, 6), relaid(x, (40, 1)).expand(3, 4, 6), x[:0], x.t(), torch.tensor(3), x.unfold(1, 4, 1)):
            self.assertTrue(torch.equal(copied(shared), shared))
        seen = []
        compare(lambda v: seen.append(v.stride()) or v.reshape(-1) * 2, lambda v: v.reshape(-1) * 2, [relaid(x, (10, 1))], backward=True)
        self.assertEqual(seen, [(10, 1)])
        compare(lambda v: v + v, lambda v: v.as_strided((4, 6), (10, 1)) * 2, [relaid(x, (10, 1))])  # in float64, too

    def test_taken_for_contiguous(self):
        """All, the last dimension alone, an integer tensor alone, and memory from its beginning on."""
        for flat, kind in (("x = x.as_strided((6, 10), (10, 1))", ROWS), ("x = x.as_strided((6, 10), (x.stride(0), 1))", TRANSPOSED),
                           ("i = i.as_strided((6, 4), (4, 1)) % 6", ROWS), ("w = w.as_strided((10,), (1,))", TRANSPOSED),
                           ("x = x.as_strided((6, 10), x.stride(), 0)", UNALIGNED)):
            with self.subTest(flat=flat):
                self.assert_verdict(judged(f"{RIGHT}def candidate(x, i, w):\n    {flat}\n    return right(x, i, w)\n"), "wrong", f"^{kind}: result: .* wrong")

    def test_honest_ones(self):
        self.assert_verdict(judged(RIGHT + "def candidate(*a): return right(*(t.contiguous().view(-1).view(t.shape) for t in a))\n"), "right")
        by_stride = RIGHT + """def candidate(*a):
    def read(t):
        memory = torch.empty(0, dtype=t.dtype).set_(t.untyped_storage())
        places = sum(torch.arange(n).reshape(-1, *[1] * (t.dim() - d - 1)) * s for d, (n, s) in enumerate(zip(t.shape, t.stride())))
        return memory[t.storage_offset() + places]
    return right(*map(read, a))
"""
        self.assert_verdict(judged(by_stride), "right")
        self.assert_verdict(judged(RIGHT.replace("right", "candidate"), backward=True), "right")

    def test_a_refusal_is_a_limit(self):
        refuses = RIGHT + "def candidate(x, i, w):\n    assert x.is_contiguous(), 'not contiguous'\n    return right(x, i, w)\n"
        verdict = judged(refuses)
        self.assert_verdict(verdict, "right", limits=[f"^refuses {kind}: it raised AssertionError: not contiguous$" for kind in (ROWS, TRANSPOSED)])
        self.assertIn(f"  it refuses {ROWS}: it raised AssertionError: not contiguous", command._said(verdict.record()).splitlines())
        self.assertEqual({case.name: case.verdict for case in verdict.cases if case.name.startswith("strided")}, {ROWS: "skipped", TRANSPOSED: "skipped"})

    def test_what_is_no_refusal(self):
        for text, reason in (("os._exit(0)", f"^{ROWS}: its process ended with exit code 0"),
                             ("return torch.zeros(6, 4, 10)", f"^{ROWS}: result: .* wrong"),
                             ("calls = 9", "^scaled: it raised TypeError"),  # whatever comes later raises, too
                             ("torch.cuda.is_initialized = lambda: True; torch.cuda.synchronize = broken; broken()", f"^{ROWS}: it raised RuntimeError: CUDA")):
            with self.subTest(text=text):
                verdict = judged(f"""{RIGHT}calls = []
def broken(): raise RuntimeError('CUDA error: misaligned address')
def candidate(x, i, w):
    global calls
    calls += [0]
    if not x.is_contiguous():
        {text}
    return right(x, i, w)
""")
                self.assertEqual(verdict.verdict, "wrong")
                self.assertRegex(verdict.reason, reason)

    def test_who_breaks_on_unaligned_inputs_has_a_limit(self):
        """As vectors of 16 bytes do; wrong values there are wrong, and nothing is called afterwards."""
        for text, said in (("os.kill(os.getpid(), 11)", "its process ended by SIGSEGV"), ("os._exit(0)", "its process ended with exit code 0")):
            breaks = f"{RIGHT}def candidate(x, i, w):\n    if x.storage_offset():\n        {text}\n    return right(x, i, w)\n"
            self.assert_verdict(judged(breaks), "right", limits=[f"^breaks on {UNALIGNED}: {said}$"])
        self.assertEqual(list(variants(Drawn(), 3))[-1].kind, UNALIGNED)

    def test_layouts_that_the_reference_does_not_take(self):
        reference = HEAD + "def reference(x): return x.view(-1) * 2\ndef get_inputs(): return [torch.randn(6, 10)]\n"
        candidate = "def candidate(x):\n    assert x.is_contiguous()\n    return x.flatten() + x.flatten()\n"
        self.assert_verdict(judged(candidate, reference), "right", notes=[f"^{kind}: view size is not compatible" for kind in (ROWS, TRANSPOSED)])
        verdict = judged(candidate, reference.replace("view(-1)", "as_strided((60,), (1,))"))
        self.assert_verdict(verdict, "right", notes=[f"^{kind}: the reference in its own dtype is not what" for kind in (ROWS, TRANSPOSED)])

    def test_in_place_stays_in_place(self):
        reference = HEAD + "def reference(x): return x.mul_(2)[0] + 1\ndef get_inputs(): return [torch.randn(6, 10)]\n"
        self.assert_verdict(judged("def candidate(x):\n    x += x\n    return 1 + x[0]\n", reference), "right")
        of_a_copy = "def candidate(x):\n    y = x.contiguous()\n    y += y\n    return 1 + y[0]\n"
        self.assert_verdict(judged(of_a_copy, reference), "wrong", f"^{ROWS}: input 0: it must be changed, as the reference changes it")
        there_alone = reference.replace("x.mul_(2)[0]", "x.contiguous().mul_(2)[0]")
        self.assert_verdict(judged(of_a_copy, there_alone), "right")


if __name__ == "__main__":
    unittest.main()
