# SPDX-License-Identifier: Apache-2.0
"""The performance gates of Tigon: paired runs of two programs on a GPU, and static facts without one."""
