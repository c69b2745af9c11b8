# SPDX-License-Identifier: Apache-2.0
"""One variant of one case: trains some steps from the same start, as often as asked, and in between holds no memory of the GPU.

So the variants of a model that fills a GPU can take turns on it. The batches of a round have their rows in another order than those of the
round before: the same mathematics with other roundings, so the rounds of one variant show how far apart two right trainings are.
"""
import gc
import time

import torch

from .shapes import attention_of, config_of
from .variants import VARIANTS

LEARNING_RATE = 1e-4
SPREAD = 0.02  # of the weights, as in the configs of these models


class Trained:
    """A model, made ready as its variant says."""

    def __init__(self, case, variant, seed):
        import transformers

        self.case, self.seed = case, seed
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        config = config_of(case.model, case.length)
        with self.device:
            self.model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=attention_of(case.model)).train()
        if case.checkpointing:
            self.model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        self.vocabulary = config.vocab_size
        self.parameters = list(self.model.parameters())
        self.count = sum(p.numel() for p in self.parameters)
        self._shapes = [p.shape for p in self.parameters]
        self._vectors = [p.detach().clone() if p.dim() < 2 else None for p in self.parameters]  # what norms start with
        self.run, self.what = VARIANTS[variant](self.model)

    def turn(self, round_number, warmup, steps, profile=None):
        """Trains warmup + steps steps; {loss: of all, seconds_s: of those behind the warm-up, peak_bytes, reserved_bytes}."""
        self._fill()
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        optimizer = torch.optim.AdamW(self.parameters, lr=LEARNING_RATE, fused=True)
        losses, marks = [], [_mark(on_gpu)]
        for step in range(warmup + steps):
            losses.append(self._step(optimizer, round_number, step))
            marks.append(_mark(on_gpu))
        found = {"loss": [loss.item() for loss in losses], "seconds_s": _between(marks[warmup:], on_gpu),
                 "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
                 "reserved_bytes": torch.cuda.max_memory_reserved() if on_gpu else None}
        if profile:
            self._profile(optimizer, profile)
        return found

    def park(self):
        """Gives all memory back."""
        for p in self.parameters:
            p.grad = None
            p.data = p.data.new_empty(0)
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _fill(self):
        random = torch.Generator(self.device).manual_seed(self.seed)
        for p, shape, vector in zip(self.parameters, self._shapes, self._vectors):
            p.data = torch.empty(shape, dtype=torch.bfloat16, device=self.device) if vector is None else vector.clone()
            if vector is None:
                p.data.normal_(0.0, SPREAD, generator=random)

    def _tokens(self, round_number, step):
        """Some tokens are frequent and most are rare, so there is something to learn."""
        random = torch.Generator(self.device).manual_seed(self.seed + 1 + step)
        drawn = torch.rand(self.case.batch, self.case.length, generator=random, device=self.device)
        return (drawn**4 * self.vocabulary).long().roll(round_number, 0)

    def _step(self, optimizer, round_number, step):
        tokens = self._tokens(round_number, step)
        loss = self.run(input_ids=tokens, labels=tokens, use_cache=False).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.detach()

    def _profile(self, optimizer, file):
        """Writes what one more step spends its time on."""
        with torch.profiler.profile() as profiler:
            self._step(optimizer, 0, 0)
            if self.device.type == "cuda":
                torch.cuda.synchronize()
        key = "self_cuda_time_total" if self.device.type == "cuda" else "self_cpu_time_total"
        with open(file, "w", encoding="utf-8") as out:
            out.write(profiler.key_averages().table(sort_by=key, row_limit=40, max_name_column_width=90))


def _mark(on_gpu):
    """A point in time: of the GPU's stream, so the processor may run ahead as in any training."""
    if not on_gpu:
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def _between(marks, on_gpu):
    if on_gpu:
        torch.cuda.synchronize()
        return [a.elapsed_time(b) / 1e3 for a, b in zip(marks, marks[1:])]
    return [b - a for a, b in zip(marks, marks[1:])]
