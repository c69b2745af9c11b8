# SPDX-License-Identifier: Apache-2.0
"""tigon.testing.compare: right functions pass whatever their order and dtype, each fault fails, and a failure says what and where."""
import os
import random
import unittest

import torch
import torch.nn.functional as F
from references import PROBLEMS, Scaled
from tigon._testing.made import call, copies
from tigon._testing.oracle import Oracle
from tigon.testing import compare
from torch import nn

SEED = int(os.environ.get("TIGON_SEED") or random.randrange(1 << 30))
DTYPES = (torch.float32, torch.bfloat16, torch.float16)
ROWS, COLUMNS = 12, 96
X, W = (ROWS, COLUMNS), (COLUMNS,)


def rms_norm(x, w):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * w


def other_rms_norm(x, w):
    """The sum in pieces and from its end."""
    h = x.float()
    squares = sum(piece.square().sum(-1, keepdim=True) for piece in h.flip(-1).split(7, -1))
    return (h / (squares / COLUMNS + 1e-6).sqrt() * w.float()).to(x.dtype)


def other_softmax(x):
    h = x.float()
    return torch.exp(h - h.logsumexp(-1, keepdim=True)).to(x.dtype)


def other_linear(x, w, b):
    """One product after the other."""
    y = b.float()
    for column in range(COLUMNS):
        y = y + x[:, column, None].float() * w[:, column].float()
    return F.gelu(y).to(x.dtype)


def other_layer_norm(x, w, b):
    h = x.float()
    apart = h - h.sum(-1, keepdim=True) / COLUMNS
    return (apart * (apart.square().sum(-1, keepdim=True) / COLUMNS + 1e-5).rsqrt() * w.float() + b.float()).to(x.dtype)


# A reference, others that compute the same, and the shapes of the inputs.
SAME = {
    "rms_norm": (rms_norm, [other_rms_norm], [X, W]),
    "softmax": (lambda x: F.softmax(x, -1), [other_softmax], [X]),
    "gelu of linear": (lambda x, w, b: F.gelu(F.linear(x, w, b)), [other_linear], [X, (8, COLUMNS), (8,)]),
    "layer_norm": (lambda x, w, b: F.layer_norm(x, W, w, b), [other_layer_norm], [X, W, W]),
    "attention": (lambda q, k, v: torch.softmax(q @ k.transpose(-1, -2) / 4, -1) @ v, [F.scaled_dot_product_attention], [(2, 9, 16)] * 3),
    "sort": (lambda x: tuple(x.sort(-1)), [lambda x: (x.sort(-1).values, x.argsort(-1))], [X]),
    "convolution": (lambda x, w: F.relu(F.conv2d(x, w, padding=1)), [], [(2, 3, 8, 8), (4, 3, 3, 3)]),
    "batch_norm": (lambda x: F.batch_norm(x, None, None, training=True), [], [(9, 4, 5)]),
    "loss": (lambda x: F.cross_entropy(x, torch.arange(ROWS)), [], [X]),
    "argmax": (lambda x: (x * 2).argmax(-1), [lambda x: x.argmax(-1)], [X]),
    "norm": (lambda x: x / x.norm(dim=-1, keepdim=True), [lambda x: x / x.square().sum(-1, keepdim=True).sqrt()], [X]),
    "spread": (lambda x: (x.std(-1), x.var(0)), [], [X]),
}


def changed(place, change):
    """A fault of results: one element or slice becomes another."""
    def fault(y):
        y = y.clone()
        y[place] = change(y[place])
        return y
    return fault


def scaled(roundoffs):
    return lambda y: (y.double() * (1 + roundoffs * torch.finfo(y.dtype).eps / 2)).to(y.dtype)


# Faults of a function's results; in which dtypes they can be seen.
FAULTS = {
    "zeros": (torch.zeros_like, DTYPES),
    "ones": (torch.ones_like, DTYPES),
    "scaled by 1 + 8 u": (scaled(8), (torch.bfloat16, torch.float16)),
    "scaled by 1 + 64 u": (scaled(64), DTYPES),
    "one element scaled": (changed((3, 5), lambda v: v * 1.1), DTYPES),
    "one element NaN": (changed((3, 5), lambda v: v * float("nan")), DTYPES),
    "one element infinite": (changed((3, 5), lambda v: v / 0), DTYPES),
    "off by one row": (lambda y: y.roll(1, 0).clone(), DTYPES),
    "off by one column": (lambda y: y.roll(1, -1).clone(), DTYPES),
    "last row stale": (changed(-1, torch.zeros_like), DTYPES),
    "last column lost": (changed((slice(None), -1), torch.zeros_like), DTYPES),
    "negated": (lambda y: -y, DTYPES),
    "mean of rows": (lambda y: y.mean(0, keepdim=True).expand_as(y).clone(), DTYPES),
    "rounded to bf16": (lambda y: y.bfloat16().to(y.dtype), (torch.float32, torch.float16)),
    "rounded to 11 bits": (lambda y: (y.view(torch.int32) & -8192).view(torch.float32), (torch.float32,)),
    "another dtype": (lambda y: y.double(), DTYPES),
    "another shape": (lambda y: y[None].clone(), DTYPES),
    "meta": (lambda y: y.to("meta"), DTYPES),
    "a subclass": (lambda y: nn.Parameter(y, requires_grad=False), DTYPES),
    "sparse": (lambda y: y.to_sparse(), (torch.float32,)),
    "no tensor": (lambda y: y.tolist(), (torch.float32,)),
    "nothing": (lambda y: None, (torch.float32,)),
    "twice": (lambda y: (y, y), (torch.float32,)),
}

# Functions that are not the reference of a problem above: what somebody forgot.
WRONG = {
    "rms_norm": {
        "another eps": lambda x, w: x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-2) * w,
        "weight ignored": lambda x, w: rms_norm(x, torch.ones_like(w)),
        "mean over one column less": lambda x, w: x * torch.rsqrt(x[:, :-1].pow(2).mean(-1, keepdim=True) + 1e-6) * w,
        "identity": lambda x, w: x.clone(),
    },
    "softmax": {
        "not normed": lambda x: (x - x.amax(-1, keepdim=True)).exp(),
        "over the other axis": lambda x: F.softmax(x, 0),
        "in bf16": lambda x: F.softmax(x.bfloat16(), -1).to(x.dtype),
    },
    "gelu of linear": {
        "tanh in place of erf": lambda x, w, b: F.gelu(F.linear(x, w, b), approximate="tanh"),
        "bias forgotten": lambda x, w, b: F.gelu(x @ w.T),
        "products in bf16": lambda x, w, b: F.gelu(F.linear(x.bfloat16(), w.bfloat16(), b.bfloat16())).to(x.dtype),
    },
    "layer_norm": {
        "n - 1": lambda x, w, b: (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + 1e-5).sqrt() * w + b,
    },
    "sort": {"unstable order": lambda x: (x.sort(-1).values, x.argsort(-1).roll(1, -1))},
    "argmax": {"the second": lambda x: x.topk(2, -1).indices[:, 1].clone()},
    "spread": {"all rows": lambda x: (x.std(-1), x.var(0, correction=0))},
}


def inputs(shapes, dtype, seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


class CompareTest(unittest.TestCase):
    def wrong(self, text, *arguments, **options):
        with self.assertRaisesRegex(AssertionError, text) as caught:
            compare(*arguments, **options)
        self.assertEqual(len(str(caught.exception).splitlines()), 1)
        return caught.exception.report

    def test_the_same_in_another_order_is_right(self):
        for name, (reference, others, shapes) in SAME.items():
            for dtype in DTYPES:
                given = inputs(shapes, dtype, SEED)
                oracle = Oracle(reference, given, backward=True, seed=SEED)
                for other in (reference, *others):
                    with self.subTest(name=name, dtype=dtype, seed=SEED):
                        cases = oracle.cases(call(other, copies(given, True), oracle.upstream))
                        self.assertEqual([case for case in cases if case.verdict != "passed"], [])

    def test_every_op_of_tigon_is_its_formula(self):
        chance = random.Random(SEED)
        for name, problem in PROBLEMS.items():
            dtype = chance.choice(DTYPES)
            with self.subTest(name=name, dtype=dtype, seed=SEED):
                report = compare(problem.ours, problem.reference, inputs(problem.parameters, dtype, SEED), backward=True)
                self.assertGreater(report.passed, len(problem.parameters))

    def test_faults_of_results(self):
        for name in ("rms_norm", "softmax", "layer_norm"):
            reference, _, shapes = SAME[name]
            for dtype in DTYPES:
                given = inputs(shapes, dtype, SEED)
                oracle = Oracle(reference, given)
                for fault, (change, dtypes) in FAULTS.items():
                    if dtype in dtypes:
                        with self.subTest(name=name, dtype=dtype, fault=fault, seed=SEED):
                            made = call(lambda *a, f=reference, c=change: c(f(*a)), given, None)
                            self.assertTrue(any(case.is_failure for case in oracle.cases(made)))

    def test_faults_of_functions(self):
        for name, functions in WRONG.items():
            reference, _, shapes = SAME[name]
            for fault, function in functions.items():
                with self.subTest(name=name, fault=fault, seed=SEED):
                    self.wrong("is wrong: result", function, reference, inputs(shapes, torch.float32, SEED))

    def test_results_that_any_absolute_tolerance_takes_for_zero(self):
        """KernelBench's issue 165: outputs of a softmax over many columns are 4e-6."""
        x = torch.randn(1, 1 << 17)
        self.wrong("want [0-9.]+e-0", torch.zeros_like, lambda x: F.softmax(x, -1), [x])

    def test_wrong_gradients(self):
        given = inputs([X, W], torch.float32, SEED)
        self.wrong("gradient of input 0: .* elements wrong", lambda x, w: rms_norm(Scaled.apply(x), w), rms_norm, given, backward=True)
        self.wrong("gradient of input 1: no gradient reaches it", lambda x, w: rms_norm(x, w.detach()), rms_norm, given, backward=True)
        module, other = nn.Linear(4, 3), nn.Linear(4, 3)
        other.load_state_dict(module.state_dict())
        self.assertEqual(compare(other, module, [torch.randn(5, 4)], backward=True).passed, 4)
        other.bias.requires_grad_(False)
        self.wrong("gradient of parameter bias: it is missing", other, module, [torch.randn(5, 4)], backward=True)

    def test_inputs_and_memory(self):
        x = torch.randn(6)
        self.wrong("input 0: it was changed", lambda x: x.mul_(2).clone(), lambda x: x * 2, [x])
        self.wrong("result: it lies in the memory of input 0", lambda x: x, lambda x: x * 1, [x])
        compare(lambda x: x, lambda x: x, [x])
        compare(lambda x: x.mul_(2).sum(), lambda x: x.mul_(2).sum(), [x])
        self.wrong("input 0: it must be changed", lambda x: (x * 2).sum(), lambda x: x.mul_(2).sum(), [x])
        self.wrong("input 0: 6 of 6 elements wrong", lambda x: (x.mul_(2).sum(), x.mul_(2))[0], lambda x: x.mul_(2).sum(), [x])

    def test_nan_and_infinity_where_the_reference_has_them(self):
        x = torch.tensor([[1.0, -1.0, 0.0, float("inf")], [float("nan"), 4.0, 9.0, 16.0]])
        compare(lambda x: x ** 0.5, torch.sqrt, [x])
        self.wrong("got 0, want nan", lambda x: x.sqrt().nan_to_num(0.0, posinf=float("inf")), torch.sqrt, [x])
        self.wrong(r"\[0,3\]: got 3.40282e\+38, want inf", lambda x: x.sqrt().clamp(max=torch.finfo(x.dtype).max), torch.sqrt, [x])

    def test_references_that_cannot_judge(self):
        for text, reference in (("draws random numbers", F.dropout), ("rounding alone decides", lambda x: (x.exp().log() - x).sqrt()[:1])):
            with self.assertRaisesRegex(ValueError, text):
                compare(reference, reference, [torch.full((4,), 0.3)])

    def test_other_inputs(self):
        def reference(tensors, factor):
            return {"sum": tensors["a"] + tensors["b"] * factor, "count": tensors["a"].numel(), "name": "x"}
        given = [{"a": torch.randn(3), "b": torch.randn(3)}, 2.0]
        self.assertEqual(compare(reference, reference, given).passed, 3)
        self.wrong("result 1: got 4, want 3", lambda t, f: {**reference(t, f), "count": 4}, reference, given)


if __name__ == "__main__":
    unittest.main()
