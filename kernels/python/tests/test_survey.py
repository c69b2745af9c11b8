# SPDX-License-Identifier: Apache-2.0
"""tigon.survey: a family is the same, different or not tried, and the exit code says whether one is different."""
import contextlib
import importlib.util
import io
import unittest
from unittest import mock

import torch
from tigon import survey
from tigon._patch import become
from tigon._survey import family

HAS_TRANSFORMERS = importlib.util.find_spec("transformers") is not None


def run(*arguments):
    """The exit code and what was printed."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = survey.main(list(arguments))
    return code, printed.getvalue().splitlines()


@unittest.skipUnless(HAS_TRANSFORMERS, "transformers is not installed")
class SurveyTest(unittest.TestCase):
    def test_the_table(self):
        code, lines = run("llama", "gpt2")
        self.assertEqual(code, 0, lines)
        self.assertRegex(lines[1], r"^llama +5 +2 +- +2 +1 +\d\.\de-0[678] +[01]\.\d\d  same$")
        self.assertRegex(lines[2], r"^gpt2 +5 +- +- +- +1 +\d\.\de-0[678] +[01]\.\d\d  same$")
        self.assertEqual(lines[-2], "2 families: 2 the same, 0 different, 0 not tried")

    def test_families_are_drawn_by_the_seed(self):
        with mock.patch.object(survey, "results", lambda chosen: [family.Result(name, family.SAME) for name in chosen]):
            drawn = [run("--families", "3", "--seed", seed)[1][1:4] for seed in ("1", "1", "2")]
        self.assertEqual(drawn[0], drawn[1])
        self.assertNotEqual(drawn[0], drawn[2])

    def test_a_family_that_is_different_fails(self):
        own = family.patch

        def patch(model):
            report = own(model)
            become.restore(model.model.norm)
            become.become(model.model.norm, lambda self, x: become.original(self).forward(self, x) * 1.001, None)
            return report
        with mock.patch.object(family, "patch", patch):
            code, lines = run("llama")
        self.assertEqual(code, 1)
        self.assertRegex(lines[1], "DIFFERENT: .* differs by ")

    def test_unpatched_it_must_be_what_it_was(self):
        with mock.patch.object(family, "unpatch", lambda model: None):
            self.assertEqual(family.survey("llama").why, "unpatched it is not what it was")

    def test_a_patched_model_that_fails_is_different(self):
        with mock.patch.object(family, "patch", mock.Mock(side_effect=ValueError("no"))):
            self.assertEqual(family.survey("llama"), family.Result("llama", family.DIFFERENT, "ValueError: no"))

    def test_what_is_worse_in_bf16_only_is_different(self):
        own = family.patch

        def patch(model):
            report = own(model)
            if model.dtype == torch.bfloat16:
                model.model.norm.weight.data *= 1.1
            return report
        with mock.patch.object(family, "patch", patch):
            self.assertRegex(family.survey("llama").why, "in bf16 its gradients are .* times as wrong as the model's own")

    def test_what_does_not_run_is_not_tried(self):
        self.assertEqual(family.survey("nothing").verdict, family.NOT_TRIED)
        with mock.patch.object(survey, "SECONDS", 0):
            code, lines = run("llama")
        self.assertEqual(code, 0)
        self.assertTrue(lines[1].endswith("not tried: takes more than 0 s"), lines)
        with self.assertRaises(SystemExit), contextlib.redirect_stderr(io.StringIO()) as said:
            run("nothing")
        self.assertIn("transformers has no causal language model nothing", said.getvalue())


if __name__ == "__main__":
    unittest.main()
