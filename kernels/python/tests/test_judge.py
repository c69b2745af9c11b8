# SPDX-License-Identifier: Apache-2.0
"""tigon.judge: right candidates are right, cheats are caught, exit codes and verdicts say so. cheats.py has all of them."""
import contextlib
import io
import json
import os
import pathlib
import random
import re
import tempfile
import unittest

import cheats
from tigon import judge
from tigon.testing import reward

PAGE = pathlib.Path(__file__).parents[1] / "JUDGE.md"
SEED = int(os.environ.get("TIGON_SEED") or random.randrange(1 << 30))
REFERENCE = cheats._HEAD + cheats.PROBLEMS["softmax"].reference
RIGHT = cheats.candidate(cheats.PROBLEMS["softmax"], cheats.PROBLEMS["softmax"].right[0])


class JudgeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def run_judge(self, candidate, reference, *words):
        """The exit code and what was printed."""
        files = self.folder / "candidate.py", self.folder / "reference.py"
        for file, text in zip(files, (candidate, reference)):
            file.write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(io.StringIO()) as said:
            code = judge.main([str(files[0]), "--reference", str(files[1]), *words])
        return code, said.getvalue()

    def test_a_right_candidate_of_a_problem_drawn_by_a_seed(self):
        for name in random.Random(SEED).sample(sorted(cheats.PROBLEMS), 1):
            with self.subTest(name=name, seed=SEED):
                verdict = cheats.judged(name, cheats.PROBLEMS[name].right[-1], seed=SEED)
                self.assertEqual((verdict.verdict, verdict.reason, verdict.notes), ("right", "", ()))

    def test_cheats_drawn_by_a_seed(self):
        chance = random.Random(SEED)
        for title in chance.sample(sorted(cheats.CHEATS), 2):
            name, cheat = chance.choice(sorted(cheats.PROBLEMS)), cheats.CHEATS[title]
            with self.subTest(cheat=title, name=name, seed=SEED):
                verdict = cheats.judged(name, cheats.PROBLEMS[name].right[0], cheat.source, seed=SEED, backward=cheat.backward)
                self.assertEqual(verdict.verdict, "wrong")
                self.assertTrue(re.search(cheat.reason, verdict.reason), verdict.reason)  # assertRegex takes no empty one

    def test_calls_of_torch_are_named(self):
        verdict = cheats.judged("linear", cheats.PROBLEMS["linear"].right[0])
        self.assertLessEqual({"aten::matmul", "aten::layer_norm", "aten::gelu"}, set(verdict.calls))
        by_numpy = """def right(x):
    e = __import__('numpy').exp(x.double().numpy())
    return torch.from_numpy(e / e.sum(-1, keepdims=True)).float()"""
        verdict = cheats.judged("softmax", by_numpy)
        self.assertEqual(verdict.verdict, "right", verdict.reason)
        self.assertIn("aten::to", verdict.calls)  # what torch does is named, what numpy does is not
        self.assertEqual({"aten::exp", "aten::sum", "aten::div"} & set(verdict.calls), set())

    def test_parameters_that_a_candidate_takes_for_ones(self):
        right = "def right(self, x): return F.gelu(F.layer_norm(self.linear(x), self.norm.normalized_shape))"
        self.assertEqual(cheats.judged("linear", right).verdict, "wrong")

    def test_what_a_run_says(self):
        code, said = self.run_judge(RIGHT, REFERENCE, "--json", "-", "--seed", "7", "--backward")
        record = json.loads(said)
        self.assertEqual((code, record["verdict"], record["seed"], record["schema"]), (0, "right", 7, 1))
        self.assertGreater(len(record["cases"]), 10)
        self.assertLessEqual({"aten::exp", "aten::sum", "aten::div"}, set(record["calls"]))
        code, said = self.run_judge(RIGHT.replace("return e / ", "return e + "), REFERENCE)
        self.assertEqual(code, 1)
        self.assertRegex(said, r"^wrong: drawn: result: .* elements wrong; \[\d+,\d+\]: got .*, want .*, off by .*, budget ")

    def test_what_is_not_judged(self):
        code, said = self.run_judge(RIGHT + "while True: pass\n", REFERENCE, "--timeout", "4")
        self.assertEqual((code, said.splitlines()[0]), (5, "too slow: no answer in 4 s"))
        code, said = self.run_judge("import no_such_package\n", REFERENCE)
        self.assertEqual((code, said.splitlines()[0]), (5, "not judged: it needs what is not here: No module named 'no_such_package'"))
        code, said = self.run_judge(RIGHT, "x = 1\n")
        self.assertEqual(code, 2)
        self.assertRegex(said, r"^bad problem: .*reference.py has no get_inputs\(\)")
        code, said = self.run_judge("x = 1\n", REFERENCE)
        self.assertEqual((code, said.splitlines()[0]),
                         (1, "wrong: it raised LookupError: the candidate has none of candidate, solution, and not one function alone"))

    def test_a_file_that_cannot_be_written_is_said_before_the_work(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            code, shown = self.run_judge(RIGHT, REFERENCE, "--json", str(self.folder / "none/verdict.json"))
        self.assertEqual((code, shown), (5, ""))
        self.assertRegex(said.getvalue(), r"^tigon judge: --json .*none/verdict.json: No such file or directory; name a file")

    def test_sizes_that_the_reference_does_not_allow(self):
        problem = "import torch\ndef reference(x): return x.reshape(-1, 8) * 2\ndef get_inputs(rows=16): return [torch.randn(rows)]\n"
        code, said = self.run_judge("def candidate(x): return 2 * x.reshape(-1, 8)\n", problem)
        self.assertEqual(code, 0, said)
        self.assertRegex(said, r"not looked at: sizes rows=\d+: shape '\[-1, 8\]' is invalid")

    def test_the_example_of_the_page(self):
        example = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)[0]
        for name, text in (("candidate", RIGHT), ("reference", REFERENCE)):
            (self.folder / f"{name}.py").write_text(text, encoding="utf-8")
        names = {}
        with contextlib.chdir(self.folder):
            exec(example, names)
        self.assertEqual(names["score"], 1.0)

    def test_the_page_has_a_row_for_each_defence(self):
        rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", PAGE.read_text(encoding="utf-8").partition("## What is done against")[2], re.M))
        shown = {defence: caught.split(", ") for defence, caught in rows.items() if defence not in ("defence", "---")}
        wanted = {}
        for title, cheat in cheats.CHEATS.items():
            wanted.setdefault(cheat.defence, []).append(title)
        self.assertEqual(shown, wanted)
        self.assertGreaterEqual(len(cheats.CHEATS), 25)

    def test_rewards(self):
        self.assertEqual(reward(RIGHT.replace("return e / ", "return e + "), REFERENCE), 0.0)
        self.assertEqual(reward("\nimport time\ndef candidate(x):\n    time.sleep(9)\n", REFERENCE, seconds=4), 0.0)
        with self.assertRaisesRegex(RuntimeError, "no_such_package"):
            reward("\nimport no_such_package\n", REFERENCE)
        with self.assertRaisesRegex(ValueError, "has no get_inputs"):
            reward(RIGHT, "\nx = 1\n")


if __name__ == "__main__":
    unittest.main()
