# SPDX-License-Identifier: Apache-2.0
"""What gcov says of the kernels' sources, all instantiations of a template together."""
import collections
import dataclasses
import json
import pathlib
import subprocess

NO_KERNELS = ("kernels/simt/", "kernels/call/", "kernels/signature/")  # what runs, calls and describes them


@dataclasses.dataclass
class Line:
    count: int = 0
    branches: list = dataclasses.field(default_factory=list)  # how often each was taken

    def add(self, line):
        self.count += line["count"]
        taken = [branch["count"] for branch in line["branches"] if not branch["throw"]]
        self.branches += [0] * (len(taken) - len(self.branches))
        for index, count in enumerate(taken):
            self.branches[index] += count


def name_in(root, folder, file):
    """The file's name from the root of the tree, None where it is no kernel's."""
    path = pathlib.Path(folder, file).resolve()
    if not path.is_relative_to(root):
        return None
    name = path.relative_to(root).as_posix()
    return name if name.startswith("kernels/") and not name.startswith(NO_KERNELS) else None


def collect(documents, root):
    """{file: {line number: Line}} of gcov's JSON documents."""
    files = collections.defaultdict(lambda: collections.defaultdict(Line))
    for document in documents:
        for file in document["files"]:
            if name := name_in(root, document["current_working_directory"], file["file"]):
                for line in file["lines"]:
                    files[name][line["line_number"]].add(line)
    return files


def documents(counts):
    """gcov's JSON of every file of counts (.gcda) under the folder, each beside a link to its notes (.gcno)."""
    for data in sorted(counts.rglob("*.gcda")):
        notes = data.with_suffix(".gcno")
        if not notes.exists():
            notes.symlink_to(pathlib.Path("/", notes.relative_to(counts)))
        done = subprocess.run(["gcov", "--json-format", "--stdout", "--branch-probabilities", data], capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"gcov {data.name}: {done.stderr.strip()}")
        yield json.loads(done.stdout)


def row(file, lines):
    """The record of a file."""
    branches = [count for line in lines.values() for count in line.branches]
    return {"file": file, "lines": len(lines), "lines_met": sum(line.count > 0 for line in lines.values()),
            "branches": len(branches), "branches_met": sum(count > 0 for count in branches),
            "lines_missing": sorted(number for number, line in lines.items() if line.count == 0),
            "branches_missing": sorted(number for number, line in lines.items() if line.count > 0 and 0 in line.branches)}
