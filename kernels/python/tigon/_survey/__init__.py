# SPDX-License-Identifier: Apache-2.0
"""python -m tigon.survey: is every causal language model of transformers, patched, what it was?

tiny.py      a small model of a family, from the family's default config
steps.py     a training step, and how far two of them are apart
family.py    one family: patched, compared, unpatched
"""
