# SPDX-License-Identifier: Apache-2.0
"""What tigon.patch replaced in a model, what it left, and why."""
import dataclasses
import re
from typing import Any

from .rate import copy_rate


@dataclasses.dataclass(frozen=True)
class Entry:
    """A module of a model: `kind` is "norm", "mlp", "experts", "rope" or "loss"; `what` tells what replaces it, or why it was left."""
    kind: str
    name: str
    what: str


class NotKept(dict[str, int]):
    """Bytes that a forward did not keep for backward, by modules' names; what making them again reads and writes, and on which device."""
    moved: int = 0
    device: Any = None

    def clear(self) -> None:
        super().clear()
        self.moved = 0


@dataclasses.dataclass
class Report:
    """Modules of a model by name: those that compute with Tigon's ops now, and those that were left as they are."""
    replaced: list[Entry] = dataclasses.field(default_factory=list)
    left: list[Entry] = dataclasses.field(default_factory=list)
    not_kept: NotKept | None = None  # with recompute, of the last forward with gradients

    def bytes_saved(self) -> dict[str, int]:
        """With recompute="cheap": bytes of results that the last forward with gradients did not keep for backward, by layer.

        Measured in eager mode; empty before a forward, and where torch.compile decides.
        """
        found: dict[str, int] = {}
        for name, count in (self.not_kept or {}).items():
            layer = re.match(r".*?\.\d+(?=\.)|.*", name)
            assert layer is not None
            found[layer[0]] = found.get(layer[0], 0) + count
        return found

    def seconds_again(self) -> float | None:
        """With recompute="cheap": about how long it takes to make these results again, at the rate at which the device copies memory.

        The rate is measured when it is first asked for. None where nothing is known to be made again.
        """
        if not self.not_kept or not self.not_kept.moved:
            return None
        return self.not_kept.moved / copy_rate(self.not_kept.device)

    def count(self, kind: str) -> int:
        """How many modules of a kind were replaced."""
        return sum(entry.kind == kind for entry in self.replaced)

    def __str__(self) -> str:
        lines = [_line(kind, names, what) for (kind, what), names in _groups(self.replaced).items()]
        lines += [_line(kind, names, f"left, since it {what}") for (kind, what), names in _groups(self.left).items()]
        lines += [_line("again", names, what) for (_, what), names in _groups(self._saved()).items()]
        if (seconds := self.seconds_again()) is not None:
            lines.append(f"again in all: about {1e3 * seconds:.3g} ms of a step, at the rate at which {self.not_kept.device} copies memory")  # type: ignore[union-attr]
        return "\n".join(lines or ["nothing was found that could be replaced"])

    def _saved(self) -> list[Entry]:
        if self.not_kept is None:
            return []
        saved = [Entry("again", name, f"{count:,} bytes were not kept for backward, but made again") for name, count in self.bytes_saved().items()]
        return saved or [Entry("again", "norms and gates", "made again in backward; a forward in training measures the bytes")]


class PatchError(RuntimeError):
    """With strict=True, something had to be left; `report` tells what. The model is as it was."""

    def __init__(self, report: Report):
        super().__init__(f"not everything could be replaced:\n{report}")
        self.report = report


def _groups(entries: list[Entry]) -> dict[tuple[str, str], list[str]]:
    groups: dict[tuple[str, str], list[str]] = {}
    for entry in entries:
        groups.setdefault((entry.kind, entry.what), []).append(entry.name)
    return groups


def _line(kind: str, names: list[str], what: str) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{kind:4s} {names[0] or 'the model'}{more}: {what}"
