# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_peers NAME serves one peer; without a name it answers a list of names with those that are installed."""
import sys

import tigon_worker

from . import known, serve


def tell_installed():
    channel = tigon_worker.Channel()
    for names in channel.requests():
        channel.send([name for name in names if known.is_installed(name)])


sys.exit(serve.main(sys.argv[1]) if len(sys.argv) > 1 else tell_installed())
