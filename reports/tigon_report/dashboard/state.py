# SPDX-License-Identifier: Apache-2.0
"""Which runs say how main is: complete runs of committed trees. All others are shown, and decide nothing.

A filtered run would hide what it left out, a plug-in or a changed tree is not main, and a killed run says half of it.
"""

COMMANDS = ("run", "check", "bench", "simulate")
# What does not change which cases run: options with a value, and flags. Any other word narrows or widens a run.
VALUES = (
    *("--out", "--json", "--junit", "--tag", "--resume", "--seed", "--timeout", "--jobs", "--save", "--samples"),
    *("--min-time", "--data", "--steps", "--device", "--days", "--cases"),
)
FLAGS = ("--full", "--verbose", "-v")


def _words(run):
    """(the command of a run, the words that choose among its cases)."""
    words, plain = list((run.header.get("command") or [])[1:]), []
    while words:
        word = words.pop(0)
        name, is_joined, _ = word.partition("=")
        if name in VALUES:
            del words[: 0 if is_joined else 1]
        elif name not in FLAGS:
            plain.append(word)
    command = next((word for word in plain if not word.startswith("-")), "")
    return command, [word for word in plain if word != command]


def partial(run):
    """Why a run that ends says nothing about the state of main, or ''."""
    command, choosing = _words(run)
    environment = run.header.get("environment") or {}
    if command not in COMMANDS:
        return f"{command or 'no command'}: not one of {', '.join(COMMANDS[:3])}"
    if choosing:
        return f"part of the cases: {' '.join(choosing)[:60]}"
    if run.header.get("shard") or environment.get("TIGON_FILTER") or environment.get("TIGON_EXCLUDE"):
        return "part of the cases"
    if run.dirty or run.commit == "unknown":
        return "not a committed tree"
    return ""


def why_not(run):
    """Why a run says nothing about the state of main, or ''."""
    if partial(run):
        return partial(run)
    if run.end is None or run.end.get("interrupted"):
        return "did not end"
    return ""


def counts(run):
    return not why_not(run)


def scope(run):
    """What runs of the same kind of work share."""
    return run.device, _words(run)[0], "--full" in (run.header.get("command") or [])


def newest(store):
    """The runs that make up the state of main: of each device the newest of each scope, back to its newest full run."""
    found, whole = {}, set()
    for run in reversed(store.runs):
        if counts(run) and run.device not in whole:
            found.setdefault(scope(run), run)
            if scope(run)[1:] == ("run", True):
                whole.add(run.device)
    return list(found.values())
