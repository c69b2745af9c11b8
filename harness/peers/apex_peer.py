# SPDX-License-Identifier: Apache-2.0
# Apex's fused norms.
from apex.normalization.fused_layer_norm import fused_layer_norm_affine, fused_rms_norm_affine
from saved_values import layer_norm_saved, rms_norm_saved  # noqa: F401

PACKAGE = "apex"


def rms_norm(x, w, eps):
    return fused_rms_norm_affine(x, w, x.shape[-1:], eps)


def layer_norm(x, w, b, eps):
    return fused_layer_norm_affine(x, w, b, x.shape[-1:], eps)
