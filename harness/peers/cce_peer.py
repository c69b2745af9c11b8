# SPDX-License-Identifier: Apache-2.0
# Apple's cut-cross-entropy with its default filter of small gradients.
import cut_cross_entropy

PACKAGE = "cut_cross_entropy"


def linear_cross_entropy(x, w, target, ignore_index, softcap, reduction):
    loss = cut_cross_entropy.linear_cross_entropy(x, w, target, ignore_index=int(ignore_index), softcap=softcap or None,
                                                  reduction=reduction)
    return loss.reshape(-1)


linear_cross_entropy.waits = True  # for which targets count
