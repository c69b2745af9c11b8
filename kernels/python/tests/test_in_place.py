# SPDX-License-Identifier: Apache-2.0
"""Gradients that are written over what forward kept: the same bits, and only where nobody else holds that memory."""
import unittest
from unittest import mock

import torch
from tigon import _in_place, ops
from torch.utils.checkpoint import checkpoint

F = torch.nn.functional


class Case:
    """gate and up by linear layers, swiglu, and whatever else looks at the gate's input."""

    def __init__(self, op=ops.swiglu):
        random = torch.Generator().manual_seed(1)
        self.op = op
        self.x, self.w, self.v = (torch.randn(*shape, generator=random).requires_grad_() for shape in ((2, 3, 4), (6, 4), (6, 4)))

    def forward(self, before=None, after=None):
        """before and after: functions of the op's first argument, called before or behind the op; the tensors they give join the loss."""
        gate, up = F.linear(self.x, self.w), F.linear(self.x, self.v)
        first = before(gate) if before else None
        y = self.op(gate, up)
        others = [first, after(gate) if after else None]
        return sum((o.sum() for o in others if isinstance(o, torch.Tensor)), y.square().sum())

    def gradients(self, run):
        """The gradients, and whether they were written in place."""
        for t in (self.x, self.w, self.v):
            t.grad = None
        own, used = _in_place.InPlace.__call__, []

        def call(form, *arguments):
            used.append(form)
            return own(form, *arguments)

        with mock.patch.object(_in_place.InPlace, "__call__", call):
            run()
        return [t.grad.clone() for t in (self.x, self.w, self.v)], bool(used)


class InPlaceTest(unittest.TestCase):
    def loss(self, case, wrapped, settings):
        return checkpoint(case.forward, use_reentrant=False, **settings) if wrapped else case.forward(**settings)

    def assert_same(self, found, wanted):
        for a, b in zip(found, wanted, strict=True):
            self.assertTrue(torch.equal(a, b))

    def test_the_same_bits_in_place(self):
        for op in (ops.swiglu, ops.geglu):
            case = Case(op)
            wanted, used = case.gradients(lambda: case.forward().backward(retain_graph=True))
            self.assertFalse(used)
            found, used = case.gradients(lambda: case.forward().backward())
            self.assertTrue(used)
            self.assert_same(found, wanted)

    def test_packed_halves(self):
        case = Case(lambda gate, up: ops.swiglu(gate, layout="gate_first") + 0 * up.sum())
        wanted, _ = case.gradients(lambda: case.forward().backward(retain_graph=True))
        found, used = case.gradients(lambda: case.forward().backward())
        self.assertTrue(used)
        self.assert_same(found, wanted)

    def test_under_activation_checkpointing(self):
        case = Case()
        wanted, _ = case.gradients(lambda: case.forward().backward(retain_graph=True))
        found, used = case.gradients(lambda: checkpoint(case.forward, use_reentrant=False).backward())
        self.assertTrue(used)
        self.assert_same(found, wanted)

    def test_not_where_somebody_else_holds_the_memory(self):
        held = []

        def keep(t):
            held.append((t, t.detach().clone()))

        def keep_view(t):
            held.append((t.detach()[0], t.detach()[0].clone()))

        for name, settings in {"in Python": {"before": keep}, "behind the op": {"after": keep}, "a view": {"before": keep_view},
                               "another node, later in backward": {"before": torch.sin}, "its result": {"before": lambda t: t.exp_()},
                               "a hook of its gradient": {"before": lambda t: t.register_hook(lambda gradient: held.append((t, t.detach().clone())))}}.items():
            for wrapped in (False, True):
                with self.subTest(name, checkpointing=wrapped):
                    case = Case()
                    wanted, _ = case.gradients(lambda: case.forward(**settings).backward(retain_graph=True))
                    held.clear()
                    found, used = case.gradients(lambda: self.loss(case, wrapped, settings).backward())
                    self.assert_same(found, wanted)
                    self.assertTrue(all(torch.equal(t, before) for t, before in held))
                    self.assertFalse(used and held)

    def test_hooks_that_keep_what_is_saved(self):
        case, kept = Case(), []

        def pack(t):
            kept.append((t, t.detach().clone()))
            return t

        def run():
            with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
                loss = case.forward()
            loss.backward()

        wanted, _ = case.gradients(lambda: case.forward().backward(retain_graph=True))
        found, used = case.gradients(run)
        self.assertFalse(used)
        self.assert_same(found, wanted)
        self.assertTrue(all(torch.equal(t, before) for t, before in kept))

    def test_an_argument_that_is_a_parameter(self):
        case = Case()
        y = ops.swiglu(case.w, case.v)
        before = case.w.detach().clone(), case.v.detach().clone()
        y.sum().backward()
        self.assert_same([case.w, case.v], before)

    def test_two_arguments_that_are_one(self):
        case = Case(lambda gate, up: ops.swiglu(gate, gate))
        wanted, _ = case.gradients(lambda: (case.forward() + 0 * case.v.sum()).backward(retain_graph=True))
        found, used = case.gradients(lambda: (case.forward() + 0 * case.v.sum()).backward())
        self.assertFalse(used)
        self.assert_same(found, wanted)

    def test_a_torch_that_does_not_count(self):
        case = Case()
        with mock.patch.object(_in_place, "_alone", lambda: None):
            _, used = case.gradients(lambda: case.forward().backward())
        self.assertFalse(used)

    def test_the_operator_itself(self):
        a, b, dy = torch.randn(3, 4), torch.randn(3, 4), torch.randn(3, 4)
        da, db = torch.ops.tigon.swiglu_backward(dy, a, b)
        schema = torch.ops.tigon.swiglu_backward_.default._schema
        self.assertEqual([t.alias_info is not None and t.alias_info.is_write for t in schema.arguments[:3]], [False, True, True])
        with torch._C._AutoDispatchBelowAutograd():
            torch.ops.tigon.swiglu_backward_(dy, a, b)
        self.assert_same([a, b], [da, db])
        with self.assertRaisesRegex(RuntimeError, "a has gaps"), torch._C._AutoDispatchBelowAutograd():
            torch.ops.tigon.swiglu_backward_(dy, torch.randn(4, 3).t(), b)


if __name__ == "__main__":
    unittest.main()
