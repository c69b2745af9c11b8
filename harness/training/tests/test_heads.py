# SPDX-License-Identifier: Apache-2.0
"""tigon_heads on a CPU: that every way gives the loss and gradients of the whole head, and what is recorded. Run by ./tigon test --python."""
import contextlib
import io
import unittest

import torch
from test_training import run_program
from tigon_heads import __main__ as program
from tigon_heads import case, exact, losses
from tigon_report import schema


class CaseTest(unittest.TestCase):
    def test_texts(self):
        given = case.parse("V=1001,T=5,H=7")
        self.assertEqual((given, str(given)), (case.Case(5, 7, 1001), "T=5,H=7,V=1001"))

    def test_wrong_texts(self):
        for text in ("T=5,H=7", "T=5,H=7,V=0", "T=5,H=7,V=x", "T=5,H=7,V=3,W=1"):
            with self.assertRaisesRegex(ValueError, "a case is T=N,H=N,V=N"):
                case.parse(text)


class ExactTest(unittest.TestCase):
    def test_an_error_is_relative(self):
        self.assertAlmostEqual(exact.error(torch.tensor([3.0, 4.5]), torch.tensor([3.0, 4.0])), 0.1)


@unittest.skipIf(torch.cuda.is_available(), "there is a GPU")
class ProgramTest(unittest.TestCase):
    def test_every_way_is_near_to_float32(self):
        code, records, printed = run_program("T=65,H=32,V=1001", "T=16,H=8,V=6", "--ranks", "3", "--steps", "2", "--rounds", "2", main=program.main)
        self.assertEqual(code, 0, printed)
        self.assertEqual([found for record in records if (found := schema.violation(record))], [])
        made = [record for record in records if record["record"] == "head_loss"]
        ways = [name for name in losses.LOSSES if name != "loss_parallel"]
        self.assertEqual([r["variant"] for r in made if r["classes"] == 1001], [*losses.LOSSES, *ways, "products"])
        self.assertEqual([r["variant"] for r in made if r["classes"] == 6], [*losses.LOSSES, *losses.LOSSES, "products"])
        for record in made:
            if record["variant"] == "loss_parallel" and record["classes"] == 1001:
                self.assertEqual((record["verdict"], record["reason"]), ("unsupported", "its shards have as many classes each"))
                continue
            self.assertEqual((record["verdict"], record["ranks"], record["executor"]), ("passed", 3, "fast"))
            if record["variant"] != "products":
                self.assertLess(record["loss_error"], 1e-3, record)
                self.assertLess(max(record["dx_error"], record["dw_error"]), 1e-2, record)
        self.assertIn("its times are no speed", printed)

    def test_wrong_arguments(self):
        for arguments, message in ((("T=5,H=7,V=3", "--ranks", "0"), "must be 1 or more"), (("T=5,H=7,V=3", "--ranks", "4"), "fewer classes than ranks"),
                                   (("T=5,H=7", "--ranks", "2"), "a case is"), (("T=5,H=7,V=3", "--ranks", "2", "--ways", "apex"), "no way apex")):
            with self.assertRaises(SystemExit) as ended, contextlib.redirect_stderr(io.StringIO()) as said:
                program.main(list(arguments))
            self.assertEqual(ended.exception.code, 2)
            self.assertIn(message, said.getvalue())


if __name__ == "__main__":
    unittest.main()
