# SPDX-License-Identifier: Apache-2.0
# RMSNorm forward in numpy, which runs where torch is not installed. It computes in float32.
import numpy as np


def rms_norm(x, w, eps, offset, casting):
    rstd = 1 / np.sqrt((x.astype("f8") ** 2).mean(axis=1) + eps)
    gain = 1.0 if w is None else offset + w.astype("f8")
    return x * rstd[:, None] * gain, rstd.astype("f4")
