# SPDX-License-Identifier: Apache-2.0
"""What the long tests install: Debian packages where apt may be used, Python packages in an environment of the test."""
import os
import pathlib
import shutil
import subprocess
import sys

SKIP = 77  # the exit code of a test that was skipped, for ctest


def skip(reason):
    print(f"skipped: {reason}")
    sys.exit(SKIP)


def apt(*packages):
    """True when the packages are there afterwards; False where apt may not be used or does not know them."""
    prefix = [] if os.getuid() == 0 else ["sudo", "-n"]
    if not shutil.which("apt-get") or (prefix and subprocess.run([*prefix, "true"], capture_output=True).returncode):
        return False
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (["update", "-qq"], ["install", "-y", "-qq", "--no-install-recommends", *packages]):
        done = subprocess.run([*prefix, "apt-get", *words], env=environment, stdin=subprocess.DEVNULL,
                              capture_output=True)
    return done.returncode == 0


def environment(folder, *packages):
    """The interpreter of a new virtual environment with these packages, or None when pip cannot get them."""
    folder = pathlib.Path(folder)
    for words in ([sys.executable, "-m", "venv", str(folder)], [str(folder / "bin/pip"), "install", "-q", *packages]):
        if subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL).returncode:
            return None
    return folder / "bin/python"
