# SPDX-License-Identifier: Apache-2.0
"""tigon_training on a CPU: that every variant trains the same model, and what is recorded. Run by ./tigon test --python."""
import contextlib
import importlib.util
import io
import json
import pathlib
import signal
import tempfile
import unittest

import torch
from tigon_report import schema
from tigon_training import __main__ as program
from tigon_training import case, trained, turns, variants

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


def run_program(*arguments, main=program.main):
    """Exit code, records, what was printed."""
    with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as printed, contextlib.redirect_stderr(io.StringIO()) as said:
        code = main([*arguments, "--out", folder])
        lines = (pathlib.Path(folder) / "records.jsonl").read_text().splitlines()
    return code, [json.loads(line) for line in lines], printed.getvalue() + said.getvalue()


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
    def test_every_kind_of_model_at_a_small_size(self):
        for model in ("gemma2-tiny", "qwen3-tiny"):
            with self.subTest(model=model):
                code, records, printed = run_program(f"{model},batch=2,length=16", "--variants", "eager,tigon", "--rounds", "1", "--warmup", "0",
                                                          "--steps", "2")
                self.assertEqual(code, 0, printed)
                eager, tigon = (record for record in records if record["record"] == "training")
                self.assertLess(max(abs(a - b) for a, b in zip(eager["loss"], tigon["loss"])), 5e-3)
                self.assertRegex(tigon["what"], r"^replaced: 1 loss.* left: 0$")

    def test_the_longest_sequence(self):
        code, records, printed = run_program("tiny,batch=1,length=8", "--longest", "35", "--variants", "eager,tigon", "--warmup", "0", "--steps", "1")
        self.assertEqual(code, 0, printed)
        made = [(r["variant"], r["length"], r["round"]) for r in records if r["record"] == "training"]
        self.assertEqual(made, [(variant, length, 0) for length in (8, 16, 32) for variant in ("eager", "tigon")])
        self.assertIn("longest T from tiny, B=1, T=8: Hugging Face 32, Tigon 32", printed)

    @unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
    def test_variants_train_the_same_model(self):
        code, records, printed = run_program("tiny,batch=2,length=16", "--variants", "eager,tigon_cheap,liger", "--rounds", "2", "--warmup", "1",
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

    def test_a_process_that_hangs_is_ended(self):
        process = turns.Process("eager", 1, limit_s=60)
        process.hello()
        process._limit_s = 1
        process._process.send_signal(signal.SIGSTOP)
        found = list(turns.in_turns([process], [case.parse("tiny,batch=1,length=8")], 2, {"warmup": 0, "steps": 1}))
        self.assertEqual([(number, answer["verdict"]) for _, _, number, answer in found], [(0, "timeout")])
        self.assertEqual(found[0][3]["reason"], "no answer within 1 s; its process was ended")
        process.close()

    def test_what_is_out_of_memory_is_asked_for_nothing_longer(self):
        asked = []

        class Limited:
            def __init__(self, variant, most):
                self.variant, self.most = variant, most

            def turn(self, request):
                length = case.parse(request["case"]).length
                asked.append((self.variant, length))
                return {"verdict": "passed" if length <= self.most else "oom", "loss": [1.0]}

        found = list(turns.longest([Limited("eager", 8), Limited("tigon", 16), Limited("liger", 99)], [case.parse("tiny,length=8,only=eager/tigon")], 999, {}))
        self.assertEqual(asked, [("eager", 8), ("tigon", 8), ("eager", 16), ("tigon", 16), ("tigon", 32)])
        self.assertEqual([answer["verdict"] for _, _, _, answer in found], ["passed", "passed", "oom", "passed", "oom"])

    def test_a_patched_model_is_as_near_to_float32_as_an_unpatched_one(self):
        # Two steps from each of many starts: what a step rounds, before two trainings part.
        losses = {}
        for variant in ("float32", "eager", "tigon"):
            one = trained.Trained(case.parse("tiny,batch=2,length=32"), variant, 0)
            losses[variant] = []
            for one.seed in range(24):
                losses[variant] += one.turn(0, 0, 2)["loss"]
        theirs, ours = (sum((a - b)**2 for a, b in zip(losses[variant], losses["float32"]))**0.5 for variant in ("eager", "tigon"))
        self.assertGreater(theirs, 0)
        self.assertLessEqual(ours, 1.5 * theirs)
        with self.assertRaisesRegex(variants.Unavailable, "checkpointing"):
            trained.Trained(case.parse("tiny,checkpointing"), "float32", 0)

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
                               (["tiny", "--rounds", "0"], "1 or more"),
                               (["tiny", "--ranks", "0", "--layout", "fsdp2"], "--ranks must be 1 or more"),
                               (["tiny", "--ranks", "2"], "--ranks 2 needs --layout, fsdp2 or zero3"),
                               (["tiny", "--ranks", "2", "--layout", "foo"], "invalid choice: 'foo'"),
                               (["tiny", "--layout", "fsdp2"], "--layout needs --ranks"),
                               (["tiny", "--longest", "64"], "--longest is shorter"),
                               (["tiny,only=liger", "--variants", "eager"], "liger is none of --variants")):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
                program.arguments(words)
            self.assertIn(message, said.getvalue())
            self.assertEqual(ended.exception.code, 2)


class VariantsTest(unittest.TestCase):
    def test_what_is_missing_is_said(self):
        if torch.cuda.is_available():
            self.skipTest("there is a GPU")
        with self.assertRaisesRegex(variants.Unavailable, "need a GPU"):
            variants.liger(None)


if __name__ == "__main__":
    unittest.main()
