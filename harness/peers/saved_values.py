# SPDX-License-Identifier: Apache-2.0
# What an op keeps for backward, for checks of forward functions that do not return it; never timed.
import torch


def rms_norm_saved(x, eps):
    return torch.rsqrt(x.double().square().mean(-1) + eps)


def layer_norm_saved(x, eps):
    variance, mean = torch.var_mean(x.double(), -1, correction=0)
    return mean, torch.rsqrt(variance + eps)


def cross_entropy_saved(logits, target, ignore_index):
    return torch.logsumexp(logits.double(), -1).masked_fill(target == int(ignore_index), 0)


def log_prob_saved(logits, target, ignore_index, temperature):
    return cross_entropy_saved(logits.double() / temperature, target, ignore_index)


def linear_log_prob_saved(x, w, target, ignore_index, temperature):
    return log_prob_saved(x.double() @ w.double().t(), target, ignore_index, temperature)


def divergence_saved(logits, teacher, kind, beta, temperature):
    x, y = logits.double() / temperature, teacher.double() / temperature
    lse, teacher_lse = torch.logsumexp(x, -1), torch.logsumexp(y, -1)
    log_q, log_p = x - lse[:, None], y - teacher_lse[:, None]
    if kind == "forward_kl" or (kind == "jsd" and beta == 0):
        return lse, teacher_lse, torch.zeros_like(lse)
    if kind == "reverse_kl" or beta == 1:
        slope = log_q - log_p
    else:
        slope = -(1 - beta) * torch.log(1 - beta + beta * torch.exp(log_p - log_q))
    return lse, teacher_lse, (log_q.exp() * slope).sum(-1)


def linear_divergence_saved(x, w, teacher_x, teacher_w, target, kind, beta, temperature, ignore_index):
    logits, teacher = x.double() @ w.double().t(), teacher_x.double() @ teacher_w.double().t()
    counted = target != int(ignore_index)
    return tuple(saved * counted for saved in divergence_saved(logits, teacher, kind, beta, temperature))
