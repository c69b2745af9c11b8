# SPDX-License-Identifier: Apache-2.0
# Liger Kernel's ops in CuTe DSL, in a process of its own: Liger chooses once, when it is imported.
import os

os.environ["LIGER_KERNEL_IMPL"] = "cutedsl"
from liger_peer import (PACKAGE, add_rms_norm, cross_entropy, cross_entropy_saved, geglu, layer_norm,  # noqa: E402, F401
                        layer_norm_saved, linear_cross_entropy, rms_norm, rms_norm_saved, rope, softmax, swiglu)
