# SPDX-License-Identifier: Apache-2.0
"""What is done to a model before it is trained. Each gives what is called in a step, and a sentence on what was replaced.

A variant has a process of its own, because Liger changes the module that the model's code is in.
"""


class Unavailable(Exception):
    """A variant cannot run here: the reason."""


def eager(model):
    """As transformers has it."""
    return model, ""


def compiled(model):
    """The whole forward and backward by torch.compile."""
    import torch

    return torch.compile(model), "torch.compile of the model, with its defaults"


def liger(model):
    """As Trainer does with use_liger_kernel."""
    import torch

    if not torch.cuda.is_available():
        raise Unavailable("Liger's kernels need a GPU")
    try:
        from liger_kernel.transformers import _apply_liger_kernel_to_instance
    except ImportError as error:
        raise Unavailable("liger_kernel is not installed; install it with: pip install liger_kernel") from error
    _apply_liger_kernel_to_instance(model=model)
    return model, "Liger's defaults for this kind of model"


def tigon(model, **settings):
    """tigon.patch(model)."""
    try:
        import tigon as package
        import tigon.ops  # noqa: F401
    except ImportError as error:
        raise Unavailable(f"tigon is not installed; install it with: pip install . ({error})") from error
    return model, _counts(package.patch(model, **settings))


def tigon_cheap(model):
    """tigon.patch(model, recompute="cheap")."""
    return tigon(model, recompute="cheap")


def float32(model):
    """As transformers has it, in float32 between the same parameters, which stay in bf16 as their gradients and the optimizer do.

    So its losses are those of a training without the roundings that kernels decide on.
    """
    import torch

    if model.is_gradient_checkpointing:
        raise Unavailable("checkpointing would make its activations again in bf16")

    def run(**arguments):
        return torch.func.functional_call(model, {name: p.float() for name, p in model.named_parameters()}, (), arguments)

    return run, "parameters made float32 in every step"


def tigon_compiled(model):
    """tigon.patch(model), then torch.compile."""
    patched, what = tigon(model)
    return compiled(patched)[0], what


def _counts(report):
    kinds = {}
    for entry in report.replaced:
        kinds[entry.kind] = kinds.get(entry.kind, 0) + 1
    return f"replaced: {', '.join(f'{count} {kind}' for kind, count in kinds.items()) or 'nothing'}; left: {len(report.left)}"


VARIANTS = {"eager": eager, "compile": compiled, "liger": liger, "tigon": tigon, "tigon_cheap": tigon_cheap, "tigon_compile": tigon_compiled,
            "float32": float32}
