# SPDX-License-Identifier: Apache-2.0
# A peer for tests whose package is not there.
import no_such_package  # noqa: F401

PACKAGE = "no_such_package"
