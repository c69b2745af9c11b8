# SPDX-License-Identifier: Apache-2.0
"""Why a candidate is not judged right. Each text is one line."""


class BadProblem(ValueError):
    """The reference is none."""


class Failed(Exception):
    """The candidate did not answer: it is wrong."""


class Raised(Failed):
    """The candidate raised an exception, and goes on."""


class NotJudged(Exception):
    """It cannot be said whether the candidate is right: something is missing here."""


class Late(NotJudged):
    """No answer in time."""
