# SPDX-License-Identifier: Apache-2.0
# A peer for tests, which needs nothing but numpy: some ops right, some wrong in all ways there are.
import os
import time

import numpy

if starts := os.environ.get("TIGON_FAKE_STARTS"):
    with open(starts, "a", encoding="utf-8") as file:
        print("started", file=file)


def rms_norm(x, w, eps, offset):
    print("libraries print")
    y = x / numpy.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True) + eps)
    return y * (offset + w)


def rms_norm_backward(dy, x, w, eps):
    """Wrong: forgets the mean."""
    y = x / numpy.sqrt((x.astype("f8") ** 2).mean(-1, keepdims=True) + eps)
    return {"dx": dy * w * y / x, "dw": (dy * y).sum(0)}


def layer_norm(x):
    raise ValueError("no norms today\nsecond line")


def log_prob_forward(logits):
    return {"entropy": entropy}  # noqa: F821


def swiglu(a, b):
    os._exit(3)


def geglu(a, b):
    time.sleep(60)


def softmax_forward(x):
    return {"y": x[:1]}


def cross_entropy_forward(logits, target, ignore_index):
    lse = numpy.log(numpy.exp(logits.astype("f8")).sum(-1))
    rows = numpy.arange(len(target))
    return {"loss": (lse - logits[rows, target])[target != ignore_index].mean().reshape(1)}
