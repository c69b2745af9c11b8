# SPDX-License-Identifier: Apache-2.0
"""tigon.jax: every op for JAX, against the same op for torch and against JAX's own operations."""
import importlib.util
import inspect
import subprocess
import sys
import unittest

import random_calls
import torch
from tigon._gradients import ops_with_gradients, plan_of
from tigon._torch import operator, pass_of

HAS_JAX = importlib.util.find_spec("jax") is not None and importlib.util.find_spec("jax_tvm_ffi") is not None
if HAS_JAX:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import tigon.jax
    from tigon._jax.call import _module, run
    from tigon._jax.gradients import function_of

BITS = {torch.bfloat16: torch.int16, torch.float16: torch.int16}


def to_jax(t):
    """The same numbers; bfloat16 is no dtype of NumPy's."""
    if t is None:
        return None
    array = t.detach().view(BITS.get(t.dtype, t.dtype)).numpy()
    return jnp.asarray(array.view(jnp.dtype(str(t.dtype).removeprefix("torch."))))


def split(name, given):
    """Tensors, options and `want` of a call of random_calls."""
    said = pass_of(name)
    count, end = len(said.arguments), len(said.arguments) + len(said.options)
    return given[:count], tuple(map(float, given[count:end])), given[end] if said.wanted else 0


def rms_norm(x, w):
    return w * x * jax.lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def loss_of(x, head, target):
    counted, logp = target >= 0, jax.nn.log_softmax(x @ head.T)
    picked = jnp.take_along_axis(logp, jnp.where(counted, target, 0)[..., None], -1)[..., 0]
    return -(picked * counted).sum() / counted.sum()


@unittest.skipUnless(HAS_JAX, "jax and jax_tvm_ffi are not installed")
class EveryOpTest(unittest.TestCase):
    def test_results_have_the_bits_of_torchs(self):
        for name in random_calls.passes():
            combinations = [("f32", options) for options in random_calls.options_of(pass_of(name))]
            combinations += [(dtype, next(random_calls.options_of(pass_of(name)))) for dtype in ("bf16", "f16")]
            for dtype, options in combinations:
                for optional in (False, True):
                    with self.subTest(name=name, dtype=dtype, options=options, optional=optional):
                        given = random_calls.arguments(name, dtype, options, optional)
                        tensors, values, want = split(name, given)
                        made = run(name, [to_jax(t) for t in tensors], values, want)
                        for result, ours, theirs in zip(pass_of(name).results, made, operator(name)(*given), strict=True):
                            if ours is None:
                                self.assertTrue(result.wanted_bit is not None and not want >> result.wanted_bit & 1, result.name)
                            else:
                                self.assertTrue(bool((ours == to_jax(theirs)).all()) and ours.shape == theirs.shape, result.name)

    def test_gradients_are_torchs(self):
        for op in ops_with_gradients():
            for options in random_calls.options_of(pass_of(f"{op}.forward")):
                for optional in (False, True):
                    with self.subTest(op=op, options=options, optional=optional):
                        self.compare_gradients(op, options, optional)

    def compare_gradients(self, op, options, optional):
        name, plan = f"{op}.forward", plan_of(op)
        given = random_calls.arguments(name, "f32", options, optional, needs_grad=True)
        tensors, values, want = split(name, given)
        made = operator(name).overload(*given)
        made = made if isinstance(made, tuple) else (made,)
        upstream = {i: torch.rand_like(made[i]) for i in plan.differentiable}
        sum((made[i] * u).sum() for i, u in upstream.items()).backward()
        function = function_of(op, values, want)
        asked = tuple(i for i in plan.gradients if tensors[i] is not None)

        def total(*chosen):
            filled = [to_jax(t) for t in tensors]
            for i, t in zip(asked, chosen, strict=True):
                filled[i] = t
            results = function(*filled)
            return sum((results[i] * to_jax(u)).sum() for i, u in upstream.items() if results[i] is not None)

        ours = jax.jit(jax.grad(total, tuple(range(len(asked)))))(*(to_jax(tensors[i]) for i in asked))
        for i, gradient in zip(asked, ours, strict=True):
            np.testing.assert_allclose(gradient, tensors[i].grad.numpy(), rtol=1e-6, atol=1e-6, err_msg=pass_of(name).arguments[i].name)

    def test_every_op_says_what_it_takes(self):
        self.assertEqual({f"{op}.forward" for op in dir(tigon.jax)}, {name for name in random_calls.passes() if name.endswith(".forward")})
        for op in dir(tigon.jax):
            with self.subTest(op=op):
                said, function = pass_of(f"{op}.forward"), getattr(tigon.jax, op)
                self.assertIn(said.formula, function.__doc__)
                self.assertEqual(len(inspect.signature(function).parameters), len(said.arguments) + len(said.options) + bool(said.wanted))


@unittest.skipUnless(HAS_JAX, "jax and jax_tvm_ffi are not installed")
class JaxTest(unittest.TestCase):
    def setUp(self):
        keys = jax.random.split(jax.random.key(0), 3)
        self.x, self.w, self.head = (jax.random.normal(key, shape) for key, shape in zip(keys, ((2, 3, 16), (16,), (31, 16)), strict=True))
        self.target = jnp.array([[1, 2, -100], [30, 4, 5]])

    def close(self, ours, theirs, bound=2e-6):
        for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
            self.assertEqual((a.shape, a.dtype), (b.shape, b.dtype))
            self.assertLessEqual(float(abs(a - b).max()), bound * float(abs(b).max()))

    def test_a_norm(self):
        def total(norm, x, w):
            return (norm(x, w) ** 2 * x).sum()

        self.close(tigon.jax.rms_norm(self.x, self.w), rms_norm(self.x, self.w))
        ours, theirs = (jax.jit(jax.grad(lambda x, w, norm=norm: total(norm, x, w), (0, 1)))(self.x, self.w) for norm in (tigon.jax.rms_norm, rms_norm))
        self.close(ours, theirs)

    def test_a_loss(self):
        def ours(x, head):
            return 3 * tigon.jax.linear_cross_entropy(x, head, self.target)

        def theirs(x, head):
            return 3 * loss_of(x, head, self.target)

        self.close(jax.value_and_grad(ours, (0, 1))(self.x, self.head), jax.value_and_grad(theirs, (0, 1))(self.x, self.head))
        each = tigon.jax.linear_cross_entropy(self.x, self.head, self.target, reduction="none")
        self.assertEqual(each.shape, self.target.shape)
        self.close(each.sum() / 5, loss_of(self.x, self.head, self.target))
        logp, entropy = tigon.jax.log_prob(self.x @ self.head.T, self.target, extras=("entropy",))
        self.assertEqual((logp.shape, entropy.shape), (self.target.shape, self.target.shape))

    def test_int64(self):
        with jax.enable_x64(True):
            target = self.target.astype(jnp.int64)
            self.assertEqual(target.dtype, jnp.int64)
            self.close(tigon.jax.linear_cross_entropy(self.x, self.head, target), loss_of(self.x, self.head, self.target).astype("float32"))

    def test_a_batch_of_calls(self):
        other = jnp.stack([self.w, 2 * self.w])
        self.close(jax.vmap(tigon.jax.rms_norm)(self.x, other), jax.vmap(rms_norm)(self.x, other))
        ours = jax.vmap(jax.grad(lambda x, w: tigon.jax.rms_norm(x, w)[0, 1], 1), (None, 0))(self.x[0], other)
        self.close(ours, jax.vmap(jax.grad(lambda x, w: rms_norm(x, w)[0, 1], 1), (None, 0))(self.x[0], other))

    def test_what_changes_in_place_is_not_the_callers(self):
        angles = jnp.linspace(0.1, 1, 6 * 4).reshape(6, 4)
        q = self.x.reshape(2, 3, 2, 8)
        before = q + 0
        turned, _ = jax.jit(lambda q: tigon.jax.rope(q, q, jnp.cos(angles), jnp.sin(angles)))(q)
        self.assertTrue(bool((q == before).all()) and bool((turned != before).any()))

    def test_wrong_calls(self):
        for error, text, call in (
                (RuntimeError, r"rms_norm.forward: w is \[3\], but its axis 0 must be 16",
                 lambda: jax.block_until_ready(tigon.jax.rms_norm(self.x, jnp.ones(3)))),
                (ValueError, "casting is 'other', but must be one of llama, gemma, none", lambda: tigon.jax.rms_norm(self.x, casting="other")),
                (TypeError, "unexpected keyword argument 'speed'", lambda: tigon.jax.rms_norm(self.x, speed=1)),
                (TypeError, "arrays of complex64 have no kernel", lambda: tigon.jax.softmax(self.x.astype("complex64"))),
                (TypeError, "log_prob has no extra lse; it has entropy", lambda: tigon.jax.log_prob(self.x, self.target, extras=("lse",))),
                (LookupError, "softmax.forward has no kernel for i32, only for f32, bf16, f16", lambda: tigon.jax.softmax(self.target)),
                (AttributeError, "has no attribute 'nosuch'; its ops are add_rms_norm", lambda: tigon.jax.nosuch),
                (TypeError, "forward-mode", lambda: jax.jvp(tigon.jax.softmax, (self.x,), (self.x,))),
                (ValueError, "cannot be differentiated", lambda: jax.grad(lambda x: jax.grad(lambda x: tigon.jax.softmax(x)[0, 0, 0])(x).sum())(self.x))):
            with self.subTest(text=text), self.assertRaisesRegex(error, text):
                call()

    def test_wrong_texts(self):
        x = torch.zeros(2, 4)
        for text, message in (("softmax.forward f32", "ends early"), ("softmax.forward f32 2 x", "x is no number"),
                              ("softmax.forward f32 2 0 5 f32 2", "has no tensor 5"), ("softmax.forward f32 2 0 0 f31 2", "no dtype f31"),
                              ("softmax.forward f32 2 0", "a call has tensors"), ("nosuch f32 1 0 0 f32 2", "there is no nosuch"),
                              ("softmax.forward f32 2 0 0 f32 3", "too few axes"), ("softmax.forward f32 2 0 0 f32 2 1 f32 2", "1 tensors are given, but 2")):
            with self.subTest(text=text), self.assertRaisesRegex(RuntimeError, message):
                _module()["tigon_bind"](text)(x)


class WithoutTest(unittest.TestCase):
    def run_python(self, program):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def test_what_is_missing_is_said(self):
        said = self.run_python("""
import sys
sys.modules["jax_tvm_ffi"] = None
try:
    import tigon.jax
except ImportError as error:
    print(error)
""")
        self.assertEqual(said, "tigon.jax needs jax and jax_tvm_ffi; install them with: pip install jax jax-tvm-ffi\n")

    @unittest.skipUnless(HAS_JAX, "jax and jax_tvm_ffi are not installed")
    def test_torch_is_not_imported(self):
        said = self.run_python("""
import sys
sys.modules["torch"] = None
import tigon
print(tigon.jax.softmax(__import__("jax").numpy.zeros((2, 4)))[0, 0])
""")
        self.assertEqual(said, "0.25\n")


if __name__ == "__main__":
    unittest.main()
