# SPDX-License-Identifier: Apache-2.0
"""Source trees of commits, their builds, and facts of the kernels in them: for the gate, `try` and `reproduce`."""
