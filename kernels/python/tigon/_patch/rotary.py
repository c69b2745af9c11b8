# SPDX-License-Identifier: Apache-2.0
"""Rotary embeddings: the function of (q, k, cos, sin) that an attention's forward finds among its globals.

The attention gets its own forward with that one global changed; the function itself, which other models share, stays.
"""
import copy
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, Literal, NamedTuple, cast

import torch
from torch import Tensor, nn

from .. import ops
from . import recompute, twin
from .become import become
from .plain import are_usable
from .stand_in import has_code_of_its_own, stand_in

KIND = "rope"
_ROWS = "_tigon_rows"  # an attribute of cos and sin
_FREQUENCIES = "inv_freq"  # how the buffers end of a module that gives cos and sin
Table = Literal["halves", "pairs", "once"]
Function = Callable[..., Any]


class Recipe(NamedTuple):
    """The op that does what a function does; `table` tells how cos and sin repeat the angles of a head's pairs."""
    name: str  # of the function, among the globals of forward
    function: Function
    table: Table
    interleaved: bool
    partial: bool = False  # with a table for fewer columns, the others stay

    def __str__(self) -> str:
        return f"rope, table={self.table}, interleaved={self.interleaved}"


def _tables(angles: Tensor) -> dict[Table, Tensor]:
    return {"halves": torch.cat([angles, angles], -1), "pairs": angles.repeat_interleave(2, -1), "once": angles}


def _once(table: Table, values: Tensor) -> Tensor:
    """Each angle's value once, from a table."""
    if table == "once":
        return values
    return values[..., :values.shape[-1] // 2] if table == "halves" else values[..., ::2]


@functools.cache
def _turning(recipe: Recipe) -> Function:
    """The function by Tigon's op; the function itself for what the op does not take."""
    function, repeats = recipe.function, 1 if recipe.table == "once" else 2

    def turned(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *others: Any, unsqueeze_dim: int = 1) -> Any:
        is_usual = not others and unsqueeze_dim == 1 and q.dim() == 4 and cos.dim() == 3
        columns = cos.shape[-1] * 2 // repeats
        fits = columns == q.shape[-1] or (recipe.partial and columns < q.shape[-1])
        if not is_usual or not fits or not are_usable(q, k) or not _are_plain(cos, sin, q):
            return function(q, k, cos, sin, *others, **({} if unsqueeze_dim == 1 else {"unsqueeze_dim": unsqueeze_dim}))
        given = q, k, _rows(recipe.table, cos, q), _rows(recipe.table, sin, q)
        # What goes in is kept nowhere, but where it comes from norms that are made again, it can be made again behind them.
        name, op = recompute.known_as(q, k), functools.partial(ops.rope_heads_first, interleaved=recipe.interleaved)
        return recompute.made(name, op, *given) if name else op(*given)

    return turned


def _rows(table: Table, values: Tensor, q: Tensor) -> Tensor:
    """Each angle's value once for each row of q, in float32: made for the first layer that asks, and kept with the model's own."""
    asked = table, values._version, q.shape[0], q.shape[2]
    known = None if torch.compiler.is_compiling() else values.__dict__.get(_ROWS)
    if known is not None and known[0] == asked:
        return cast(Tensor, known[1])
    once = _once(table, values)
    rows = once.float().expand(q.shape[0], q.shape[2], once.shape[-1]).contiguous()
    if not torch.compiler.is_compiling():
        values.__dict__[_ROWS] = asked, rows
    return rows


def _are_plain(cos: Tensor, sin: Tensor, q: Tensor) -> bool:
    """Whether the op's result has the dtype and the gradients of the function's: under autocast the products behind it choose theirs."""
    is_of_q = cos.dtype == sin.dtype == q.dtype or torch.is_autocast_enabled(q.device.type)
    return is_of_q and not cos.requires_grad and not sin.requires_grad


def _function(module: nn.Module) -> tuple[str, Function] | None:
    """The name among the globals of forward, and the function, that takes q, k, cos and sin."""
    forward = inspect.unwrap(type(module).forward)
    for name in getattr(getattr(forward, "__code__", None), "co_names", ()):
        value = forward.__globals__.get(name)
        if isinstance(value, types.FunctionType) and list(inspect.signature(value).parameters)[:4] == ["q", "k", "cos", "sin"]:
            return name, value
    return None


def looks_like(module: nn.Module) -> bool:
    """Whether a module's forward turns queries and keys by such a function."""
    return _function(module) is not None


def find(module: nn.Module, tables: set[Table] | str) -> Recipe | str:
    """The recipe for an attention's rotary embedding, or the reason why there is none, as the end of a sentence.

    tables: how the cos and sin of the model repeat the angles, by tables_of().
    """
    if has_code_of_its_own(module):
        return "has a forward of its own, bound by another tool"
    if isinstance(tables, str):
        return tables
    found = _function(module)
    assert found is not None
    return _find(*found, frozenset(tables))


@functools.cache
def _find(name: str, function: Function, tables: frozenset[Table]) -> Recipe | str:
    is_known = tables != {"once"}
    why = "turns other columns of a head than its halves or its neighbours" if is_known else "gets its angles in an order that is not known"
    for interleaved in (False, True):
        for table in sorted(tables):
            recipe = Recipe(name, function, table, interleaved)
            try:
                if _why_not(recipe, angles=8) is None:
                    return _partial(recipe) or recipe
            except Exception as error:  # noqa: BLE001 - not with this table
                if table == "once":  # few functions take it
                    continue
                why = f"does not run on small tensors: {type(error).__name__}: {str(error)[:80]}"
    return why


def _partial(recipe: Recipe) -> Recipe | None:
    """The recipe that turns the first columns of a head, if the function does so with a short table."""
    partial = recipe._replace(partial=True)
    try:
        return partial if _why_not(partial, angles=4) is None else None
    except Exception:  # noqa: BLE001 - the function wants a table for all columns
        return None


def _why_not(recipe: Recipe, angles: int) -> str | None:
    """Whether function and op agree for heads of 16 columns."""
    random = torch.Generator().manual_seed(6)
    table = _tables(torch.rand(2, 5, angles, generator=random) * 6)[recipe.table]
    q, k = torch.randn(2, 4, 5, 16, generator=random), torch.randn(2, 2, 5, 16, generator=random)
    return twin.why_not(_Turned(recipe.function, q, k, table), _Turned(_turning(recipe), q, k, table), [_turn])


class _Turned(nn.Module):
    """A function of q, k, cos and sin, with the first two as parameters."""

    def __init__(self, function: Function, q: Tensor, k: Tensor, angles: Tensor):
        super().__init__()
        self.function, self.angles = function, angles
        self.q, self.k = nn.Parameter(q), nn.Parameter(k)

    def run(self) -> Tensor:
        """Both results in one tensor."""
        cos, sin = (f(self.angles).to(self.q.dtype) for f in (torch.cos, torch.sin))
        q, k = self.function(self.q, self.k, cos, sin)
        return torch.cat([q.flatten(), k.flatten()])


def _turn(module: nn.Module) -> Tensor:
    return cast(_Turned, module).run()


def tables_of(model: nn.Module) -> set[Table] | str:
    """How all modules of a model that give (cos, sin) for positions repeat the angles, or the reason why that is not known.

    A table that has each angle once needs no module that shows it: its width tells.
    """
    tables: set[Table] = {"halves", "pairs"}
    givers = [m for m in model.modules() if any(name.endswith(_FREQUENCIES) for name in m._buffers)]
    for giver in givers:
        try:
            values = _angles(giver)
        except Exception as error:  # noqa: BLE001 - its angles stay unknown
            return f"gets its angles from {type(giver).__name__}, which does not run on small tensors: {type(error).__name__}"
        tables = {table for table in tables if all(torch.equal(_tables(_once(table, v))[table], v) for v in values)}
    return {*tables, "once"} if givers else {"once"}


def _angles(giver: nn.Module) -> list[Tensor]:
    """The cos and sin that a module gives for some positions, of each kind of layers that it has frequencies for."""
    small = stand_in(giver, {}, {})
    small.__dict__["_buffers"] = {n: b if b is None else b.detach().cpu() for n, b in giver._buffers.items()}
    small.__dict__["config"] = copy.copy(getattr(giver, "config", None))
    kinds = {n.removesuffix(_FREQUENCIES).removesuffix("_") for n in giver._buffers if n.endswith(_FREQUENCIES)} - {"original"}
    kinds = {kind.removesuffix("_original") for kind in kinds}
    given = torch.zeros(1, 5, 4), torch.arange(5)[None] * 3
    with torch.no_grad():
        return [v for kind in sorted(kinds) for v in type(small).forward(small, *given, *([kind] if kind else []))]


@functools.cache
def _with_global(forward: Any, name: str, value: Any) -> Any:
    """A function, with all that wraps it, that finds another value under a name among its globals."""
    inner = getattr(forward, "__wrapped__", None)
    scope, cells = forward.__globals__, forward.__closure__
    if inner is None:
        # Without its __name__, torch.compile takes the globals for what they are, not for those of the file.
        scope = {n: v for n, v in scope.items() if n != "__name__"} | {name: value}
    else:
        changed = _with_global(inner, name, value)
        cells = tuple(types.CellType(changed) if c.cell_contents is inner else c for c in cells)
    made = types.FunctionType(forward.__code__, scope, forward.__name__, forward.__defaults__, cells)
    made.__kwdefaults__ = forward.__kwdefaults__
    functools.update_wrapper(made, forward, updated=())
    if inner is None:
        del made.__wrapped__  # type: ignore[attr-defined]
    else:
        made.__wrapped__ = changed  # type: ignore[attr-defined]
    return made


def apply(module: nn.Module, recipe: Any) -> None:
    """Gives an attention its forward with the function replaced."""
    turned = _turning(cast(Recipe, recipe))
    become(module, _with_global(type(module).forward, recipe.name, turned), recipe)
