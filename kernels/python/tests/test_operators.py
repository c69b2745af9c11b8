# SPDX-License-Identifier: Apache-2.0
"""Every operator of every dtype passes torch's own checks, and is what the library says of it."""
import unittest

import random_calls
import torch
from tigon import _native
from tigon._gradients import ops_with_gradients
from tigon._torch import operator, pass_of

DTYPES = ("f32", "bf16", "f16")


class OperatorsTest(unittest.TestCase):
    def test_opcheck_of_every_pass_and_dtype(self):
        # Gradients for a `want` of results that no gradient is asked of are those of test_gradients.py.
        for name in random_calls.passes():
            with_gradients = name.split(".")[1] == "forward" and name.split(".")[0] in ops_with_gradients()
            for dtype in DTYPES:
                for options in random_calls.options_of(pass_of(name, dtype)):
                    for optional in (False, True):
                        with self.subTest(name=name, dtype=dtype, options=options, optional=optional):
                            # Each combination of choices in one dtype, and the first in all.
                            if dtype != "f32" and options != next(random_calls.options_of(pass_of(name, dtype))):
                                continue
                            given = random_calls.arguments(name, dtype, options, optional, with_gradients)
                            torch.library.opcheck(operator(name).overload, tuple(given))

    def test_schemas_are_what_the_descriptions_say(self):
        for name in random_calls.passes():
            with self.subTest(name=name):
                said, schema = pass_of(name), operator(name).overload._schema
                names = [t.name for t in said.arguments] + [o.name for o in said.options] + (["want"] if said.wanted else [])
                self.assertEqual([a.name for a in schema.arguments], names)
                self.assertEqual([r.name for r in schema.returns], [r.name for r in said.results])

    def test_every_op_with_a_pass_for_gradients_has_gradients(self):
        names = _native.host().names
        ranks = {name.split(".")[0] for name in names if name.endswith(".statistics")}  # their forward is several passes: tigon.ops has it
        self.assertEqual(set(ops_with_gradients()), {name.split(".")[0] for name in names} - ranks)

    def test_a_result_that_is_not_wanted_is_empty(self):
        given = random_calls.arguments("cross_entropy.forward", "f32", (-100, 0.0, 0.0, 0.0, 0), False)
        without = operator("cross_entropy.forward").overload(*given[:-1], 0)
        self.assertEqual([r.numel() for r in without], [1, 6, 0, 0, 0])


if __name__ == "__main__":
    unittest.main()
