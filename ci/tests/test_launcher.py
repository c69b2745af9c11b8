#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of the launcher ./tigon with stand-ins for what it starts: cmake, ninja, ctest, apt-get and the built program."""
import concurrent.futures
import fcntl
import multiprocessing
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
REAL = ("bash", "basename", "dirname", "tee", "grep", "sed", "mkdir", "flock", "nproc", "id", "cat", "head", "rm", "touch", "chmod", "git", "tail", "sleep",
        "sh", "env")
CMAKE = """#!/bin/bash
echo "cmake $*" >> "$CALLS"
case "$1" in
  --preset) mkdir -p build/$2; touch build/$2/build.ninja; exit 0 ;;
esac
sleep "${FIRST:-0}"; echo "[0/1] Re-running CMake..."
for i in 1 2 3; do [ $i = 1 ] || sleep "${STEP:-0}"; echo "[$i/${OF:-3}] Building CXX object $i.o"; done
[ -z "${BROKEN:-}" ] || { printf '%b' "$BROKEN"; exit 1; }
mkdir -p build/host/bin
printf '#!/bin/bash\\necho "program $*"\\necho "report ${TIGON_PYTHON:-}, peers ${TIGON_PEER_PYTHON:-}" >> "$CALLS"\\n' > build/host/bin/tigon
echo 'sh -c "${TIGON_LATER_BUILD:-}" >/dev/null' >> build/host/bin/tigon
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
# Passes for an interpreter that has these packages alone.
HAS = """#!/bin/bash
case "$*" in *matplotlib*) wanted=report ;; *find_spec*) wanted=torch ;; *) exit 0 ;; esac
[[ " {} " == *" $wanted "* ]]
"""
SAYS = '#!/bin/bash\necho "{} $*" >> "$CALLS"\nexit {}\n'


class LauncherTest(unittest.TestCase):
    """A copy of the launcher in a tree of its own, with nothing in PATH but stand-ins and what a shell needs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.copy("tigon", "CMakeLists.txt", "harness/cli/commands.inc", "reports/tigon_report/__main__.py")
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

    def copy(self, *files):
        for file in files:
            self.copy_as(file, file)

    def copy_as(self, file, name):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, self.root / name)

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

    def test_sanitizers_have_a_build_and_tests_of_their_own(self):
        code, out, err = self.run_tigon("test", "--sanitize")
        self.assertEqual(code, 1)  # a stand-in of a test fails
        self.assertIn("two says why", out)
        self.assertIn("1 passed, 1 failed, 1 skipped", out)
        self.assertRegex(err, r"tigon: took: testing host-sanitize \d+ s; together \d+ s\n")
        self.assertIn("building host-sanitize", err)
        self.assertNotIn("building host:", err)

    def test_sanitizers_are_of_the_host_where_a_gpu_is(self):
        self.program("nvcc", "#!/bin/bash\n")
        self.program("nvidia-smi", "#!/bin/bash\necho GPU 0\n")
        _, out, err = self.run_tigon("test", "--sanitize", TIGON_DEVICE="auto")
        self.assertIn("1 passed, 1 failed, 1 skipped", out, err)
        self.assertIn("building host-sanitize", err)
        code, _, err = self.run_tigon("test", "--sanitize", TIGON_DEVICE="cuda")
        self.assertEqual((code, err), (2, "tigon: test: --sanitize is for the host executor; a GPU has ci/sanitize.sh\n"))

    def test_the_python_package(self):
        code, _, err = self.run_tigon("test", "--python")
        self.assertEqual(code, 0, err)
        self.assertIn("testing the Python package with", err)
        steps = ("--target tigon_shared", "-DTIGON_PYTHON=ON", "--target tigon_python", "-m unittest discover")
        self.assertEqual(sorted(steps, key=self.called.index), list(steps))

    def test_files_of_python_tests_run_to_the_end_and_what_fails_is_shown(self):
        for name in "abc":
            self.copy_as("CMakeLists.txt", f"kernels/python/tests/test_{name}.py")
        self.program("python3", '#!/bin/bash\ncase "$*" in *test_b.py) echo "it broke"; exit 1 ;; *unittest*) echo "Ran 2 tests in 1s"; echo OK ;; esac\n')
        for jobs in "1", "2", "9":
            with self.subTest(jobs):
                code, out, err = self.run_tigon("test", "--python", TIGON_JOBS=jobs)
                self.assertEqual((code, out), (1, "it broke\nkernels/python/tests/test_b.py failed\n"))
                for name in "ac":
                    self.assertIn(f"tigon: kernels/python/tests/test_{name}.py: Ran 2 tests in 1s, OK\n", err)

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

    def test_no_install_reaches_the_stages_of_ci(self):
        (self.bin / "cmake").unlink()
        self.copy("ci/push.sh", "ci/stages.sh", "ci/ruff.sh")
        for name in ("clang-format-14", "clang-tidy-14"):
            self.program(name, SAYS.format(name, 0))
        for words, variables, installs in ((["ci"], {}, True), (["ci", "--no-install"], {}, False), (["ci"], {"TIGON_INSTALL": "no"}, False)):
            with self.subTest(words, **variables):
                self.calls.unlink(missing_ok=True)
                code, out, err = self.run_tigon(*words, TIGON_STYLE="ci/ruff.sh", GITHUB_STEP_SUMMARY="/dev/null", **variables)
                self.assertEqual(code, 5, err)
                self.assertIn("== test: ./tigon --device host test\n", out)
                self.assertIn("install them with: sudo apt-get install g++ cmake", err)
                self.assertEqual("apt-get" in self.called or "sudo" in self.called, installs, self.called)
                self.assertEqual("-m venv build/ci-lint" in self.called, installs)
                self.assertIn("ruff: installing it with pip into build/ci-lint\n" if installs else
                              "ruff: not installed; install it with: pip install ruff\n", err)

    def test_an_installation_shows_that_it_goes_on(self):
        (self.bin / "cmake").unlink()
        self.program("apt-get", '#!/bin/bash\necho "apt-get $*" >> "$CALLS"\n[ "$1" = update ] && sleep 5.5\necho "no such package"; exit 1\n')
        self.program("sudo", '#!/bin/bash\n[ "$1" != -n ] || shift\n"$@"\n')
        code, _, err = self.run_tigon("run")
        self.assertEqual(code, 5)
        self.assertRegex(err, r"tigon: installing with apt: g\+\+ cmake .*\ntigon: installing with apt: [5-6] s\nno such package\n")
        self.assertIn("apt-get install -y", self.called)
        self.assertIn("no such package\n", (self.root / "build/apt.log").read_text())

    @unittest.skipUnless(os.getuid() == 0, "apt is for root here: sudo is a stand-in that refuses")
    def test_run_builds_while_the_python_of_the_report_is_installed(self):
        launcher = self.root / "tigon"
        launcher.write_text(launcher.read_text().replace(" /usr/bin/python3 ", " "))  # that of this machine may have all
        self.program("python3", '#!/bin/bash\ncase "$*" in *matplotlib*) [ -e "$CALLS.there" ] ;; esac\n')
        self.program("apt-get", '#!/bin/bash\n[ "$1" = update ] && exit\nsleep 1; touch "$CALLS.there"; echo installed >> "$CALLS"\n')
        (self.root / "build/host").mkdir(parents=True)
        (self.root / "build/host/build.ninja").touch()  # its libraries were found
        code, out, err = self.run_tigon("run")
        self.assertEqual((code, out), (0, "program run\n"), err)
        self.assertIn("installing with apt: python3 python3-matplotlib", err)
        self.assertLess(self.called.index("cmake --build"), self.called.index("installed"))
        self.assertLess(self.called.index("installed"), self.called.index("report "))
        (self.root.parent / "calls.there").unlink()
        self.calls.unlink()
        code, out, err = self.run_tigon("--no-install", "run")  # nothing is built for what would fail
        self.assertEqual((code, self.calls.exists()), (5, False), err)
        self.assertIn("install them with: sudo apt-get install python3", err)

    def test_help_needs_no_build(self):
        (self.bin / "cmake").unlink()
        self.program("python3", SAYS.format("python3", 1))
        for name, text in self.helped().items():
            for word in ("--help", "-h"):
                code, out, err = self.run_tigon(name, "--op", "x", word)
                self.assertEqual((code, err), (0, ""), name)
                if name == "ci":
                    continue  # it has a text of its own
                said, _, details = out.partition("details: ")
                self.assertEqual(" ".join(said.split()), f"{name} {text}")
                self.assertRegex(details, rf"^\./tigon {name} --help once .+ \(\./tigon (run|faults) \w+ it\)\n$" if name != "test" else "^$")
        self.assertEqual([line for line in self.called.splitlines() if not line.startswith("python3 ")], [])
        self.assertEqual(self.run_tigon("run", "--help")[1].splitlines()[-1], "details: ./tigon run --help once it is built (./tigon run builds it)")
        self.assertFalse((self.root / "build").exists())
        self.assertEqual(self.run_tigon("nonsense", "--help")[0], 2)

    def test_help_is_answered_by_what_is_there(self):
        self.run_tigon("list")
        (self.root / "build/host/bin/world_faults").write_text("#!/bin/bash\necho faults $*\n")
        (self.root / "build/host/bin/world_faults").chmod(0o755)
        self.program("python3", '#!/bin/bash\necho "python3 ${*#"$PWD"/}"\n')
        for name, wanted in (("check", "program check --help"), ("debug", "program debug --help"), ("faults", "faults --help"),
                             ("compare", "python3 -m tigon_report compare --help"), ("gate", "python3 -m tigon_gate --help"),
                             ("try", "python3 -m tigon_try --help"), ("judge", "python3 -m tigon.judge --help"),
                             ("reproduce", "python3 -m tigon_try.reproduce --help"),
                             ("new-op", "python3 -m new_op --help")):
            self.calls.unlink(missing_ok=True)
            for device in ("host", "cuda"):
                code, out, err = self.run_tigon(name, "--help", TIGON_DEVICE=device)
                self.assertEqual((code, out, err), (0, f"{wanted}\n", ""))
            self.assertNotIn("cmake", self.called)
        (self.root / "build/host/bin/tigon").write_text("#!/bin/bash\nexit 2\n")  # older than the command
        self.assertIn("  check      correctness", self.run_tigon("check", "--help")[1])

    def test_an_unknown_option_is_refused(self):
        for words in (["--foo"], ["-x", "check"]):
            code, out, err = self.run_tigon(*words)
            self.assertEqual((code, out, err), (2, "", f"tigon: no option '{words[0]}'; see ./tigon --help\n"))
        self.assertEqual(self.called, "")

    def test_the_peers_have_an_interpreter_of_their_own(self):
        chosen, python3 = str(self.bin / "chosen"), str(self.bin / "python3")
        for of_chosen, of_python3, variables, report, peers in (
            ("torch", "report", {}, python3, chosen),  # an environment with torch and without what the report needs
            ("report", "torch", {}, chosen, python3),
            ("report torch", "report torch", {}, chosen, chosen),
            ("report", "report", {}, chosen, ""),
            ("report torch", "report", {"TIGON_PEER_PYTHON": "/theirs"}, chosen, "/theirs"),
        ):
            self.program("chosen", HAS.format(of_chosen))
            self.program("python3", HAS.format(of_python3))
            for name in ("run", "bench"):
                self.calls.unlink(missing_ok=True)
                code, _, err = self.run_tigon(name, TIGON_PYTHON=chosen, **variables)
                self.assertEqual(code, 0, err)
                self.assertIn(f"report {report if name == 'run' else chosen}, peers {peers}\n", self.called)

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
        base = ["tigon"]
        planted = [*base, "tigon-mutants", "judge_faults", "tigon-cheats"]
        for command, wanted in (
            ("check --quick", base),
            ("check --lines rope", [*base, "tigon-covered"]),
            ("converge --quick", base),
            ("converge --all", [*base, "tigon-controls"]),
            ("converge --quick --all --out x", [*base, "tigon-controls"]),
            ("converge --controls", [*base, "tigon-controls"]),
            ("run --full", base),
            ("mutants", planted),
            ("mutants --quick", planted),
            ("mutants --faults my.faults", [*base, "tigon-own-mutants"]),
            ("mutants --faults my.faults --in my.cu", [*base, "tigon_simt", "tigon_gemm"]),
        ):
            with self.subTest(command):
                done = subprocess.run(["bash", self.root / "programs", *command.split()], env=self.environment(),
                                      capture_output=True, text=True, check=True)
                self.assertEqual(done.stdout.split(), wanted)

    def test_a_run_builds_the_planted_faults_during_its_first_stage(self):
        for command, wanted in (
            ("run", ["tigon-mutants"]),
            ("run --tag a=b", ["tigon-mutants"]),
            ("run --full", ["tigon-mutants judge_faults tigon-cheats"]),
            ("run --stages check,mutants", ["tigon-mutants"]),
            ("run --op rope --stages=check,report --full", []),
        ):
            with self.subTest(command):
                self.calls.unlink(missing_ok=True)
                code, _, err = self.run_tigon(*command.split(), TIGON_JOBS="3")
                self.assertEqual(code, 0, err)
                targets = re.findall(r"--build \S+/build/host -j 3 --target (.*)", self.called)
                self.assertEqual(targets, ["tigon", *wanted])

    def helped(self):
        """{command of ./tigon --help: what the help says about it}."""
        _, out, _ = self.run_tigon("--help")
        lines = re.findall(r"^  ([a-z-]+) +(\S.*(?:\n {13}\S.*)*)", out, re.M)
        self.assertEqual(len(lines), len(dict(lines)))
        return {name: " ".join(text.split()) for name, text in lines}

    def test_the_help_has_every_command_and_no_other(self):
        helped = self.helped()
        declared = (ROOT / "harness/cli/commands.inc").read_text()
        built = dict(re.findall(r'^TIGON_COMMAND\(([a-z-]+), "(.*)"\)$', declared, re.M))
        self.assertEqual(len(built), declared.count("TIGON_COMMAND("))
        records = dict(re.findall(r'^    "([a-z-]+)": \("\w+", "(.*)"\),$', (ROOT / "reports/tigon_report/__main__.py").read_text(), re.M))
        self.assertIn("simulate", records)
        table = (ROOT / "tigon").read_text().split("declare -A kCommands=(")[1].split("\n)")[0]
        own = re.findall(r"^  \[([a-z-]+)\]=", table, re.M)
        self.assertTrue({"test", "ci"} <= set(own), own)
        wanted = {**records, **built}  # the program's report comes before the table's
        self.assertEqual({name: text for name, text in helped.items() if name not in own}, wanted)
        self.assertEqual(set(helped), {*wanted, *own})

    def test_every_command_of_the_help_is_one(self):
        for name in self.helped():
            _, _, err = self.run_tigon(name, "--no-install")
            self.assertNotIn("no command", err, name)
        code, _, err = self.run_tigon("nonsense")
        self.assertEqual((code, err), (2, "tigon: no command 'nonsense'; see ./tigon --help\n"))

    def test_ci_ends_with_the_time_of_its_stages(self):
        self.copy(".ci/run")
        launcher = '#!/bin/bash\nsleep 1.1; [ "$*" != "$FAILS" ] || exit 3\n'
        (self.root / "tigon").write_text(launcher)
        all_stages = ["test", "long", "python", "sanitize"]
        for fails, minutes, stages, code in (
            ("none", "45", all_stages, 0),
            ("none", "0", all_stages[:-1], 0),
            ("test", "45", ["test"], 3),
            ("test --long", "45", ["test", "long"], 3),
            ("test --sanitize", "45", all_stages, 3),
        ):
            environment = self.environment(FAILS=fails, TIGON_CI_MINUTES=minutes)
            done = subprocess.run(["bash", self.root / ".ci/run"], env=environment, capture_output=True, text=True, check=False)
            self.assertEqual("sanitize  not run: 0 minutes had passed" in done.stdout, minutes == "0", done.stdout)
            self.assertEqual(done.returncode, code)
            rows = re.findall(r"^(\w+) +(\d+) s(?:  exit code (\d+))?$", done.stdout, re.M)
            self.assertEqual([row[0] for row in rows], [*stages, "together"], done.stdout)
            self.assertTrue(all(1 <= int(row[1]) <= 60 for row in rows), rows)
            self.assertEqual([row[2] for row in rows], ["" for _ in stages[1:]] + [str(code) if code else "", ""])

    def test_the_container_runs_the_commands_of_the_readme(self):
        container, readme = ((ROOT / name).read_text() for name in ("ci/Containerfile", "README" + ".md"))
        shown = re.search(r"```sh\n(.*?)```", readme, re.S)[1].splitlines()[:2]
        self.assertEqual(re.findall(r"^RUN (\./tigon.*)$", container, re.M), [line.partition("#")[0].strip() for line in shown])
        self.assertIn("-f ci/Containerfile", (ROOT / ("CONTRIBUTING" + ".md")).read_text())


def run_one(name):
    """The result of one test, in what another process can be told."""
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromName(name, sys.modules[__name__]).run(result)
    return result.testsRun, *([text for _, text in found] for found in (result.failures, result.errors, result.skipped))


class AtOnce(unittest.TestSuite):
    """All its tests at once, each in a process of its own: most of their time is that of stand-ins that sleep."""

    def run(self, result, debug=False):
        tests = list(self)
        with concurrent.futures.ProcessPoolExecutor(len(tests), multiprocessing.get_context("fork")) as pool:
            for test, (ran, *found) in zip(tests, pool.map(run_one, [test.id().removeprefix(f"{__name__}.") for test in tests]), strict=True):
                result.testsRun += ran
                for texts, into in zip(found, (result.failures, result.errors, result.skipped), strict=True):
                    into += [(test, text) for text in texts]
        return result


def load_tests(loader, tests, pattern):
    return AtOnce(test for suite in tests for test in suite)


if __name__ == "__main__":
    unittest.main()
