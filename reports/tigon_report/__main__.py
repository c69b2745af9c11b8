# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_report COMMAND [ARGUMENTS]: the commands of tigon that read records; `./tigon COMMAND` calls this.

Exit codes: 0 done, 1 wrong numbers, 2 usage, 3 slower, 4 data missing or damaged, 5 cannot read or write, 130 Ctrl-C.
"""
import importlib
import sys

from . import command

# Command -> (module with main(argv) -> exit code, what it does). A module is imported only when it is called, so that
# the commands on records work without matplotlib and jinja2.
COMMANDS = {
    "report": ("report", "the static report of one run"),
    "merge": ("merge", "records of several runs or shards as one file"),
    "index": ("index", "an SQLite or PostgreSQL database of records"),
    "import": ("importers", "records of other tools' results"),
    "export": ("exporters", "records in other tools' formats"),
    "compare": ("compare", "two runs, case by case"),
    "dashboard": ("dashboard", "a static site of a history of runs"),
    "figures": ("cited", "the measured figures of the pages, each from a record"),
    "simulate": ("simulate", "a seeded made-up history, for tests of what reads histories"),
}


def main(argv=None):
    words = sys.argv[1:] if argv is None else argv
    if not words or words[0] in ("-h", "--help"):
        print("./tigon COMMAND [ARGUMENTS], of")
        print("\n".join(f"  {name:<10} {text}" for name, (_, text) in COMMANDS.items()))
        return command.EXIT_OK if words else command.EXIT_USAGE
    name, rest = words[0], words[1:]
    if name not in COMMANDS:
        command.say(name, f"no such command; there are {', '.join(COMMANDS)}")
        return command.EXIT_USAGE
    module = importlib.import_module(f".{COMMANDS[name][0]}", __package__)
    return command.run(name, module.main, rest)


if __name__ == "__main__":
    sys.exit(main())
