# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_peers NAME serves one peer; tigon bench --peers starts it."""
import sys

from .serve import main

sys.exit(main(sys.argv[1]))
