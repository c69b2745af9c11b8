# SPDX-License-Identifier: Apache-2.0
"""The frame of every command: its argument parser, one-line errors, exit codes."""
import argparse
import os
import sys

from .errors import DataError, InfrastructureError, UsageError

EXIT_OK, EXIT_WRONG, EXIT_USAGE, EXIT_SLOWER, EXIT_NOTHING, EXIT_INFRASTRUCTURE = range(6)
EXIT_INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """An ArgumentParser of `./tigon NAME` whose errors are one line. `examples` become the end of --help."""

    def __init__(self, name, description, examples):
        lines = "\n".join(f"  ./tigon {name} {example}" for example in examples)
        super().__init__(prog=f"./tigon {name}", description=description, epilog=f"examples:\n{lines}",
                         formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False)

    def parse_args(self, words=None, namespace=None):
        """As ArgumentParser, but `--filter -x` takes -x as its value, as the rest of tigon does."""
        joined, rest = [], list(words or [])
        while rest:
            word = rest.pop(0)
            joined.append(f"{word}={rest.pop(0)}" if word in ("--filter", "--exclude") and rest else word)
        return super().parse_args(joined, namespace)

    def error(self, message):
        raise UsageError(f"{message}; see {self.prog} --help")


def say(name, text):
    """A line about the command itself, on stderr: stdout is for results."""
    print(f"tigon {name}: {text}", file=sys.stderr)


def run(name, body, argv):
    """body(argv) -> exit code (None: 0), with the errors that a person can do something about as one line each."""
    code, text = EXIT_OK, ""
    try:
        code = body(argv) or EXIT_OK
        sys.stdout.flush()
    except UsageError as error:
        code, text = EXIT_USAGE, str(error)
    except DataError as error:
        code, text = EXIT_NOTHING, str(error)
    except InfrastructureError as error:
        code, text = EXIT_INFRASTRUCTURE, str(error)
    except BrokenPipeError:  # the reader of a pipe has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        code, text = EXIT_INFRASTRUCTURE, f"{error.filename}: {error.strerror}" if error.filename else str(error)
    except MemoryError:
        code, text = EXIT_INFRASTRUCTURE, "out of memory"
    except KeyboardInterrupt:
        code, text = EXIT_INTERRUPTED, "interrupted"
    if text:
        say(name, " ".join(text.split("\n")))
    return code
