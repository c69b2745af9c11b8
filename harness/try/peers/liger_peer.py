# What Liger Kernel has for the ops, for `./tigon try --against liger` on a GPU: forward, with default options.
import torch
from liger_kernel.transformers import functional


def rms_norm(x, w, eps):
    return functional.liger_rms_norm(x, w, eps, in_place=False)


def rms_norm_saved(x, eps):
    return torch.rsqrt(x.double().square().mean(-1) + eps)


def layer_norm(x, w, b, eps):
    return functional.liger_layer_norm(x, w, b, eps)


def layer_norm_saved(x, eps):
    variance, mean = torch.var_mean(x.double(), -1, correction=0)
    return mean, torch.rsqrt(variance + eps)


def softmax(x):
    return functional.liger_softmax(x)


def swiglu(a, b):
    return functional.liger_swiglu(a, b)


def geglu(a, b):
    return functional.liger_geglu(a, b)


swiglu.roundings = 1
geglu.roundings = 1
