# SPDX-License-Identifier: Apache-2.0
"""What is trained: MODEL[,batch=8][,length=4096][,checkpointing][,only=VARIANT/VARIANT]."""
import dataclasses

from .shapes import SHAPES


@dataclasses.dataclass(frozen=True)
class Case:
    """A model of some shape, with a batch of sequences of one length."""
    model: str
    batch: int = 8
    length: int = 4096
    checkpointing: bool = False
    only: tuple[str, ...] = ()  # the variants that train it; none: all

    def __str__(self):
        return f"{self.model},batch={self.batch},length={self.length}{',checkpointing' if self.checkpointing else ''}"

    @property
    def tokens(self):
        """Of one step, on each rank."""
        return self.batch * self.length


def parse(text):
    """The case of a text. ValueError: it names none."""
    model, *words = text.split(",")
    if model not in SHAPES:
        raise ValueError(f"there is no model {model}; there are {', '.join(SHAPES)}")
    settings = {}
    for word in words:
        name, equals, value = word.partition("=")
        if word == "checkpointing":
            settings[word] = True
        elif equals and name == "only":
            settings[name] = tuple(value.split("/"))
        elif equals and name in ("batch", "length") and value.isdigit() and int(value) > 0:
            settings[name] = int(value)
        else:
            raise ValueError(f"'{word}' is not batch=N, length=N, checkpointing or only=VARIANT/VARIANT")
    return Case(model, **settings)
