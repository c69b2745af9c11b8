# SPDX-License-Identifier: Apache-2.0
"""Random damage of records: every command ends with an exit code and one line, never with a traceback."""
import json
import random
import unittest

import sample
from command_test import CommandTest, full, full_run

VALUES = (None, True, -1, 0, 1.5, "x", "", [], {}, [1], {"a": 1}, 10**30, 1e308, "\x00", "../..", [None],
          [{"name": None}],
          {"index": "x"}, "a" * 3000)
TRIALS = 80


class DamageTest(CommandTest):
    def lines(self):
        records = [*full_run(), full(sample.check("nonfinite", impl="naive")), full(sample.trace()),
                   full(sample.converge("naive", [8.3, 7.1])), full(sample.memory("fused", 64, 1024, 1)),
                   full(sample.host_run()[-1])]
        return [json.dumps(record).encode() for record in records]

    @staticmethod
    def damage(line, chance):
        if chance.random() < 0.25:
            damaged = bytearray(line)
            for _ in range(chance.randint(1, 3)):
                damaged[chance.randrange(len(damaged))] = chance.randrange(256)
            return bytes(damaged).replace(b"\n", b" ")
        record = json.loads(line)
        target, key = record, chance.choice(list(record))
        if isinstance(record[key], dict) and record[key] and chance.random() < 0.5:
            target, key = record[key], chance.choice(list(record[key]))
        if chance.random() < 0.2:
            target.pop(key)
        else:
            target[key] = chance.choice(VALUES)
        return json.dumps(record).encode()

    def test_no_damage_ends_in_a_traceback(self):
        good, chance, codes = self.write("good.jsonl", self.lines()), random.Random(6), set()
        out = self.folder / "out"
        exports = [("export", "{}", "--format", name, "-o", out) for name in
                   ("google-benchmark", "github-action-benchmark", "otava", "csv", "junit", "prometheus")]
        commands = [("merge", "{}", "-o", out), ("index", "{}", "-o", self.folder / "i.sqlite"),
                    ("compare", good, "{}"),
                    ("compare", "{}", good, "--allow-different-machines", "--md", "-"), *exports]
        for trial in range(TRIALS):
            lines = self.lines()
            at = chance.randrange(len(lines))
            lines[at] = self.damage(lines[at], chance)
            bad = self.write("bad.jsonl", lines)
            for words in commands:
                code, _, errors = self.tigon(*(bad if word == "{}" else word for word in words))
                self.assertIn(code, (0, 2, 4), (trial, words, errors))
                if code:
                    self.assertEqual(errors.count("\n"), 1, errors)
                codes.add(code)
        self.assertLessEqual({0, 4}, codes)


if __name__ == "__main__":
    unittest.main()
