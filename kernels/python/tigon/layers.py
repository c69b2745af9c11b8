# SPDX-License-Identifier: Apache-2.0
"""Layers for Hugging Face's kernels library, which gives a model's own layers these forwards: kernelize(model) by a mapping.

tigon.patch(model) needs no mapping, replaces more and tries what it replaces.
"""
from torch import Tensor, nn

from . import ops


class RMSNorm(nn.Module):
    """In place of an RMSNorm whose weight is multiplied in the dtype of the input, as Llama's; with gradients."""

    has_backward = True
    can_torch_compile = True

    def forward(self, hidden_states: Tensor) -> Tensor:
        """The norm by the layer's own weight and eps, which is called variance_epsilon in some models."""
        eps = self.variance_epsilon if hasattr(self, "variance_epsilon") else self.eps
        return ops.rms_norm(hidden_states, self.weight, eps)  # type: ignore[arg-type]
