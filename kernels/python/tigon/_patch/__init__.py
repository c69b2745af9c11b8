# SPDX-License-Identifier: Apache-2.0
"""tigon.patch: finds by behaviour what a model is made of, and puts Tigon's ops in its place. Knows no model.

report.py     what was replaced, what was left and why
become.py     a module gets another forward and gets its own back
stand_in.py   a module's own code over small tensors
twin.py       whether a patched module does what the module did: results and gradients
norm.py, mlp.py, experts.py, rotary.py, loss.py   what is tried in which modules
plain.py      tensors that the ops take
rate.py       how fast a device copies memory
recompute.py   results of ops that are made again in backward, not kept
small_model.py   a model's way from its body to its loss, over a small body
model.py      patch and unpatch
"""
