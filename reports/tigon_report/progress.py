# SPDX-License-Identifier: Apache-2.0
"""How far a command is, on stderr: one line that is written over on a terminal, elsewhere a line every 10 s at most."""
import sys
import time

EVERY_S = 10


class Progress:
    def __init__(self, name, stream=None, clock=time.monotonic):
        self.name, self.stream, self.clock = name, stream or sys.stderr, clock
        self.on_terminal = self.stream.isatty()
        self.last, self.width = clock(), 0

    def __call__(self, text):
        line = f"tigon: {self.name}: {text}"
        if self.on_terminal:
            self._over(line)
        elif self.clock() - self.last >= EVERY_S:
            self.last = self.clock()
            print(line, file=self.stream, flush=True)

    def end(self):
        """Leaves the line of a terminal empty."""
        if self.on_terminal and self.width:
            self._over("")

    def _over(self, line):
        print(f"\r{line.ljust(self.width)}", end="" if line else "\r", file=self.stream, flush=True)
        self.width = len(line)
