#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher ./tigon with stand-ins for what it starts: cmake, ninja, ctest, apt-get and the built program."""
import fcntl
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REAL = ("bash", "dirname", "tee", "grep", "sed", "mkdir", "flock", "nproc", "id", "cat", "head", "rm", "touch", "chmod", "git", "tail", "sleep")
CMAKE = """#!/bin/bash
echo "cmake $*" >> "$CALLS"
case "$1" in
  --preset) mkdir -p build/$2; touch build/$2/build.ninja; exit 0 ;;
esac
sleep "${FIRST:-0}"; echo "[0/1] Re-running CMake..."
for i in 1 2 3; do [ $i = 1 ] || sleep "${STEP:-0}"; echo "[$i/${OF:-3}] Building CXX object $i.o"; done
[ -z "${BROKEN:-}" ] || { printf '%b' "$BROKEN"; exit 1; }
mkdir -p build/host/bin
printf '#!/bin/bash\\necho "program $*"\\n' > build/host/bin/tigon
chmod +x build/host/bin/tigon
"""
NINJA = """#!/bin/bash
for i in 1 2 3; do echo "[$i/3] Building CXX object $i.o"; done
"""
CTEST = """#!/bin/bash
while [ $# -gt 0 ]; do [ "$1" != --output-junit ] || xml=$2; shift; done
echo '<testsuite' > "$xml"; echo ' tests="3"' >> "$xml"; echo ' failures="1"' >> "$xml"; echo ' skipped="1"' >> "$xml"
echo "    Start  1: one"
echo "1/3 Test  #1: one ....   Passed    0.01 sec"
echo "2/3 Test  #2: two ....***Failed    0.01 sec"
echo "two says why"
echo "3/3 Test  #3: three ....***Skipped   0.01 sec"
exit 8
"""
SAYS = '#!/bin/bash\necho "{} $*" >> "$CALLS"\nexit {}\n'


class LauncherTest(unittest.TestCase):
    """A copy of the launcher in a tree of its own, with nothing in PATH but stand-ins and what a shell needs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        for file in ("tigon", "CMakeLists.txt", "harness/cli/commands.inc", "reports/tigon_report/__main__.py"):
            (self.root / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / file, self.root / file)
        self.bin = pathlib.Path(folder.name) / "bin"
        self.bin.mkdir()
        self.calls = pathlib.Path(folder.name) / "calls"
        for name in REAL:
            (self.bin / name).symlink_to(shutil.which(name))
        for name, text in {"cmake": CMAKE, "ninja": NINJA, "ctest": CTEST, "g++": "#!/bin/bash\n", "python3": SAYS.format("python3", 0),
                           "apt-get": SAYS.format("apt-get", 1), "sudo": SAYS.format("sudo", 1)}.items():
            self.program(name, text)

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def environment(self, **more):
        return {"PATH": str(self.bin), "CALLS": str(self.calls), "TIGON_DEVICE": "host", "CUDA_HOME": "/none", **more}

    def run_tigon(self, *words, **more):
        done = subprocess.run(["bash", self.root / "tigon", *words], env=self.environment(**more), capture_output=True, text=True,
                              check=False, cwd=self.root, stdin=subprocess.DEVNULL)
        self.called = self.calls.read_text() if self.calls.exists() else ""
        return done.returncode, done.stdout, done.stderr

    def test_builds_once_and_says_what(self):
        code, out, err = self.run_tigon("list", "--json")
        self.assertEqual((code, out), (0, "program list --json\n"))
        self.assertIn("tigon: configuring host\n", err)
        self.assertIn("tigon: building host: 1 of 3\n", err)
        self.assertEqual(self.called.count("cmake --preset"), 1)
        self.run_tigon("list")
        self.assertEqual(self.called.count("cmake --preset"), 1)

    def test_a_long_build_shows_steps_and_time_left(self):
        _, _, err = self.run_tigon("list", STEP="5.2")
        self.assertRegex(err, r"tigon: building host: [23] of 3, about \d+ s left\n")

    def test_the_first_of_many_steps_say_no_time_left(self):
        _, _, err = self.run_tigon("list", STEP="5.2", OF="100")
        self.assertRegex(err, r"tigon: building host: [23] of 100\n")

    def test_a_build_is_named_before_its_first_step_is_done(self):
        code, _, err = self.run_tigon("list", FIRST="4.5")
        self.assertEqual(code, 0, err)
        self.assertEqual(err.count("tigon: building host\n"), 1, err)

    def test_a_broken_build(self):
        code, _, err = self.run_tigon("list", BROKEN="x.cpp:1: error: no such thing\\n")
        self.assertEqual(code, 5)
        self.assertIn("x.cpp:1: error: no such thing", err)

    def test_a_failed_step_is_shown_by_what_it_printed(self):
        printed = [f"FAILED: x.o {'y.o ' * 100}", "c++ x.cpp", "In file included from a.h", "a.h:3: what is wrong", "[4/5] c++ error.cpp",
                   "FAILED: z.o", "c++ z.cpp", "z.cpp:1: wrong, too", "ninja: build stopped"]
        code, _, err = self.run_tigon("list", BROKEN="\\n".join(printed) + "\\n")
        self.assertEqual(code, 5)
        shown = [line for line in err.splitlines() if not line.startswith("tigon: ")]
        self.assertEqual(shown, [printed[0][:160], printed[3], printed[5], printed[7]])

    def test_tests_that_pass_are_not_printed(self):
        code, out, err = self.run_tigon("test", STEP="2.6")
        self.assertEqual(code, 1)
        self.assertNotIn("Passed", out)
        self.assertIn("two says why", out)
        self.assertIn("***Failed", out)
        self.assertIn("***Skipped", out)
        self.assertIn("1 passed, 1 failed, 1 skipped", out)
        self.assertRegex(err, r"tigon: took: building host \d+ s; testing host \d+ s; together \d+ s\n")

    def test_the_python_package(self):
        code, _, err = self.run_tigon("test", "--python")
        self.assertEqual(code, 0, err)
        self.assertIn("testing the Python package with", err)
        steps = ("--target tigon_shared", "-DTIGON_PYTHON=ON", "--target tigon_python", "-m unittest discover")
        self.assertEqual(sorted(steps, key=self.called.index), list(steps))

    def test_the_python_package_without_torch(self):
        self.program("python3", SAYS.format("python3", 1))
        for words, installs in ((["test", "--python"], True), (["--no-install", "test", "--python"], False)):
            code, _, err = self.run_tigon(*words)
            self.assertEqual((code, "making a Python environment in build/python-torch" in err), (5, installs))
            self.assertIn("no python3 here has torch 2.10 or later, numpy and mypy, so nothing of the Python package was tested", err)
            self.assertNotIn("unittest", self.called)

    def test_faults_in_a_source_build_no_kernels(self):
        for words in (("--faults", "my.faults", "--in", "my.cu"), ("--in=my.cu", "--faults=my.faults")):
            code, out, err = self.run_tigon("mutants", *words)
            self.assertEqual((code, out), (0, f"program mutants {' '.join(words)}\n"), err)
            self.assertNotIn("tigon-own-mutants", self.called)

    def test_jobs_that_are_no_number(self):
        for jobs in ("abc", "0", "-1", "2.5"):
            code, _, err = self.run_tigon("list", TIGON_JOBS=jobs)
            self.assertEqual((code, len(err.splitlines())), (5, 1))
            self.assertIn(f"TIGON_JOBS is '{jobs}'", err)

    def test_version_help_and_doctor_need_no_build(self):
        (self.bin / "cmake").unlink()
        code, out, _ = self.run_tigon("--version", TIGON_COMMIT="0123456789abcdef")
        version = re.search(r"project\(tigon VERSION ([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        self.assertEqual((code, out), (0, f"tigon {version} (0123456789ab)\n"))
        self.assertEqual(self.run_tigon("--help")[0], 0)
        code, out, _ = self.run_tigon("doctor")
        self.assertEqual(code, 5)
        self.assertRegex(out, r"missing  g\+\+, cmake, ninja +sudo apt-get install")
        self.assertEqual(self.run_tigon("doctor", "--build")[0], 5)

    def test_doctor_asks_the_program_that_is_there(self):
        self.run_tigon("list")
        self.calls.unlink()
        code, out, _ = self.run_tigon("doctor", "--build")
        self.assertEqual((code, out), (0, "program doctor --build\n"))
        self.assertNotIn("cmake", self.called)

    def test_only_run_test_and_ci_install(self):
        (self.bin / "cmake").unlink()
        for words, installs in ((["run"], True), (["test"], True), (["list"], False), (["run", "--no-install"], False),
                                (["--no-install", "test"], False)):
            with self.subTest(words):
                self.calls.unlink(missing_ok=True)
                code, _, err = self.run_tigon(*words)
                self.assertEqual(code, 5)
                self.assertIn("install them with: sudo apt-get install g++ cmake", err)
                self.assertEqual("apt-get update" in self.called or "sudo -n" in self.called, installs)
                self.assertEqual("installing with apt" in err, installs and os.getuid() == 0)
        self.calls.unlink(missing_ok=True)
        self.run_tigon("run", TIGON_INSTALL="no")
        self.assertEqual(self.called, "")

    def test_two_at_once_build_one_after_the_other(self):
        (self.root / "build/host").mkdir(parents=True)
        with open(self.root / "build/host/.lock", "w", encoding="utf-8") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            second = subprocess.Popen(["bash", self.root / "tigon", "list"], env=self.environment(), stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True, cwd=self.root)
            self.assertIn("waiting for another ./tigon", second.stderr.readline())
            time.sleep(0.2)
            self.assertFalse(self.calls.exists())
        out, _ = second.communicate(timeout=60)
        self.assertEqual((second.returncode, out), (0, "program list\n"))

    def test_a_command_builds_what_it_starts(self):
        (self.root / "programs").write_text((self.root / "tigon").read_text().replace('\nmain "$@"', '\nprograms host "$@"'))
        base = ["tigon", "tigon-checked"]
        planted = [*base, "tigon-mutants", "judge_faults", "tigon-cheats"]
        for command, wanted in (
            ("check --quick", base),
            ("converge --quick", base),
            ("converge --all", [*base, "tigon-controls"]),
            ("converge --quick --all --out x", [*base, "tigon-controls"]),
            ("converge --controls", [*base, "tigon-controls"]),
            ("run", [*base, "tigon-mutants"]),
            ("run --tag a=b", [*base, "tigon-mutants"]),
            ("run --full", planted),
            ("run --stages check,mutants", [*base, "tigon-mutants"]),
            ("run --op rope --stages=check,report --full", base),
            ("mutants", planted),
            ("mutants --quick", planted),
            ("mutants --faults my.faults", [*base, "tigon-own-mutants"]),
            ("mutants --faults my.faults --in my.cu", [*base, "tigon_simt", "tigon_simt_checked", "tigon_gemm"]),
        ):
            with self.subTest(command):
                done = subprocess.run(["bash", self.root / "programs", *command.split()], env=self.environment(),
                                      capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.split(), wanted)

    def test_every_command_of_the_help_is_one(self):
        _, out, _ = self.run_tigon("--help")
        commands = set(re.findall(r"^  ([a-z-]+)  +\S|   ([a-z-]+)  +\S", out, re.M))
        for name in {a or b for a, b in commands}:
            _, _, err = self.run_tigon(name, "--no-install")
            self.assertNotIn("no command", err, name)
        code, _, err = self.run_tigon("nonsense")
        self.assertEqual((code, err), (2, "tigon: no command 'nonsense'; see ./tigon --help\n"))


if __name__ == "__main__":
    unittest.main()
