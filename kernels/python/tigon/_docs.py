# SPDX-License-Identifier: Apache-2.0
"""Docstrings and signatures from what a pass says of itself. Knows no op."""
import inspect
import textwrap

from ._describe import Option, Pass, Tensor

DTYPES = {"f64": "float64", "f32": "float32", "i64": "int64", "i32": "int32", "u8": "uint8", "bf16": "dtype of the activations"}


def _shape(tensor: Tensor, rows: str) -> str:
    """[..., H] where any leading axes are rows, else [T, H]."""
    takes_rows = tensor.shape[:1] == (rows,) and len(tensor.shape) > 1
    return f"[{', '.join(('...', *tensor.shape[1:]) if takes_rows else tensor.shape)}]"


def _tensor_line(tensor: Tensor, rows: str) -> str:
    dtype = DTYPES.get(tensor.dtype, tensor.dtype)
    return f"{tensor.name}: {_shape(tensor, rows)}, {dtype}{'; may be left out' if tensor.optional else ''}"


def _option_line(option: Option) -> str:
    choices = f", one of {', '.join(option.choices)}" if option.choices else f", {option.type}"
    return f"{option.name}={option.default}{choices}"


def signature(said: Pass) -> inspect.Signature:
    """op(tensors..., optional tensors=None..., *, options..., extras=()) of an op's forward pass."""
    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(t.name, kind) for t in said.arguments if not t.optional]
    parameters += [inspect.Parameter(t.name, kind, default=None) for t in said.arguments if t.optional]
    parameters += [inspect.Parameter(o.name, inspect.Parameter.KEYWORD_ONLY, default=o.default) for o in said.options]
    if said.wanted:
        parameters.append(inspect.Parameter("extras", inspect.Parameter.KEYWORD_ONLY, default=()))
    return inspect.Signature(parameters)


def docstring(said: Pass) -> str:
    """Formula, shapes, dtypes, options and errors of an op's forward pass, whose description for bf16 is given."""
    results = {r.name: said.tensors[r.tensor] for r in said.results}
    axes = ", ".join(f"{symbol} {meaning}" for symbol, meaning in said.axes.items())
    parts = [said.formula,
             f"Axes: {axes}. Any leading axes are the rows {said.rows}.",
             "Arguments:\n" + "\n".join("    " + _tensor_line(t, said.rows) for t in said.arguments)]
    if said.options:
        parts.append("Options:\n" + "\n".join("    " + _option_line(o) for o in said.options))
    parts.append("Returns:\n" + "\n".join("    " + _tensor_line(results[n], said.rows).removesuffix("; may be left out") for n in said.visible))
    if said.wanted:
        parts.append("Extras, which come behind these where `extras` names them; they have no gradient:\n"
                     + "\n".join("    " + _tensor_line(results[n], said.rows).removesuffix("; may be left out") for n in said.wanted))
    parts.append(textwrap.dedent("""\
        Activations are float32, bfloat16 or float16, on a CPU or a CUDA device.
        RuntimeError: a shape, a dtype or a device is wrong; the sentence names tensor and axis. ValueError: a choice that
        there is not. TypeError: an argument that the op does not have."""))
    return "\n\n".join(parts)
