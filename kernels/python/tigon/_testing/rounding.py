# SPDX-License-Identifier: Apache-2.0
"""What rounding may do to each of torch's operations: each is done in float64, and moved at random as far as a float would be.

A result moves by one roundoff of the dtype that it is stored in. Inside of an operation values are float32:

| operation | moves by, besides |
|---|---|
| copies, choices, order, signs | nothing, and not by the roundoff either |
| sums: sum, mean, products of matrices, convolutions | sqrt(n) u sum of |terms|; of a long sum n is that of its partial sums |
| functions: exp, tanh, rsqrt and others | u of the argument, 4 u of the result, and a quarter of a 16-bit result's roundoff |
| what torch can write as simpler operations, as a norm or a softmax | what those do, each in float32; a softmax besides u of its logsumexp |
| others | 2 u of the result |
"""
import math
from collections.abc import Callable
from typing import Any

import torch
import torch._decomp
import torch._refs  # whose decompositions register themselves  # noqa: F401
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .tape import Step, Unjudgeable

_COPIES = set("""
    _to_copy _unsafe_view abs amax amin argmax argmin bitwise_and bitwise_not bitwise_or broadcast_in_dim cat ceil channel_shuffle clamp
    clamp_max clamp_min clone collapse col2im_backward constant_pad_nd convert_element_type copy copysign cummax cummin diag_embed embedding eq
    expand_copy fill flip floor fmax fmin gather ge gt hardtanh heaviside im2col index index_copy index_put index_select isfinite isinf isnan
    kthvalue le logical_and logical_not logical_or lt masked_fill masked_scatter masked_select max maximum max_pool2d_with_indices
    max_pool3d_with_indices max_unpool2d median min minimum mode ne neg new_empty new_ones new_zeros nonzero one_hot ones_like permute_copy
    pixel_shuffle pixel_unshuffle reflection_pad1d reflection_pad2d reflection_pad3d relu repeat replication_pad1d replication_pad2d
    replication_pad3d roll round scatter searchsorted select_backward select_scatter sgn sign slice_backward slice_scatter sort split_with_sizes
    stack sub_view threshold threshold_backward topk transpose_copy tril triu trunc unfold unsafe_split unsafe_split_with_sizes
    upsample_nearest1d upsample_nearest2d upsample_nearest3d view_copy view_of where zero zeros_like empty_like empty_strided resize
    lift lift_fresh set_ detach alias view clone_ item _local_scalar_dense squeeze_copy unsqueeze_copy as_strided_copy hardtanh_backward
""".split())
_SUMS = set("""
    _adaptive_avg_pool2d _adaptive_avg_pool2d_backward _adaptive_avg_pool3d _embedding_bag adaptive_avg_pool1d addbmm addmm addmv addr avg_pool1d
    avg_pool2d avg_pool2d_backward avg_pool3d avg_pool3d_backward baddbmm bmm col2im convolution convolution_backward cumsum dot mean mm mv nansum
    sum trace upsample_bilinear2d upsample_linear1d vdot unfold_backward reflection_pad1d_backward reflection_pad2d_backward
    replication_pad1d_backward replication_pad2d_backward upsample_nearest2d_backward upsample_bilinear2d_backward
""".split())
_SOFTMAXES = {"_softmax", "_log_softmax", "_safe_softmax"}
# Each term is added to what is stored.
_STORED_SUMS = set("index_add scatter_add embedding_dense_backward max_pool2d_with_indices_backward index_put_accumulate scatter_reduce".split())
_FUNCTIONS = set("""
    acos acosh asin asinh atan atan2 atanh cos cosh digamma erf erfc erfinv exp exp2 expm1 lgamma log log10 log1p log2 logcumsumexp logaddexp
    pow reciprocal rsqrt sigmoid sin sinh softplus special_erfcx sqrt tan tanh polygamma igamma xlogy
""".split())
_FACTORIES = set("full scalar_tensor zeros ones empty arange full_like new_full eye".split())
_ELEMENTARY = set("add sub mul div rsub addcmul addcdiv lerp prod".split())

_LANES = 32


def unit(dtype: torch.dtype) -> float:
    """Half a unit in the last place of 1: u."""
    return torch.finfo(dtype).eps / 2


def _inside(dtype: torch.dtype) -> torch.dtype:
    """What values of an operation are while it runs."""
    return torch.float64 if dtype == torch.float64 else torch.float32


class Rounding(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Runs operations on float64 as if each result had been rounded to its own dtype, in random directions."""

    def __init__(self, seed: int, device: torch.device):
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator = torch.Generator(device).manual_seed(seed)
        self._stored = torch.float32
        self._terms: dict[Any, float] = {}

    def __call__(self, step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """One step of a tape. Unjudgeable: torch cannot do it in float64."""
        floating = [dtype for dtype in step.dtypes if dtype is not None and dtype.is_floating_point]
        return self.run(step.func, args, kwargs, max(floating, key=unit, default=torch.float64), step.loses)

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        """An operation inside of another."""
        return self.run(func, args, kwargs or {}, self._stored, False)

    def run(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], dtype: torch.dtype, loses: bool) -> Any:
        """The result of an operation whose results are stored as `dtype`; `loses`: it is a copy to a smaller one."""
        name, inside, in_place = _name(func, args), _inside(dtype), func._schema.is_mutable
        stored, working = unit(dtype), unit(inside)
        if loses:
            return self._moved(func(*args, **kwargs), stored, dtype, in_place)
        if func.is_view or name in _COPIES:
            return func(*args, **kwargs)
        if name in _FACTORIES:
            return _exact_or(func(*args, **kwargs), dtype, lambda out: self._moved(out, stored, dtype, in_place))
        if name in _SUMS | _STORED_SUMS:
            return self._moved(self._sum(func, args, kwargs, working if name in _SUMS else stored), stored, dtype, in_place)
        if name in _FUNCTIONS:
            approximate = stored / 4 if stored > working else 0.0
            args = (self._near(args[0], working, in_place), *args[1:])
            return self._moved(func(*args, **kwargs), stored + 4 * working + approximate, dtype, in_place)
        simpler = _OWN.get(func) or torch._decomp.decomposition_table.get(func)
        if simpler is not None and name not in _ELEMENTARY and not in_place:
            out = self._simpler(simpler, args, kwargs, inside)
            out = self._shifted(out, args[0], args[1], working, "log" in name) if name in _SOFTMAXES else out
            return self._moved(out, stored, dtype, False)
        roundings = math.sqrt(args[0].numel()) if name == "prod" else 2
        return self._moved(func(*args, **kwargs), stored + roundings * working, dtype, in_place)

    def _near(self, argument: Any, relative: float, in_place: bool) -> Any:
        """An argument that is as exact as `relative`."""
        if not isinstance(argument, Tensor) or not argument.is_floating_point():
            return argument
        moved = argument * (1 + relative * self._random(argument))
        return argument.copy_(moved) if in_place else moved

    def _simpler(self, decomposition: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], inside: torch.dtype) -> Any:
        before, self._stored = self._stored, inside
        try:
            with self:
                return decomposition(*args, **kwargs)
        finally:
            self._stored = before

    def _shifted(self, out: Tensor, x: Tensor, dim: int, working: float, is_log: bool) -> Tensor:
        """A softmax whose kernel subtracts a rounded logsumexp, as those do that keep it for backward."""
        moves = working * x.logsumexp(dim, keepdim=True).abs().nan_to_num(0.0, 0.0) * self._random(out)
        return out + (moves if is_log else out * moves)

    def _sum(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any], u: float) -> Any:
        """A function that is linear in each of its tensors, before its result is stored."""
        given = {n: abs(v) if n in ("alpha", "beta") else v for n, v in kwargs.items()}
        magnitudes = pytree.tree_leaves(func(*_each(args, Tensor.abs), **_each(given, Tensor.abs)))
        amplitude = u * math.sqrt(self._length(func, args, given))
        out = func(*args, **kwargs)
        for leaf, magnitude in zip(pytree.tree_leaves(out), magnitudes):
            if isinstance(leaf, Tensor) and leaf.is_floating_point():
                leaf.add_(amplitude * magnitude * self._random(leaf))
        return out

    def _length(self, func: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> float:
        """How many terms are added one by one in its longest sum: n, which is its result where every term is 1, or where that
        is less 32 partial sums of n / 32, which any device makes at least."""
        key = (func, str(pytree.tree_map(lambda v: tuple(v.shape) if isinstance(v, Tensor) else v, (args, kwargs))))
        if key not in self._terms:
            ones = pytree.tree_leaves(func(*_each(args, torch.ones_like), **_each(kwargs, torch.ones_like)))
            longest = [float(leaf.max()) for leaf in ones if isinstance(leaf, Tensor) and leaf.is_floating_point() and leaf.numel()]
            if "mean" in str(func) or "avg_pool" in str(func):
                longest = [args[0].numel() / max(1, ones[0].numel())]
            n = max(1.0, *longest, 1.0)
            self._terms[key] = min(n, _LANES + n / _LANES)
        return self._terms[key]

    def _moved(self, out: Any, relative: float, dtype: torch.dtype, in_place: bool) -> Any:
        """A result, by chance moved as far as a roundoff; beyond the dtype's range it is infinite."""
        def moved(leaf: Any) -> Any:
            if not isinstance(leaf, Tensor) or leaf.dtype != torch.float64 or not leaf.numel():
                return leaf
            amplitude = (leaf.abs() * relative).add_((leaf != 0) * _smallest(dtype))
            result = leaf + amplitude.mul_(self._random(leaf))
            if not math.isfinite(float(result.sum())):
                result = torch.where(leaf.isfinite(), result, leaf)
            if dtype != torch.float64:
                largest = torch.finfo(dtype).max
                result.masked_fill_(result > largest, math.inf).masked_fill_(result < -largest, -math.inf)
            return leaf.copy_(result) if in_place else result
        return pytree.tree_map(moved, out)

    def _random(self, like: Tensor) -> Tensor:
        """Between -1 and 1."""
        return torch.rand(like.shape, generator=self._generator, device=like.device).mul_(2).sub_(1)


def exactly(step: Step, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """One step of a tape in float64. Unjudgeable: torch cannot do it."""
    try:
        return step.func(*args, **kwargs)
    except (RuntimeError, NotImplementedError) as error:
        raise Unjudgeable(f"torch does not do {step.func} in float64: {str(error).splitlines()[0]}") from error


def _name(func: Any, args: tuple[Any, ...]) -> str:
    """What an operation is called, in place or not."""
    name = func._schema.name.split("::")[1]
    if name.startswith("index_put") and (args[3:] or (False,))[0]:
        return "index_put_accumulate"
    return str(name.rstrip("_"))


def _variance(x: Tensor, dims: Any = None, correction: float = 1) -> Tensor:
    dims = list(range(x.dim())) if dims is None else dims
    count = math.prod(x.shape[d] for d in dims)
    squares: Tensor = (x - x.mean(dims, keepdim=True)).square().sum(dims)
    return squares.div(count - correction)


# What torch has no simpler operations for.
_OWN: dict[Any, Callable[..., Any]] = {torch.ops.prims.var.default: _variance}


def _smallest(dtype: torch.dtype) -> float:
    """What a result near 0 may lose: 16-bit floats go down to subnormals, others may be flushed to 0."""
    info = torch.finfo(dtype)
    return info.smallest_normal * info.eps if dtype == torch.float16 else info.tiny


def _each(values: Any, change: Callable[[Tensor], Tensor]) -> Any:
    return pytree.tree_map(lambda v: change(v) if isinstance(v, Tensor) and v.is_floating_point() else v, values)


def _exact_or(out: Any, dtype: torch.dtype, otherwise: Callable[[Any], Any]) -> Any:
    """A constant that the dtype has is not rounded."""
    if isinstance(out, Tensor) and out.dtype == torch.float64 and not torch.equal(out.to(dtype).double(), out):
        return otherwise(out)
    return out
