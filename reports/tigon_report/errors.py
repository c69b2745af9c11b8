# SPDX-License-Identifier: Apache-2.0
"""The errors that a command turns into one line and an exit code."""


class UsageError(Exception):
    """The command line asks for something that cannot be: exit code 2."""


class DataError(Exception):
    """Records that are missing, damaged or contradict each other: exit code 4. Says what, where and what is right."""


class InfrastructureError(Exception):
    """Something outside the records fails, e.g. a database that cannot be reached: exit code 5."""
