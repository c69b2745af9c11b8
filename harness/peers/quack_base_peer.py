# SPDX-License-Identifier: Apache-2.0
# QuACK's linear cross entropy by its base path, tuned at the first call, which takes minutes.
import quack_peer

PACKAGE = "quack"


def linear_cross_entropy(x, w, target, ignore_index, reduction):
    return quack_peer.chunked_linear_cross_entropy(x, w, target, 4096, int(ignore_index), reduction, use_scaled_exp=False)


linear_cross_entropy.gradient_in_forward = True
