# SPDX-License-Identifier: Apache-2.0
"""Sizes of a head: T=8192,H=4096,V=128256."""
import dataclasses

AXES = {"T": "tokens", "H": "hidden", "V": "classes"}


@dataclasses.dataclass(frozen=True)
class Case:
    tokens: int
    hidden: int
    classes: int  # of all ranks

    def __str__(self):
        return ",".join(f"{axis}={getattr(self, name)}" for axis, name in AXES.items())


def parse(text):
    """The case that a text says. ValueError: it says none."""
    given = dict(part.partition("=")[::2] for part in text.split(","))
    if given.keys() != AXES.keys() or not all(value.isdigit() and int(value) > 0 for value in given.values()):
        raise ValueError(f"a case is {','.join(f'{axis}=N' for axis in AXES)} with numbers from 1 on, not {text}")
    return Case(**{AXES[axis]: int(value) for axis, value in given.items()})
