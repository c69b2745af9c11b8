# SPDX-License-Identifier: Apache-2.0
"""tigon_training on a CPU: that every variant trains the same model, and what is recorded. Run by ./tigon test --python."""
import contextlib
import importlib.util
import io
import json
import pathlib
import tempfile
import unittest

import torch
from tigon_report import schema
from tigon_training import __main__ as program
from tigon_training import case, trained, turns, variants

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


class CaseTest(unittest.TestCase):
    def test_texts(self):
        self.assertEqual(case.parse("llama3-8b"), case.Case("llama3-8b", 8, 4096, False))
        given = case.parse("tiny,batch=2,checkpointing,length=64")
        self.assertEqual((given.tokens, str(given)), (128, "tiny,batch=2,length=64,checkpointing"))
        self.assertEqual(case.parse(str(given)), given)
        self.assertEqual(case.parse("tiny,only=eager/tigon").only, ("eager", "tigon"))

    def test_wrong_texts(self):
        for text, message in (("nosuch", "no model nosuch"), ("tiny,batch=0", "'batch=0'"), ("tiny,layers=2", "'layers=2'"), ("tiny,batch", "'batch'")):
            with self.assertRaisesRegex(ValueError, message):
                case.parse(text)


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class ProgramTest(unittest.TestCase):
    def run_program(self, *arguments):
        """Exit code, records, what was printed."""
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as said:
            code = program.main([*arguments, "--out", folder])
            lines = (pathlib.Path(folder) / "records.jsonl").read_text().splitlines()
        return code, [json.loads(line) for line in lines], printed.getvalue() + said.getvalue()

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_variants_train_the_same_model(self):
        code, records, printed = self.run_program("tiny,batch=2,length=16", "--variants", "eager,tigon_cheap,liger", "--rounds", "2", "--warmup", "1",
                                                  "--steps", "2")
        self.assertEqual(code, 0, printed)
        self.assertEqual([found for record in records if (found := schema.violation(record))], [])
        self.assertEqual([record["record"] for record in records], ["run", *["training"] * 5, "end"])
        made = [record for record in records if record["record"] == "training"]
        self.assertEqual([(r["variant"], r["round"]) for r in made],
                         [("eager", 0), ("tigon_cheap", 0), ("liger", 0), ("tigon_cheap", 1), ("eager", 1)])
        passed = [record for record in made if record["variant"] != "liger"]
        for record in passed:
            self.assertEqual((record["verdict"], len(record["loss"]), len(record["seconds_s"]), record["executor"]), ("passed", 3, 2, "fast"))
            self.assertLess(max(abs(a - b) for a, b in zip(record["loss"], passed[0]["loss"])), 5e-3)
            self.assertIn("replaced: 1 loss, 2 rope, 2 mlp, 5 norm; left: 0" if record["variant"] != "eager" else "", record["what"])
        self.assertEqual([record["verdict"] for record in made if record["variant"] == "liger"], ["unsupported"])
        self.assertIn("its times are no speed", printed)
        self.assertNotIn("tokens/s", printed)

    def test_a_process_that_ends_is_a_crash(self):
        process = turns.Process("eager", 1)
        process.hello()
        process._process.kill()
        process._process.wait()
        found = list(turns.in_turns([process], [case.parse("tiny,batch=1,length=8")], 2, {"warmup": 0, "steps": 1}))
        self.assertEqual([(number, answer["verdict"]) for _, _, number, answer in found], [(0, "crashed")])
        process.close()

    def test_a_parked_model_starts_anew(self):
        one = trained.Trained(case.parse("tiny,batch=2,length=16"), "eager", 3)
        first = one.turn(0, 0, 3)["loss"]
        one.park()
        self.assertEqual(sum(p.numel() for p in one.model.parameters()), 0)
        self.assertEqual(one.turn(0, 0, 3)["loss"], first)
        self.assertLess(max(abs(a - b) for a, b in zip(one.turn(1, 0, 3)["loss"], first)), 5e-3)


class WordsTest(unittest.TestCase):
    def test_wrong_arguments(self):
        for words, message in ((["nosuch"], "no model nosuch"), (["tiny", "--variants", "eager,fast"], "no variant fast"),
                               (["tiny", "--rounds", "0"], "1 or more"), (["tiny,only=liger", "--variants", "eager"], "liger is none of --variants")):
            with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
                program.arguments(words)
            self.assertIn(message, said.getvalue())


class VariantsTest(unittest.TestCase):
    def test_what_is_missing_is_said(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        with self.assertRaisesRegex(variants.Unavailable, "need a GPU"):
            variants.liger(None)


if __name__ == "__main__":
    unittest.main()
