# SPDX-License-Identifier: Apache-2.0
"""The ops for JAX, on CPUs and NVIDIA GPUs, under jax.jit, jax.grad and jax.vmap: tigon.jax.rms_norm(x, w).

Every op of the library is here, as it describes itself: help(tigon.jax.rms_norm) tells formula, shapes, dtypes, options and
errors. An option is a Python number or the name of a choice, and no traced value. A result [1], as a loss is, comes as a number; one that has
a number for each row has the rows' axes.

jax.vmap calls an op once for each element; leading axes are rows anyway. A mesh does not shard an op: call it in jax.shard_map.
NotImplementedError or TypeError, from JAX: forward mode and second derivatives. RuntimeError, when the op runs: a shape or dtype is wrong.
"""
import functools
from collections.abc import Callable, Sequence
from typing import Any

try:
    import jax  # noqa: F401
    import jax_tvm_ffi  # noqa: F401
except ImportError as error:
    raise ImportError("tigon.jax needs jax and jax_tvm_ffi; install them with: pip install jax jax-tvm-ffi") from error

from . import _native
from ._describe import Pass
from ._docs import docstring, signature
from ._jax.gradients import function_of
from ._results import leading_axes
from ._sizes import sizes_of

__all__ = sorted(name.removesuffix(".forward") for name in _native.host().names if name.endswith(".forward"))


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> Callable[..., Any]:
    """An op of the library."""
    if name not in __all__:
        raise AttributeError(f"module 'tigon.jax' has no attribute {name!r}; its ops are {', '.join(__all__)}")
    return _op(name)


@functools.cache
def _op(op: str) -> Callable[..., Any]:
    said = _native.host().describe(f"{op}.forward", "bf16")
    takes = signature(said)

    def call(*args: Any, **kwargs: Any) -> Any:
        given = takes.bind(*args, **kwargs).arguments
        tensors = [given.get(t.name) for t in said.arguments]
        options = tuple(float(o.number(given.get(o.name, o.default))) for o in said.options)
        extras = _extras(said, given.get("extras", ()))
        results = function_of(op, options, sum(said.wanted[name] for name in extras))(*tensors)
        shaped = [_shaped(said, options, tensors, name, results[said.result_places[name]]) for name in (*said.visible, *extras)]
        return tuple(shaped) if len(shaped) > 1 else shaped[0]

    call.__name__ = call.__qualname__ = op
    call.__module__, call.__doc__ = __name__, docstring(said)
    call.__signature__ = takes  # type: ignore[attr-defined]
    return call


def _extras(said: Pass, names: Sequence[str]) -> Sequence[str]:
    """TypeError: there is no extra of a name."""
    for name in names:
        if name not in said.wanted:
            raise TypeError(f"{said.op} has no extra {name}; it has {', '.join(said.wanted)}")
    return names


def _shaped(said: Pass, options: tuple[float, ...], tensors: Sequence[Any], name: str, made: Any) -> Any:
    tensor = said.results[said.result_places[name]].tensor
    if len(said.tensors[tensor].shape) != 1:
        return made
    size = sizes_of(_native.host(), said, options).sum(tensor, 0)
    if not size.factors:
        return made.reshape(()) if size.constant == 1 else made
    is_of_rows = size.constant == 0 and dict(size.factors) == {said.rows: 1}
    return made.reshape(leading_axes(said, [None if t is None else t.shape for t in tensors])) if is_of_rows else made
