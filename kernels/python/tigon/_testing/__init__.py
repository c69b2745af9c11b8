# SPDX-License-Identifier: Apache-2.0
"""tigon.testing: the judge of Tigon for functions in Python, and a patched model against its unpatched twin.

program.py    where the judge is, a program, and what it says of a run
bridge.py     the judge's worker protocol, spoken by the process that has the function
function.py   somebody's function: arguments by name, results that fit
passes.py     the function as the passes of an op, gradients by autograd
report.py     what came of it
model.py      a patched model and its twin

compare.py    two functions, one of which says what is right
made.py       a call of a function, and what it made
oracle.py     what a reference says of inputs
tape.py       the reference's operations, to be done again in float64
rounding.py   what rounding may do to each of them
budget.py     the right results and a budget for each element
"""
