#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden values that reference/tests/golden_test.cpp compares the oracles with.

PyTorch's own functions and autograd in float64; nothing is shared with the oracles. Needs torch and
numpy on any CPU:  python3 make_goldens.py [FOLDER]   (default: the folder of this script)
One JSON file per op: options, inputs and outputs of every case. Numbers are written so that they
read back exactly; inputs are multiples of 1/1024 and therefore exact in fp32 too.
"""

import itertools
import json
import math
import pathlib
import sys

import numpy as np
import torch
import torch.nn.functional as F

IGNORED = 2  # ignore_index of every case: a class like any other


class Inputs:
    """Random tensors, the same in every run."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def normal(self, *shape, scale=1.0, grad=False):
        values = np.round(self.rng.standard_normal(shape) * scale * 1024) / 1024
        return torch.tensor(values, dtype=torch.float64, requires_grad=grad)

    def targets(self, tokens, vocabulary):
        y = self.rng.integers(0, vocabulary, tokens)
        y[1::3] = IGNORED
        return torch.tensor(y)


def as_fp32(value):
    """The value that a C++ float option has."""
    return float(np.float32(value))


def flat(tensors):
    return {name: t.detach().reshape(-1).tolist() for name, t in tensors.items()}


def case(axes, options, inputs, outputs):
    return {"setting": {**axes, **options}, "inputs": flat(inputs), "outputs": flat(outputs)}


def rms_norm():
    for number, (has_weight, offset) in enumerate(itertools.product([True, False], [0.0, 1.0])):
        random = Inputs(number)
        tokens, hidden, eps = 3, 7, as_fp32(1e-2)
        x = random.normal(tokens, hidden, grad=True)
        w = random.normal(hidden, grad=True)
        dy = random.normal(tokens, hidden)
        y = F.rms_norm(x, (hidden,), weight=w + offset if has_weight else None, eps=eps)
        y.backward(dy)
        inputs, outputs = {"x": x, "dy": dy}, {"y": y, "dx": x.grad}
        outputs["rstd"] = torch.rsqrt(x.pow(2).mean(-1) + eps)
        if has_weight:
            inputs["w"], outputs["dw"] = w, w.grad
        yield case({"T": tokens, "H": hidden}, {"eps": eps, "offset": offset}, inputs, outputs)


def rotate_half(x):
    x1, x2 = x.chunk(2, dim=-1)
    return torch.cat((-x2, x1), dim=-1)


def rope():
    for number, (query_heads, key_heads, size) in enumerate([(4, 2, 6), (3, 1, 2), (2, 2, 8)]):
        random = Inputs(100 + number)
        tokens = 3
        q = random.normal(tokens, query_heads, size, grad=True)
        k = random.normal(tokens, key_heads, size, grad=True)
        dq, dk = random.normal(*q.shape), random.normal(*k.shape)
        frequency = 10000.0 ** (-torch.arange(0, size, 2, dtype=torch.float64) / size)
        angle = torch.arange(5, 5 + tokens, dtype=torch.float64)[:, None] * frequency
        cos, sin = (torch.cat((f, f), dim=-1)[:, None, :] for f in (angle.cos(), angle.sin()))
        q_out, k_out = q * cos + rotate_half(q) * sin, k * cos + rotate_half(k) * sin
        torch.autograd.backward([q_out, k_out], [dq, dk])
        yield case(
            {"T": tokens, "Q": query_heads, "K": key_heads, "D": size},
            {},
            {"q": q, "k": k, "dq": dq, "dk": dk, "cos": angle.cos(), "sin": angle.sin()},
            {"q": q_out, "k": k_out, "dq": q.grad, "dk": k.grad},
        )


def swiglu():
    for number, scale in enumerate([0.1, 1.0, 10.0]):
        random = Inputs(200 + number)
        a = random.normal(3, 7, scale=scale, grad=True)
        b, dy = random.normal(3, 7, grad=True), random.normal(3, 7)
        y = F.silu(a) * b
        y.backward(dy)
        inputs, outputs = {"a": a, "b": b, "dy": dy}, {"y": y, "da": a.grad, "db": b.grad}
        yield case({"T": 3, "F": 7}, {}, inputs, outputs)


REDUCTIONS = ["mean", "sum", "none"]


def loss_options():
    for reduction, softcap, smoothing, z_loss in itertools.product(
        range(3), [0.0, 1.5], [0.0, as_fp32(0.1)], [0.0, as_fp32(0.01)]
    ):
        yield {
            "reduction": reduction,
            "softcap": softcap,
            "label_smoothing": smoothing,
            "z_loss": z_loss,
            "ignore_index": IGNORED,
        }


def loss_and_lse(logits, target, options):
    cap, reduction = options["softcap"], REDUCTIONS[options["reduction"]]
    x = cap * torch.tanh(logits / cap) if cap > 0 else logits
    loss = F.cross_entropy(
        x,
        target,
        ignore_index=IGNORED,
        reduction=reduction,
        label_smoothing=options["label_smoothing"],
    )
    counted = target != IGNORED
    lse = torch.where(counted, torch.logsumexp(x, dim=-1), 0.0)
    z_loss = options["z_loss"] * lse.pow(2)
    if reduction == "none":
        return loss + z_loss, lse
    return loss + z_loss.sum() / (counted.sum() if reduction == "mean" else 1), lse


def run_loss(random, logits, target, options):
    """Runs forward and autograd; gives loss, lse and the upstream gradient."""
    loss, lse = loss_and_lse(logits, target, options)
    dloss = random.normal(*loss.shape) + 0.25
    loss.backward(dloss)
    return loss, lse, dloss


def cross_entropy():
    for number, options in enumerate(loss_options()):
        random = Inputs(300 + number)
        tokens, vocabulary = 4, 7
        logits = random.normal(tokens, vocabulary, scale=2.0, grad=True)
        target = random.targets(tokens, vocabulary)
        loss, lse, dloss = run_loss(random, logits, target, options)
        yield case(
            {"T": tokens, "V": vocabulary},
            options,
            {"logits": logits, "target": target, "dloss": dloss},
            {"loss": loss, "lse": lse, "logits": logits.grad},
        )


def linear_cross_entropy():
    for number, options in enumerate(loss_options()):
        random = Inputs(400 + number)
        tokens, hidden, vocabulary = 4, 3, 7
        x = random.normal(tokens, hidden, grad=True)
        w = random.normal(vocabulary, hidden, grad=True)
        target = random.targets(tokens, vocabulary)
        loss, lse, dloss = run_loss(random, F.linear(x, w), target, options)
        yield case(
            {"T": tokens, "H": hidden, "V": vocabulary},
            options,
            {"x": x, "w": w, "target": target, "dloss": dloss},
            {"loss": loss, "lse": lse, "dx": x.grad, "dw": w.grad},
        )


def run_log_prob(random, logits, target, temperature, has_entropy):
    """Runs forward and backward; (options, further inputs, outputs)."""
    dlogp, dentropy = random.normal(len(target)), random.normal(len(target))
    counted = target != IGNORED
    per_class = F.log_softmax(logits / temperature, dim=-1)
    logp = per_class.gather(-1, target[:, None])[:, 0] * counted
    entropy = torch.distributions.Categorical(logits=logits / temperature).entropy() * counted
    (logp @ dlogp + (entropy @ dentropy if has_entropy else 0)).backward()
    inputs = {"target": target, "dlogp": dlogp}
    outputs = {"logp": logp, "lse": torch.logsumexp(logits / temperature, dim=-1) * counted}
    options = {"temperature": temperature, "ignore_index": IGNORED}
    if has_entropy:
        inputs["dentropy"], outputs["entropy"], options["entropy"] = dentropy, entropy, 1
    return options, inputs, outputs


def log_prob_options():
    return enumerate(itertools.product([1.0, as_fp32(0.7), 4.0], [False, True]))


def log_prob():
    for number, (temperature, has_entropy) in log_prob_options():
        random = Inputs(500 + number)
        tokens, vocabulary = 4, 7
        logits = random.normal(tokens, vocabulary, scale=2.0, grad=True)
        target = random.targets(tokens, vocabulary)
        options, inputs, outputs = run_log_prob(random, logits, target, temperature, has_entropy)
        outputs = {"logp": outputs["logp"], "lse": outputs["lse"], "dlogits": logits.grad, **outputs}
        yield case({"T": tokens, "V": vocabulary}, options, {"logits": logits, **inputs}, outputs)


def linear_log_prob():
    for number, (temperature, has_entropy) in log_prob_options():
        random = Inputs(600 + number)
        tokens, hidden, vocabulary = 4, 3, 7
        x = random.normal(tokens, hidden, grad=True)
        w = random.normal(vocabulary, hidden, grad=True)
        bias = random.normal(vocabulary, grad=True)
        target = random.targets(tokens, vocabulary)
        options, inputs, outputs = run_log_prob(random, F.linear(x, w, bias), target, temperature, has_entropy)
        yield case(
            {"T": tokens, "H": hidden, "V": vocabulary},
            {**options, "bias": 1, "dbias": 1},
            {"x": x, "w": w, "bias": bias, **inputs},
            {**outputs, "dx": x.grad, "dw": w.grad, "dbias": bias.grad},
        )


def policy_objectives():
    """Options of linear_policy, and the loss of each token as TRL's GRPOTrainer writes it."""

    def clip(ratio, advantage, logp, delta=None):
        kept = torch.clamp(ratio, 1 - as_fp32(0.2), 1 + as_fp32(0.4))
        if delta is not None:
            ratio = torch.clamp(ratio, max=delta)
        return -torch.min(ratio * advantage, kept * advantage)

    def cispo(ratio, advantage, logp):
        return -torch.clamp(ratio, max=1.5).detach() * advantage * logp

    def sapo(ratio, advantage, logp):
        t = torch.where(advantage > 0, 1.0, as_fp32(1.05))
        return -torch.sigmoid(t * (ratio - 1)) * 4 / t * advantage

    bounds = {"clip_low": as_fp32(0.2), "clip_high": as_fp32(0.4)}
    return [
        ({"objective": 0, **bounds}, clip),
        ({"objective": 0, **bounds, "delta": 2.0}, lambda *args: clip(*args, delta=2.0)),
        ({"objective": 1, "clip_high": 1.5}, cispo),
        ({"objective": 2}, sapo),
    ]


def normalised(losses, mask, name):
    """The loss of sequences [B, L] and the options and inputs that give it of tokens in a row."""
    sequences, longest = mask.shape
    if name == "grpo":
        lengths = mask.sum(-1, keepdim=True).clamp(min=1.0)
        weight = (1 / (sequences * lengths)).expand(sequences, longest)
        return ((losses * mask).sum(-1) / lengths[:, 0]).mean(), {"reduction": 1}, {"weight": weight}
    if name == "bnpo":
        return (losses * mask).sum() / mask.sum().clamp(min=1.0), {"reduction": 0}, {}
    items = {"dapo": 9.0, "dr_grpo": float(sequences * (longest + 2))}[name]
    return (losses * mask).sum() / items, {"reduction": 0}, {"normaliser": torch.tensor([items])}


def linear_policy():
    objectives, names = policy_objectives(), ("grpo", "bnpo", "dapo", "dr_grpo")
    for number, ((options, objective), name) in enumerate(itertools.product(objectives, names)):
        random = Inputs(700 + number)
        sequences, longest, hidden, vocabulary = 2, 4, 3, 7
        tokens, beta, temperature = sequences * longest, as_fp32(0.05), 0.5
        x = random.normal(tokens, hidden, grad=True)
        w = random.normal(vocabulary, hidden, grad=True)
        bias = random.normal(vocabulary, grad=True)
        target = random.targets(tokens, vocabulary)
        advantage, dloss = random.normal(tokens), random.normal(1) + 0.25
        per_class = F.log_softmax(F.linear(x, w, bias) / temperature, dim=-1)
        logp = per_class.gather(-1, target[:, None])[:, 0]
        old, ref, sampling = (torch.round((logp.detach() + random.normal(tokens, scale=0.5)) * 1024) / 1024 for _ in range(3))
        losses = objective(torch.exp(logp - old), advantage, logp)
        losses = losses * torch.clamp(torch.exp(old - sampling), max=1.25)
        kl = torch.exp(ref - logp) - (ref - logp) - 1
        mask = (target != IGNORED).double()
        loss, reduction, more = normalised((losses + beta * kl).view(sequences, -1), mask.view(sequences, -1), name)
        loss.backward(dloss[0])
        entropy = torch.distributions.Categorical(logits=per_class).entropy()
        count = {"grpo": 1.0, "bnpo": mask.sum()}.get(name, 0) or more["normaliser"][0]
        further = {"temperature": temperature, "ignore_index": IGNORED, "kl_weight": beta, "importance_cap": 1.25}
        asked = {"bias": 1, "dbias": 1, "kl": 1, "entropy": 1, "logp": 1}
        yield case(
            {"T": tokens, "H": hidden, "V": vocabulary},
            {**options, **reduction, **further, **asked},
            {"x": x, "w": w, "bias": bias, "target": target, "advantage": advantage, "old_logp": old, "ref_logp": ref,
             "sampling_logp": sampling, "dloss": dloss, **more},
            {"loss": loss, "kl": (kl * mask).sum() / count, "entropy": (entropy * mask).sum() / count, "logp": logp * mask,
             "dx": x.grad, "dw": w.grad, "dbias": bias.grad},
        )


def divergence_of(log_q, log_p, kind, beta):
    """Of each row, as torch.nn.functional.kl_div and TRL's GKDTrainer have it."""
    def kl(log_a, log_b):  # of a from b
        return F.kl_div(log_b, log_a, reduction="none", log_target=True).sum(-1)

    if kind == 0 or (kind == 2 and beta == 0):
        return kl(log_p, log_q)
    if kind == 1 or (kind == 2 and beta == 1):
        return kl(log_q, log_p)
    mixture = torch.logsumexp(torch.stack([log_p + math.log(beta), log_q + math.log1p(-beta)]), dim=0)
    return beta * kl(log_p, mixture) + (1 - beta) * kl(log_q, mixture)


def divergence():
    kinds = [(0, 0.5), (1, 0.5), (2, 0.5), (2, as_fp32(0.1)), (2, as_fp32(0.9)), (2, 0.0), (2, 1.0)]
    for number, ((kind, beta), temperature) in enumerate(itertools.product(kinds, [1.0, as_fp32(0.7), 4.0])):
        random = Inputs(800 + number)
        tokens, vocabulary = 4, 7
        logits = random.normal(tokens, vocabulary, scale=2.0, grad=True)
        teacher = random.normal(tokens, vocabulary, scale=2.0)
        target, dloss = random.targets(tokens, vocabulary), random.normal(tokens)
        counted = target != IGNORED
        loss = divergence_of(F.log_softmax(logits / temperature, -1), F.log_softmax(teacher / temperature, -1), kind, beta) * counted
        (loss @ dloss).backward()
        lse, teacher_lse = (torch.logsumexp(x / temperature, dim=-1) * counted for x in (logits, teacher))
        yield case(
            {"T": tokens, "V": vocabulary},
            {"kind": kind, "beta": beta, "temperature": temperature, "ignore_index": IGNORED, "target": 1},
            {"logits": logits, "teacher": teacher, "target": target, "dloss": dloss},
            {"loss": loss, "lse": lse, "teacher_lse": teacher_lse, "dlogits": logits.grad},
        )


def linear_divergence():
    kinds = [(0, 0.5), (1, 0.5), (2, as_fp32(0.3))]
    for number, ((kind, beta), temperature) in enumerate(itertools.product(kinds, [1.0, as_fp32(0.7)])):
        random = Inputs(900 + number)
        tokens, hidden, width, vocabulary = 4, 3, 5, 7
        x = random.normal(tokens, hidden, grad=True)
        w = random.normal(vocabulary, hidden, grad=True)
        bias = random.normal(vocabulary, grad=True)
        teacher_x, teacher_w = random.normal(tokens, width), random.normal(vocabulary, width)
        teacher_bias = random.normal(vocabulary)
        target, dloss = random.targets(tokens, vocabulary), random.normal(tokens)
        counted = target != IGNORED
        logits, teacher = F.linear(x, w, bias), F.linear(teacher_x, teacher_w, teacher_bias)
        log_q, log_p = (F.log_softmax(z / temperature, -1) for z in (logits, teacher))
        loss = divergence_of(log_q, log_p, kind, beta) * counted
        (loss @ dloss).backward()
        lse, teacher_lse = (torch.logsumexp(z / temperature, dim=-1) * counted for z in (logits, teacher))
        yield case(
            {"T": tokens, "H": hidden, "G": width, "V": vocabulary},
            {"kind": kind, "beta": beta, "temperature": temperature, "ignore_index": IGNORED, "bias": 1, "dbias": 1,
             "teacher_bias": 1},
            {"x": x, "w": w, "bias": bias, "teacher_x": teacher_x, "teacher_w": teacher_w, "teacher_bias": teacher_bias,
             "target": target, "dloss": dloss},
            {"loss": loss, "lse": lse, "teacher_lse": teacher_lse, "dx": x.grad, "dw": w.grad, "dbias": bias.grad},
        )


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent)
    folder.mkdir(parents=True, exist_ok=True)
    for op in (rms_norm, rope, swiglu, cross_entropy, linear_cross_entropy, log_prob, linear_log_prob, linear_policy,
               divergence, linear_divergence):
        cases = ",\n".join(json.dumps(c, allow_nan=False) for c in op())
        version = torch.__version__.split("+")[0]
        text = f'{{"op": "{op.__name__}", "torch": "{version}", "cases": [\n{cases}\n]}}\n'
        (folder / f"{op.__name__}.json").write_text(text)


if __name__ == "__main__":
    main()
