# SPDX-License-Identifier: Apache-2.0
"""tigon.judge --html: one page that needs nothing else, says what a verdict says, and has nothing of a candidate but as text."""
import contextlib
import html.parser
import io
import json
import os
import pathlib
import tempfile
import unittest

import cheats
from tigon import judge
from tigon._judge.defences import DEFENCES, defences_of
from tigon._judge.inputs import KINDS, LAYOUTS
from tigon._judge.page import page
from tigon._judge.verdict import Settings
from tigon._judge.verdict import judge as judge_files

REFERENCE = "import torch\ndef reference(x): return x * 2\ndef get_inputs(rows=6): return [torch.randn(rows, 5)]\n"
FILES = {"right.py": "def candidate(x): return x + x\n", "wrong.py": "def candidate(x): return x * 2.01\n", "missing.py": "import no_such_package\n",
         "problem.py": REFERENCE}
EVIL = "<script>alert(1)</script><img src=x onerror=\"a()\">&lt;' \x00\ud800\x1b[31m $body ${title}"
OWN = set("html head meta title style body h1 h2 h3 section div p a span code table tr th td ul li details summary".split())
ALONE = ("meta", "br", "link", "img")


class Page(html.parser.HTMLParser):
    """Which elements and attributes a page has, and the text under each heading."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.ids, self.links, self.outside, self.open, self.heading, self.under = [], [], [], [], [], "", {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        names = dict(attributes)
        self.ids += [names["id"]] if "id" in names else []
        self.links += [names["href"]] if "href" in names else []
        self.outside += [name for name in names if name.startswith("on") or name == "src"]
        if tag not in ALONE:
            self.open.append(tag)
        if tag in ("h1", "h2", "h3"):
            self.heading = ""

    def handle_endtag(self, tag):
        assert self.open.pop() == tag, f"{tag} ends what did not begin"

    def handle_data(self, data):
        if self.open and self.open[-1] in ("h1", "h2", "h3") or self.open[-2:-1] in (["h2"], ["h1"]):
            self.heading += data
        else:
            self.under[self.heading] = self.under.get(self.heading, "") + data + " "


def record(**changes):
    """A record as a batch has it where a judge gave no verdict, with changes."""
    options = dict(judge.DEFAULTS)
    return {"record": "verdict", "schema": 1, "verdict": "right", "reason": "", "cases": [], "notes": [], "seed": 3, "seconds": 1.0, "candidate": "c.py",
            "reference": "r.py", "options": options, "key": "0" * 16, "errors": {"max_absolute_error": 0.0, "max_relative_error": None}, **changes}


class PageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.file = self.folder / "page.html"
        for name, text in FILES.items():
            (self.folder / name).write_text(text, encoding="utf-8")

    def run_judge(self, *words):
        """The exit code, what was said, and the page."""
        said = io.StringIO()
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.chdir(self.folder):
            code = judge.main([*words, "--html", str(self.file)])
        return code, said.getvalue(), self.parsed(self.file.read_text(encoding="utf-8")) if self.file.exists() else None

    def parsed(self, text):
        found = Page(text)
        self.assertEqual((found.open, found.outside, {"script", "link", "img", "iframe"} & set(found.tags)), ([], [], set()))
        return found

    def test_a_wrong_candidate(self):
        code, said, found = self.run_judge("wrong.py", "--reference", "problem.py", "--json", "verdict.json")
        verdict = json.loads((self.folder / "verdict.json").read_text(encoding="utf-8"))
        self.assertEqual(code, 1)
        self.assertIn("wrong.py: wrong", found.under)
        self.assertIn(verdict["reason"], found.under["wrong.py: wrong"])
        worst = " ".join(found.under["Worst element"].split())
        self.assertRegex(worst, r"worst at got want off by budget drawn: result \d+ of 30 \[\d,\d\] (-?[\d.e-]+ ){3}[\d.e-]+$")
        self.assertIn(f"seed {verdict['seed']}", " ".join(found.under["What was compared"].split()))
        self.assertIn("float32 [6, 5]", found.under["What was compared"])
        self.assertIn("mul", found.under["Calls of torch, by the candidate's own word"])
        self.assertIn("budgets of each element", found.under["Defences that ran"])
        self.assertNotIn("inputs change", found.under["Defences that ran"])  # the first call was wrong

    def test_a_right_one(self):
        (self.folder / "right.py").write_text("def candidate(x):\n    assert x.is_contiguous()\n    return x + x\n", encoding="utf-8")
        _, _, found = self.run_judge("right.py", "--reference", "problem.py", "--backward", "--seed", "7")
        self.assertRegex(found.under["Worst element"], r"It is at \d\.\d\d of its budget, in .*: ")
        self.assertRegex(" ".join(found.under["What was compared"].split()),
                         r"kinds of inputs drawn , .*sizes rows=\d+ seed 7 options backward=True , device=cpu , seed=7 , ")
        self.assertIn("refuses strided inputs, rows apart: it raised AssertionError", found.under["Limits"])
        ran = [name for name in DEFENCES if f"{name} " in found.under["Defences that ran"]]
        self.assertEqual(set(DEFENCES) - set(ran), {"seeds are drawn after it is loaded"})

    def test_a_batch(self):
        lines = [{"candidate": name, "reference": "problem.py"} for name in ("right.py", "wrong.py", "missing.py", "wrong.py")]
        (self.folder / "batch.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        code, said, found = self.run_judge("--batch", "batch.jsonl", "--json", "verdicts.jsonl")
        self.assertEqual(code, 1, said)
        self.assertEqual(found.links, ["#v1", "#v2", "#v3", *["#all"] * 3])
        self.assertEqual(found.ids, ["all", "v1", "v2", "v3"])
        title = "tigon judge: 1 right, 1 wrong, 1 not judged"
        self.assertRegex(" ".join(found.under[title].split()), r"how many right 1 wrong 1 not judged 1 candidate .* right\.py problem\.py right [\d.]+ s "
                         r"wrong\.py problem\.py wrong drawn: result: .* s missing\.py problem\.py not judged it needs what is not here")

    def test_nothing_is_injected(self):
        cases = [{"name": EVIL, "verdict": "different", "reason": f"3 of 4 elements wrong; [1]: got {EVIL}, want 1, off by 2, budget 3"},
                 {"name": EVIL, "verdict": EVIL, "reason": EVIL}]
        evil = record(verdict="wrong", reason=EVIL, cases=cases, notes=[EVIL], calls=[EVIL], limits=[EVIL], inputs=[EVIL], candidate=EVIL, reference=EVIL,
                      key=EVIL, options={**judge.DEFAULTS, "workload": f"{EVIL}#{EVIL}", "device": EVIL, "dtype": EVIL})
        for records in ([evil], [evil, record()]):
            text = page(records)
            found = self.parsed(text)
            self.assertEqual(set(found.tags) - OWN, set())
            self.assertIn("&lt;script&gt;alert(1)&lt;/script&gt;", text)
            self.assertEqual(found.tags.count("html"), 1)  # $body is text, too
            self.assertFalse({"\x00", "\x1b", "\ud800"} & set(text))
            text.encode()

    def test_a_candidate_cannot_write_into_it(self):
        (self.folder / "wrong.py").write_text("def candidate(x): raise ValueError('</code><script>x()</script>')\n", encoding="utf-8")
        _, _, found = self.run_judge("wrong.py", "--reference", "problem.py")
        self.assertIn("</code><script>x()</script>", found.under["wrong.py: wrong"])

    def test_a_file_that_cannot_be_written_is_said_before_the_work(self):
        self.file = self.folder / "none/page.html"
        (self.folder / "batch.jsonl").write_text(json.dumps({"candidate": "right.py", "reference": "problem.py"}) + "\n", encoding="utf-8")
        for words in (("right.py", "--reference", "problem.py"), ("--batch", "batch.jsonl")):
            code, said, _ = self.run_judge(*words)
            self.assertEqual(code, 5)
            self.assertRegex(said, r"\Atigon judge: --html .*none/page.html: No such file or directory; name a file that can be written\n\Z")

    def test_what_is_there_stays_until_it_is_written(self):
        self.file.write_text("old", encoding="utf-8")
        judge.try_to_write(self.file)
        self.assertEqual(self.file.read_text(encoding="utf-8"), "old")
        judge.try_to_write(self.folder / "new.html")
        self.assertEqual(sorted(os.listdir(self.folder)), sorted([*FILES, "page.html"]))

    def test_defences(self):
        self.assertEqual(set(DEFENCES), {cheat.defence for cheat in cheats.CHEATS.values()})
        for kind in (*KINDS, *LAYOUTS):
            of_one = defences_of(record(cases=[{"name": f"{kind}: result", "verdict": "passed", "reason": ""}]))
            self.assertIn("layouts of inputs" if kind in LAYOUTS else "kinds of inputs", of_one)
            skipped = defences_of(record(cases=[{"name": kind, "verdict": "skipped", "reason": ""}]))
            self.assertEqual([name for name in skipped if name in ("layouts of inputs", "kinds of inputs", "budgets of each element")], [])
        self.assertEqual(defences_of(record(seed=None)), [])
        self.assertNotIn("memory is poisoned", defences_of(record(cases=[{"name": "drawn: result", "verdict": "passed", "reason": ""}],
                                                                  options={**judge.DEFAULTS, "device": "cuda"})))

    def test_what_was_not_judged(self):
        verdict = judge_files(self.folder / "none.py", self.folder / "problem.py", Settings())
        found = self.parsed(page([{**record(), **verdict.record()}]))
        self.assertIn("c.py: bad problem", found.under)


if __name__ == "__main__":
    unittest.main()
