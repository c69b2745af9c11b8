# SPDX-License-Identifier: Apache-2.0
"""One variant of one case: trains some steps from the same start, as often as asked, and in between holds no memory of the GPU.

So the variants of a model that fills a GPU can take turns on it. The batches of a round have their rows in another order than those of the
round before: the same mathematics with other roundings, so the rounds of one variant show how far apart two right trainings are.
"""
import gc

import torch

from . import collectives
from .marks import between, mark
from .place import ALONE
from .shapes import attention_of, config_of
from .variants import VARIANTS

LEARNING_RATE = 1e-4
SPREAD = 0.02  # of the weights, as in the configs of these models


def _model_of(case):
    """As transformers makes it, and how many tokens it knows."""
    import transformers

    config = config_of(case.model, case.length)
    model = transformers.AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16, attn_implementation=attention_of(case.model)).train()
    if case.checkpointing:
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    return model, config.vocab_size


class Start:
    """What each training of a model starts from: its vectors as the model makes them, its matrices drawn."""

    def __init__(self, parameters):
        self._shapes = [p.shape for p in parameters]
        self._vectors = [p.detach().clone() if p.dim() < 2 else None for p in parameters]

    def tensors(self, device, seed):
        """Yields the value of each parameter, when it is asked for."""
        random = torch.Generator(device).manual_seed(seed)
        for shape, vector in zip(self._shapes, self._vectors):
            yield torch.empty(shape, dtype=torch.bfloat16, device=device).normal_(0.0, SPREAD, generator=random) if vector is None else vector.clone()


class Trained:
    """A model, made ready as its variant says."""

    def __init__(self, case, variant, seed, place=ALONE):
        self.case, self.variant, self.seed, self.place = case, variant, seed, place
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._make()

    def _make(self):
        with self._where():
            self.model, self.vocabulary = _model_of(self.case)
        self.parameters = list(self.model.parameters())
        self.count = sum(p.numel() for p in self.parameters)
        self.start = Start(self.parameters)
        self.run, self.what = VARIANTS[self.variant](self.model)

    def _where(self):
        """The context in which the model is made."""
        return self.device

    def turn(self, round_number, warmup, steps, profile=None):
        """Trains warmup + steps steps; {loss: of all, seconds_s: of those behind the warm-up, peak_bytes, reserved_bytes}."""
        self._fill()
        on_gpu = self.device.type == "cuda"
        if on_gpu:
            torch.cuda.reset_peak_memory_stats()
        optimizer = self._optimizer()
        losses, marks = [], [mark(on_gpu)]
        for step in range(warmup + steps):
            losses.append(self._step(optimizer, round_number, step))
            marks.append(mark(on_gpu))
        found = {"loss": [loss.item() for loss in losses], "seconds_s": between(marks[warmup:], on_gpu),
                 "peak_bytes": torch.cuda.max_memory_allocated() if on_gpu else None,
                 "reserved_bytes": torch.cuda.max_memory_reserved() if on_gpu else None}
        return {**found, **self._profile(optimizer, profile)} if profile else found

    def park(self):
        """Gives all memory back."""
        self._forget()
        gc.collect()
        if self.device.type == "cuda":
            torch.cuda.empty_cache()

    def _forget(self):
        for p in self.parameters:
            p.grad = None
            p.data = p.data.new_empty(0)

    def _fill(self):
        for p, value in zip(self.parameters, self.start.tensors(self.device, self.seed)):
            p.data = value

    def _optimizer(self):
        return torch.optim.AdamW(self.parameters, lr=LEARNING_RATE, fused=True)

    def _tokens(self, round_number, step):
        """This rank's rows. Some tokens are frequent and most are rare, so there is something to learn."""
        random = torch.Generator(self.device).manual_seed(self.seed + 1 + step)
        drawn = torch.rand(self.place.ranks * self.case.batch, self.case.length, generator=random, device=self.device)
        return (drawn**4 * self.vocabulary).long().roll(round_number, 0)[self.place.rank * self.case.batch:][:self.case.batch]

    def _step(self, optimizer, round_number, step):
        tokens = self._tokens(round_number, step)
        loss = self.run(input_ids=tokens, labels=tokens, use_cache=False).loss
        self._learn(optimizer, loss)
        return loss.detach()

    def _learn(self, optimizer, loss):
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    def _profile(self, optimizer, file):
        """Writes what one more step spends its time on, behind one that starts the profiler; gives the times of collectives, where there are some."""
        on_gpu = self.device.type == "cuda"
        with torch.profiler.profile(schedule=torch.profiler.schedule(wait=0, warmup=1, active=1, repeat=1)) as profiler:
            for step in range(2):
                self._step(optimizer, 0, step)
                if on_gpu:
                    torch.cuda.synchronize()
                profiler.step()
        if self.place.rank == 0:
            with open(file, "w", encoding="utf-8") as out:
                out.write(profiler.key_averages().table(sort_by=f"self_{self.device.type}_time_total", row_limit=40, max_name_column_width=90))
        return collectives.times(profiler.events()) if on_gpu and self.place.layout else {}
