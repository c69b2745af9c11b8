# SPDX-License-Identifier: Apache-2.0
"""Which defences against cheats ran before a verdict, by its record. Needs no torch."""
from collections.abc import Callable
from typing import Any, NamedTuple


class Seen(NamedTuple):
    """What a record tells: whether the candidate was loaded, which kinds of inputs were compared, and the options."""
    loaded: bool
    kinds: tuple[str, ...]
    options: dict[str, Any]

    def has(self, *words: str) -> bool:
        """Whether some kind of inputs begins with one of the words."""
        return any(kind.startswith(words) for kind in self.kinds)


def _compared(seen: Seen) -> bool:
    return bool(seen.kinds)


def _again(seen: Seen) -> bool:
    return len(seen.kinds) > 1


DEFENCES: dict[str, Callable[[Seen], bool]] = {
    "a process of its own": lambda seen: seen.loaded,
    "an end is no verdict": lambda seen: seen.loaded,
    "the verdict is not the candidate's": lambda seen: seen.loaded,
    "seeds are drawn after it is loaded": lambda seen: seen.loaded and seen.options["seed"] is None,
    "memory is poisoned": lambda seen: _compared(seen) and seen.options["device"] == "cpu",
    "budgets of each element": _compared,
    "budgets from the reference's dtypes": _compared,
    "no absolute tolerance": _compared,
    "every element is compared": _compared,
    "results are looked at": _compared,
    "types of results": _compared,
    "results are taken at return": _compared,
    "what is said of results is held against them": _compared,
    "inputs are compared": _compared,
    "inputs are compared again later": _compared,
    "gradients of random upstreams": lambda seen: _compared(seen) and seen.options["backward"],
    "inputs change": _again,
    "later calls are judged, too": _again,
    "results are poisoned after each call": _again,
    "new inputs at old addresses": lambda seen: seen.has("drawn again, at the same addresses", "a sample again, at the same addresses"),
    "layouts of inputs": lambda seen: seen.has("strided inputs", "unaligned inputs"),
    "kinds of inputs": lambda seen: seen.has("scaled", "outliers", "zeros", "ties", "sample "),
}


def defences_of(record: dict[str, Any]) -> list[str]:
    """Those that ran."""
    kinds = dict.fromkeys(case["name"].partition(": ")[0] for case in record["cases"] if case["verdict"] != "skipped")
    seen = Seen(record["seed"] is not None, tuple(kinds), record["options"])
    return [name for name, ran in DEFENCES.items() if ran(seen)]
