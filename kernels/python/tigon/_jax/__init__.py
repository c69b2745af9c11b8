# SPDX-License-Identifier: Apache-2.0
"""The ops for JAX. Knows no op.

call.py       a pass as a custom call of XLA
gradients.py  an op with its gradients, as jax.custom_vjp
"""
