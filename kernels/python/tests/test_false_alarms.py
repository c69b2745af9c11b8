# SPDX-License-Identifier: Apache-2.0
"""false_alarms.py: its candidates are right by other means than the reference's, and what the judge calls wrong is counted."""
import contextlib
import io
import json
import os
import pathlib
import random
import tempfile
import unittest
import unittest.mock

import false_alarms
import right_candidates
import torch
from problems import PROBLEMS
from tigon._judge.entry import EXIT
from tigon._testing.made import call, copies
from tigon._testing.oracle import Oracle

SEED = int(os.environ.get("TIGON_SEED") or random.randrange(1 << 30))
LIBRARIES = ["--without", "compiled", "--without", "tigon", "--without", "liger"]


def made(text):
    names = {}
    exec(compile(text, "candidate", "exec"), names)
    return names


class FalseAlarmsTest(unittest.TestCase):
    def run_script(self, *words):
        """The exit code, what was printed, and the lines of the record."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as said:
            out = pathlib.Path(folder) / "out.jsonl"
            code = false_alarms.main([*words, *LIBRARIES, "--out", str(out)])
            return code, said.getvalue(), [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]

    def test_right_ones_are_counted(self):
        code, said, lines = self.run_script("softmax", "--seeds", "2", "--seed", "5", "--only", "(reversed|float64) bfloat16 backward")
        self.assertEqual(code, 0, said)
        self.assertEqual([line["record"] for line in lines], ["verdict", "verdict", "false_alarms"])
        self.assertEqual({(line["candidate"], line["seed"]) for line in lines[:2]}, {("softmax/reversed.py", 6), ("softmax/float64.py", 6)})
        total = lines[-1]
        self.assertEqual((total["verdicts"], total["counts"], total["kinds"]), (2, {"right": 2}, {"float64": {"right": 1}, "reversed": {"right": 1}}))
        self.assertIn("without liger: left out\n", said)
        self.assertIn("\n0 false alarms in 2 verdicts of right candidates, 0 of them with limits; 2 seeds from 5 on, cpu", said)

    def test_what_is_called_wrong_is_an_alarm(self):
        wrong = {"by hand 0": "def candidate(x): return x\n", "eager": "import no_such_package\n"}
        with unittest.mock.patch.object(false_alarms, "candidates", lambda *_: wrong):
            code, said, lines = self.run_script("softmax", "--seeds", "1", "--seed", "5", "--only", "float32")
        self.assertEqual((code, lines[-1]["counts"]), (1, {"wrong": 1, "not judged": 1}))
        self.assertRegex(said, r"FALSE ALARM: softmax/by hand 0 float32 seed 5: wrong: drawn: result: ")
        self.assertRegex(said, r"no verdict: softmax/eager float32 seed 5: not judged: (?s:.*)1 false alarms in 2 verdicts")
        self.assertEqual(self.run_script("softmax", "--only", "no such thing")[0], 4)
        self.assertEqual(set(EXIT), {"right", "wrong", "bad problem", "not judged", "too slow"})

    def test_a_sample_is_drawn_by_the_seed(self):
        with unittest.mock.patch.object(false_alarms, "judge_all", lambda entries, _: ((e, {"verdict": "right", "candidate": e.candidate, "limits": [],
                                                                                            "at": false_alarms.said(e)}) for e in entries)):
            drawn = [[line["at"] for line in self.run_script("--sample", "7", "--seed", str(seed))[2][:-1]] for seed in (1, 1, 2)]
        self.assertEqual([len(set(one)) for one in drawn], [7, 7, 7])
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual({at.rpartition(" seed")[0] for at in drawn[0]}, {at.rpartition(" seed")[0] for at in drawn[2]})

    def test_candidates_of_all_problems(self):
        """In this process, with gradients."""
        chance = random.Random(SEED)
        for name in PROBLEMS:
            dtype = chance.choice((torch.float32, torch.bfloat16, torch.float16))
            problem = made(right_candidates.HEAD + PROBLEMS[name].reference)
            torch.manual_seed(SEED)
            inputs = [v.to(dtype) if v.is_floating_point() else v for v in problem["get_inputs"]()]
            sizes = problem["get_init_inputs"]() if "Model" in problem else []
            reference = problem["Model"](*sizes).to(dtype) if "Model" in problem else problem["reference"]
            oracle = Oracle(reference, inputs, backward=True, seed=SEED)
            for kind, text in right_candidates.candidates(name).items():
                if kind in ("compiled", "tigon", "liger"):
                    continue
                with self.subTest(name=name, kind=kind, dtype=dtype, seed=SEED):
                    names = made(text)
                    candidate = names["candidate"] if "Model" not in problem else names["ModelNew"](*sizes).to(dtype)
                    if "Model" in problem:
                        candidate.load_state_dict(reference.state_dict())
                    cases = oracle.cases(call(candidate, copies(inputs, True), oracle.upstream))
                    self.assertEqual([case for case in cases if case.is_failure], [])

    def test_orders_are_other_ones(self):
        for name in ("softmax", "matrix product", "row means", "layer_norm", "log_softmax", "batched product", "linear"):
            for kind in ("reversed", "blocked"):
                if (name, kind) == ("layer_norm", "blocked"):
                    continue  # it is one operation, which stays as it is
                with self.subTest(name=name, kind=kind):
                    differ = 0
                    for seed in range(20):  # one alone may have the same bits by chance
                        torch.manual_seed(seed)
                        names = made(right_candidates.candidates(name)[kind])
                        inputs = names["get_inputs"]()
                        if name == "linear":
                            other = names["ModelNew"](32, 24)
                            plain = names["Model"](32, 24)
                            plain.load_state_dict(other.state_dict())
                        else:
                            plain, other = names["reference"], names["candidate"]
                        differ += not torch.equal(plain(*inputs), other(*inputs))
                    self.assertGreater(differ, 10)


if __name__ == "__main__":
    unittest.main()
