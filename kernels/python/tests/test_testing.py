# SPDX-License-Identifier: Apache-2.0
"""tigon.testing.check: a right function passes, a wrong one fails with what is wrong, where, and how to repeat it."""
import functools
import os
import random
import unittest
from unittest import mock

import tigon
import tigon.testing
import torch
from references import Scaled
from tigon import _native
from tigon._testing import bridge, program
from tigon._testing.passes import gradient_pass

SEED = int(os.environ.get("TIGON_SEED", "1"))
SECONDS = 2.0  # for each check, beside its start


def rms_norm(x, w, eps):
    return (w.float() * torch.nn.functional.rms_norm(x.float(), w.shape, eps=eps)).to(x.dtype)


def swiglu(gate, up):
    return (torch.nn.functional.silu(gate.float()) * up.float()).to(gate.dtype)


class NormWithoutProjection(torch.autograd.Function):
    """An RMSNorm whose gradient takes the norm for a constant."""

    @staticmethod
    def forward(ctx, x, w, eps):
        rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
        ctx.save_for_backward(x, w, rstd)
        return (x.float() * rstd * w.float()).to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        x, w, rstd = ctx.saved_tensors
        dw = (dy.float() * x.float() * rstd).sum(0)
        return (dy.float() * w.float() * rstd).to(x.dtype), dw.to(w.dtype), None


def check(function, op, **settings):
    return tigon.testing.check(function, op, **{"budget": SECONDS, "dtypes": ["f32"], **settings})


class CheckTest(unittest.TestCase):
    def wrong(self, text, function, op, **settings):
        """The report of a function that fails as the text says."""
        with self.assertRaisesRegex(AssertionError, text) as caught:
            check(function, op, **settings)
        report = caught.exception.report
        self.assertGreater(report.failed, 0)
        self.assertIn(f"is not {op}: {report.failed} of ", str(caught.exception))
        self.assertIn("repro: tigon.testing.check(", str(caught.exception))
        return report

    def test_right_ones_pass(self):
        report = check(rms_norm, "rms_norm", dtypes=["f32", "bf16"], budget=6)
        self.assertGreater(report.passed, 4)
        self.assertEqual(report.failed, 0)
        self.assertIn(f"{report.passed} passed, 0 failed", str(report))
        passes = {case.name.split("/")[1] for case in report.cases if case.verdict == "passed"}
        self.assertEqual(passes, {"forward", "backward"})
        factor = torch.tensor(1.0)
        check(lambda a, b: swiglu(a, b) * factor, "swiglu")
        check(functools.partial(tigon.ops.gated, activation="silu"), "swiglu")

    def test_ops_drawn_by_a_seed(self):
        ops = sorted(name.removesuffix(".forward") for name in _native.host().names if name.endswith(".forward"))
        for op in random.Random(SEED).sample(ops, 2):
            with self.subTest(op=op, seed=SEED):
                ours = getattr(tigon.ops, op)
                report = check(ours, op, seed=SEED, dtypes=["f32", "bf16", "f16"])
                self.assertGreater(report.passed, 4)

                @functools.wraps(ours)
                def scaled(*args, ours=ours, **named):
                    made = ours(*args, **named)
                    return tuple(Scaled.apply(m) for m in made) if isinstance(made, tuple) else Scaled.apply(made)
                report = self.wrong("of its budget", scaled, op, passes=[gradient_pass(op)], seed=SEED)
                self.assertLess(report.failed, len(report.cases))

    def test_the_case_of_a_failure_repeats_it(self):
        def without_eps(x, w):
            return rms_norm(x, w, 0.0)
        report = self.wrong(r"\[\d+,\d+\]: got .* want ", without_eps, "rms_norm", passes=["forward"])
        case = next(case for case in report.cases if case.is_failure)
        again = self.wrong("got .* want ", without_eps, "rms_norm", case=case.name)
        self.assertEqual([c.name for c in again.cases], [case.name])

    def test_wrong_formulas(self):
        def eps_outside(x, w, eps):
            return w * x / (x.square().mean(-1, keepdim=True).sqrt() + eps)

        def without_cast(x, w, eps):
            return w * x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)
        self.wrong("inputs=(small_rows|zero|denormal)", eps_outside, "rms_norm", budget=6, passes=["forward"], exclude="T=0")
        self.wrong("y: .* of .* elements wrong", without_cast, "rms_norm", dtypes=["bf16"], passes=["forward"])
        self.wrong("of its budget", lambda gate, up: swiglu(up, gate), "swiglu")

    def test_transposed_sections(self):
        def turned(q, k, cos, sin):
            def one(x):
                a, b = x.chunk(2, -1)
                c, s = cos[:, None], sin[:, None]
                return torch.cat((b * c + a * s, a * c - b * s), -1).to(x.dtype)
            return one(q), one(k)
        self.wrong("[qk](_out)?: .* elements wrong", turned, "rope", passes=["forward"])

    def test_wrong_gradients(self):
        def without_projection(x, w, eps):
            return NormWithoutProjection.apply(x, w, eps)
        report = self.wrong("dx: .* elements wrong", without_projection, "rms_norm")
        self.assertFalse([c.name for c in report.cases if c.is_failure and "/forward/" in c.name])
        self.wrong("no gradient reaches w", lambda x, w, eps: rms_norm(x, w.detach(), eps), "rms_norm", passes=["backward"])

        def residual_forgotten(x, residual, w, eps):
            h = x + Scaled.apply(residual)
            return h, rms_norm(h, w, eps)
        report = self.wrong("residual_forgotten.residual", residual_forgotten, "add_rms_norm", passes=["backward"])
        self.assertFalse([c.name for c in report.cases if c.is_failure and ".residual/" not in c.name])

    def test_results_that_are_none(self):
        def raises(x):
            raise ZeroDivisionError("nothing here")
        with self.assertRaisesRegex(AssertionError, r"it raised ZeroDivisionError: nothing here \(test_testing.py:\d+\)") as caught:
            check(raises, "softmax")
        self.assertIsInstance(caught.exception.__cause__, ZeroDivisionError)
        self.wrong(r"y has the shape \[", lambda x: torch.softmax(x, -1).T.clone(), "softmax", passes=["forward"])
        self.wrong("y is torch.float32, but must be torch.bfloat16", lambda x: torch.softmax(x.float(), -1), "softmax", dtypes=["bf16"])
        self.wrong("it returned NoneType, but softmax returns y, each a tensor", lambda x: None, "softmax")
        self.wrong("it returned Tensor, but add_rms_norm returns h, y, each a tensor", lambda x, residual: x + residual, "add_rms_norm",
                   passes=["forward"])
        self.wrong("nonfinite: .* got nan", lambda x: torch.softmax(x, -1) * float("nan"), "softmax", passes=["forward"])

        def changes_its_input(x):
            x.add_(1)
            return torch.softmax(x, -1)
        self.wrong("input_modified: changed input x", changes_its_input, "softmax", passes=["forward"])

    def test_a_worker_that_is_ended_before_it_hands_over(self):
        """The judge ends workers when the time to look at a failure again is over; under load some have only just begun."""
        connects = "link.connect({address!r})\n"
        self.assertIn(connects, bridge._HANDS_OVER)
        with mock.patch.object(bridge, "_HANDS_OVER", bridge._HANDS_OVER.replace(connects, f"socket.socket(socket.AF_UNIX).{connects[5:]}{connects}")):
            self.assertGreater(check(lambda x: torch.softmax(x, -1), "softmax", passes=["forward"], budget=0.1).passed, 0)

    def test_what_it_cannot_do_is_skipped(self):
        report = check(lambda x, w: rms_norm(x, w, 1e-6), "rms_norm", budget=6, passes=["forward"], exclude="denormal")
        reasons = " ".join(case.reason for case in report.cases if case.verdict == "unsupported")
        for text in ("it needs w", "it has no eps, which is", "it has no offset, which is 1"):
            self.assertIn(text, reasons)

    def test_wrong_calls(self):
        with self.assertRaisesRegex(TypeError, "hidden_norm has the argument hidden, but rms_norm has eps, offset, casting, x, w"):
            def hidden_norm(hidden):
                return hidden
            check(hidden_norm, "rms_norm")
        with self.assertRaisesRegex(ValueError, "no op is called rms_nrm"):
            check(rms_norm, "rms_nrm")
        with self.assertRaisesRegex(ValueError, "has no kernel for f8"):
            check(rms_norm, "rms_norm", dtypes=["f8"])
        with self.assertRaisesRegex(ValueError, "no case of rms_norm was judged"):
            check(lambda w: w, "rms_norm", passes=["forward"])
        with self.assertRaisesRegex(RuntimeError, "the judge ended with exit code 2: .*--exclude"):
            check(rms_norm, "rms_norm", exclude="(")

    def test_without_the_judge(self):
        with mock.patch.dict(os.environ, {"TIGON_PROGRAM": "/nowhere/tigon"}):
            with self.assertRaisesRegex(RuntimeError, "TIGON_PROGRAM is /nowhere/tigon, but there is no such file"):
                check(rms_norm, "rms_norm")
        with mock.patch.dict(os.environ, {"TIGON_PROGRAM": ""}), mock.patch.object(program, "_PACKAGE", program._PACKAGE / "no"), \
                mock.patch.object(program, "_CHECKOUT", program._PACKAGE / "no"):
            with self.assertRaisesRegex(RuntimeError, "needs the judge, the program tigon: .* or install it with pip install"):
                check(rms_norm, "rms_norm")


if __name__ == "__main__":
    unittest.main()
