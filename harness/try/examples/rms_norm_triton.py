# SPDX-License-Identifier: Apache-2.0
# RMSNorm forward in Triton, a program per row. It writes into the tensors of its parameters y and rstd. It does not know
# another casting than llama or another offset than 0, so such cases are skipped.
import triton
import triton.language as tl


@triton.jit
def row(x, w, y, rstd, x_stride, y_stride, columns, eps, HAS_WEIGHT: tl.constexpr, BLOCK: tl.constexpr):
    t = tl.program_id(0)
    h = tl.arange(0, BLOCK)
    inside = h < columns
    v = tl.load(x + t * x_stride + h, mask=inside, other=0).to(tl.float32)
    r = 1 / tl.sqrt(tl.sum(v * v) / columns + eps)
    tl.store(rstd + t, r)
    normal = (v * r).to(y.dtype.element_ty).to(tl.float32)
    if HAS_WEIGHT:
        normal *= tl.load(w + h, mask=inside, other=0).to(tl.float32)
    tl.store(y + t * y_stride + h, normal.to(y.dtype.element_ty), mask=inside)


def rms_norm(x, w, y, rstd, eps):
    if x.shape[0] > 0:
        row[(x.shape[0],)](x, x if w is None else w, y, rstd, x.stride(0), y.stride(0), x.shape[1], eps, w is not None,
                           triton.next_power_of_2(x.shape[1]))
