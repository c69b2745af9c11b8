# SPDX-License-Identifier: Apache-2.0
"""Lines and branches of the kernels' sources that cases take on the host executor."""
