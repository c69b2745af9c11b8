# SPDX-License-Identifier: Apache-2.0
"""A pass of an op by a peer, as something to call: its function itself, or its gradient by torch.autograd.grad."""
import dataclasses
import inspect
from collections.abc import Callable

from tigon_call import Unsupported

@dataclasses.dataclass
class Gradients:
    """What the contract says of an op's: outputs in the order in which functions return them; the upstream gradient of each;
    the gradient of each input."""

    outputs: list
    upstream: dict
    of: dict


INPUTS = ("in", "inout")
APART = "_out"  # "q_out" is what is else written over "q"
BY_FUNCTION, BY_GRADIENT = "the function", "torch.autograd.grad with retain_graph"
BY_BOTH = "the function and torch.autograd.grad"


@dataclasses.dataclass
class Call:
    """`run()`, after `build()`, returns {output of the pass: value}. `held` are values that live while it runs and are not
    extra memory: what forward returned. `waits`: it waits for the GPU in the middle."""

    run: Callable
    method: str
    build: Callable = lambda: None
    held: list = dataclasses.field(default_factory=list)
    waits: bool = False


def _parameters(function):
    found = inspect.signature(function).parameters.values()
    return {p.name for p in found if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}


def _words(function, op, options, arrays):
    """The arguments by name. An option that the function does not know must have its default."""
    names = _parameters(function)
    words = {t["name"]: arrays.get(t["name"]) for t in op["tensors"] if t["role"] in INPUTS and t["name"] in names}
    for option in op["options"]:
        name, value = option["name"], options[option["name"]]
        if name in names:
            words[name] = value
        elif value != option["default"] and not option["is_invisible"]:
            raise Unsupported(f"has no {name}={value}")
    prepare = getattr(function, "prepare", None)
    return prepare(**words) if prepare else words


def _require_known(tensors, given, made):
    for name, t in tensors.items():
        if t["at"] is not None and t["is_on_request"] and name not in given and name not in made:
            raise Unsupported(f"has no {name}")


def _renamed(results, wanted):
    """Results under the names of outputs that were asked for beside the tensors that are else changed in place."""
    apart = {name.removesuffix(APART): name for name in wanted if name.endswith(APART)}
    return {apart.get(name, name): value for name, value in results.items()}


def prepared(module, backend, op, tensors, options):
    """The Call of a pass, `op` by its description, on tensors and options by name (tigon_call.named). Raises Unsupported."""
    gradients, one_pass = Gradients(**op["autograd"]), op["pass"]
    explicit = getattr(module, f"{op['name']}_{one_pass}", None)
    function = explicit or getattr(module, op["name"], None)
    if function is None:
        raise Unsupported(f"has nothing for {op['name']} {one_pass}")
    given = {name: t for name, t in tensors.items() if t["at"] is not None}
    arrays = {name: backend.given(t) for name, t in given.items() if t["role"] in INPUTS}
    wanted = {name for name, t in given.items() if t["role"] != "in"}
    try:
        words = _words(function, op, options, arrays)
    except NotImplementedError as error:
        raise Unsupported(str(error)) from error
    made = {*gradients.outputs, *gradients.of.values()}
    _require_known(tensors, words, made | {name + APART for name in made})
    absent = sorted(name for name in _parameters(function) if name in tensors and tensors[name]["is_required"] and words.get(name) is None)
    if absent:
        raise Unsupported(f"needs {', '.join(absent)}")
    call = _of_pass(backend, function, explicit, one_pass, gradients, words, arrays, wanted)
    call.waits = getattr(function, "waits", False)
    return call


def _of_pass(backend, function, explicit, one_pass, op, words, arrays, wanted):
    in_forward = getattr(function, "gradient_in_forward", False)
    if one_pass == "backward" and in_forward:
        raise Unsupported("makes the gradient in forward: see forward_backward")
    if one_pass == "forward" or (explicit and one_pass != "forward_backward"):
        return _function_alone(backend, function, words, op, wanted, trains=not (explicit or in_forward))
    sources = _require_gradients(backend, op, words, wanted)
    if explicit:
        return Call(lambda: _renamed(explicit(**words), wanted), BY_BOTH)
    upstream = [arrays.get(op.upstream[name]) for name in op.outputs]
    if one_pass == "forward_backward":
        return _both(backend, function, words, op, sources, upstream)
    return _gradient(backend, function, words, op, sources, upstream, wanted)


def _as_tuple(values):
    return values if isinstance(values, tuple) else (values,)


def _named(op, values):
    return values if isinstance(values, dict) else dict(zip(op.outputs, _as_tuple(values)))


def _function_alone(backend, function, words, op, wanted, trains):
    """Forward as in training, where what backward needs is kept; without that where it would make the gradient."""
    if trains and hasattr(backend, "torch"):
        _require_gradients(backend, op, words, set(op.of.values()))
    return Call(lambda: _renamed(_named(op, function(**words)), wanted), BY_FUNCTION)


def _require_gradients(backend, op, words, wanted):
    """Makes leaves of the inputs whose gradient is wanted: {gradient: input}."""
    if not hasattr(backend, "torch"):
        raise Unsupported("is no peer of torch, so it has no gradient but that of a function of its own")
    sources = {}
    for name, gradient in op.of.items():
        if words.get(name) is not None and gradient in wanted:
            words[name] = words[name].detach().requires_grad_()
            sources[gradient] = words[name]
    return sources


def _upstream_of(outputs, upstream):
    """Gradients of the outputs that have one; a loss without one has 1."""
    pairs = [(y, dy) for y, dy in zip(outputs, upstream) if dy is not None or len(outputs) == 1]
    return [y for y, _ in pairs], [dy if dy is None else dy.reshape(y.shape).to(y.dtype) for y, dy in pairs]


def _grad(backend, outputs, upstream, sources, retain):
    ends, given = _upstream_of(outputs, upstream)
    return backend.torch.autograd.grad(ends, list(sources.values()), given, retain_graph=retain)


def _gradient(backend, function, words, op, sources, upstream, wanted):
    held = []

    def build():
        held.extend(_as_tuple(function(**words)))

    def run():
        found = _grad(backend, held, upstream, sources, True)
        return _renamed(dict(zip(sources, found)), wanted)
    return Call(run, BY_GRADIENT, build, held)


def _both(backend, function, words, op, sources, upstream):
    def run():
        outputs = _as_tuple(function(**words))
        found = _grad(backend, outputs, upstream, sources, False)
        return {**_named(op, outputs), **dict(zip(sources, found))}
    return Call(run, BY_BOTH)
