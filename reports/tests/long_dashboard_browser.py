#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The dashboard in a real browser, from file://: no error, no request, links, filters, sorting, themes, comparison.

TIGON_SHOTS=FOLDER keeps screenshots of every page, light and dark, wide and narrow, for people to look at.
Exit code 77 (skipped) only when there is no Chromium; ./tigon test --long installs one.
"""

import os
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import browser  # noqa: E402
from tigon_report import __main__ as program  # noqa: E402

PROGRAM = browser.find()
RECORDED = pathlib.Path(__file__).resolve().parents[1] / "recorded"


class Dashboard(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp(prefix="tigon-dashboard-"))
        runs, cls.site = cls.folder / "runs", cls.folder / "site"
        assert program.main(["simulate", "--out", str(runs), "--seed", "9", "--days", "120", "--cases", "40"]) == 0
        assert program.main(["dashboard", str(runs), str(RECORDED), "--out", str(cls.site)]) == 0
        cls.pages = sorted(cls.site.glob("*.html"))
        cls.browser = browser.Browser(PROGRAM)

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        shutil.rmtree(cls.folder)

    def setUp(self):
        self.browser.call(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "light"}]}
        )
        self.browser.problems.clear()
        self.browser.requests.clear()

    def tearDown(self):
        self.assertEqual(self.browser.problems, [])
        self.assertEqual(self.browser.requests, [])

    def js(self, expression):
        return self.browser.js(expression)

    def test_every_page_opens_without_an_error_or_a_request(self):
        cases = sorted((self.site / "case").glob("*.html"))[:5]
        for page in [*self.pages, *cases]:
            self.browser.open(page)
            self.assertTrue(self.js("document.querySelector('h1').textContent.length > 3"), page)
            self.assertTrue(
                self.js("document.documentElement.scrollWidth <= innerWidth + 1"), f"{page} is wider than the window"
            )

    def test_no_page_is_wider_than_a_phone(self):
        self.browser.size(400, 800)
        try:
            for page in self.pages:
                self.browser.open(page)
                self.assertTrue(self.js("document.documentElement.scrollWidth <= innerWidth + 1"), page)
        finally:
            self.browser.size(1250, 900)

    def test_navigation_and_heat_map_links_are_followed(self):
        self.browser.open(self.site / "index.html")
        self.js("document.querySelector('nav a[href=\"history.html\"]').click()")
        self.wait("location.pathname.endsWith('history.html') && document.readyState === 'complete'")
        self.js("document.querySelector('#cases td a').click()")
        self.wait("location.pathname.includes('/case/') && document.readyState === 'complete'")
        self.browser.open(self.site / "index.html")
        self.js(
            "document.querySelector('figure svg a')"
            ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
        )
        self.wait("location.pathname.includes('/case/')")

    def wait(self, condition, seconds=20):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                if self.js(condition):
                    return
            except RuntimeError:
                pass  # the page is being replaced
            time.sleep(0.05)
        self.fail(condition)

    def filter(self, text):
        self.js(
            f"(i => {{ i.value = {text!r}; i.dispatchEvent(new Event('input')); }})"
            "(document.querySelector('input[data-filter]'))"
        )

    def visible(self, table):
        return self.js(
            f"Array.from(document.querySelectorAll('#{table} tr'))"
            ".filter(r => !r.hidden && r.querySelector('td')).length"
        )

    def test_filter_sort_and_deep_link(self):
        self.browser.open(self.site / "history.html")
        every = self.visible("cases")
        self.filter("rms_norm fused -f32")
        some = self.visible("cases")
        self.assertTrue(0 < some < every, (some, every))
        self.js("document.querySelectorAll('#cases th')[5].click()")
        values = self.js(
            "Array.from(document.querySelectorAll('#cases td:nth-child(6)')).map(c => Number(c.dataset.v))"
        )
        self.assertEqual(values, sorted(values, reverse=True))
        address = self.js("location.hash")
        self.assertIn("q=", address)
        self.browser.open(self.site / "history.html", address)
        self.assertEqual(self.visible("cases"), some)
        self.assertEqual(self.js("document.querySelectorAll('#cases th')[5].getAttribute('aria-sort')"), "descending")

    def test_a_point_leads_to_its_record_and_says_what_it_is(self):
        page = max((self.site / "case").glob("*.html"), key=lambda path: path.stat().st_size)
        self.browser.open(page)
        target = self.js("document.querySelector('figure svg a').getAttribute('href')")
        self.js(
            "document.querySelector('figure svg a use').dispatchEvent(new MouseEvent('mousemove', {bubbles: true}))"
        )
        self.assertFalse(self.js("document.getElementById('tip').hidden"))
        self.assertNotIn("git checkout", self.js("document.getElementById('tip').textContent"))
        self.js(
            "document.querySelector('figure svg a')"
            ".dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
        )
        self.wait(f"location.hash === {target!r}")
        self.wait("(r => r && r.querySelector('details').open)(document.querySelector('tr:target'))")
        self.assertTrue(self.js("document.querySelector('tr:target pre').textContent.includes('git checkout')"))

    def test_theme_follows_the_system_and_the_button(self):
        back = "getComputedStyle(document.body).backgroundColor"
        self.browser.open(self.site / "index.html")
        light = self.js(back)
        self.js("document.getElementById('theme').click()")
        dark = self.js(back)
        self.assertNotEqual(light, dark)
        self.js("document.getElementById('theme').click(); localStorage.clear()")
        self.assertEqual(self.js(back), light)
        self.browser.call(
            "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
        )
        self.browser.open(self.site / "index.html")
        self.assertEqual(self.js(back), dark)

    def test_any_two_runs_are_compared(self):
        self.browser.open(self.site / "compare.html")
        self.wait("document.querySelectorAll('#compare-a option').length > 100")
        cells = "Array.from(document.querySelectorAll('#compare tr td:nth-child(6)')).map(c => Number(c.dataset.v))"
        first = self.js(cells)
        self.js("(s => { s.value = 3; s.dispatchEvent(new Event('change')); })(document.getElementById('compare-a'))")
        second = self.js(cells)
        self.assertNotEqual(first, second)
        self.assertEqual(second, sorted(second, reverse=True), "sorted by damage, what is missing first")
        address, shown = self.js("location.hash"), self.js("document.getElementById('compare-what').textContent")
        self.browser.open(self.site / "compare.html", address)
        self.wait(f"document.getElementById('compare-what').textContent === {shown!r}")
        self.js(
            "(s => { s.value = s.options.length - 1; s.dispatchEvent(new Event('change')); })"
            "(document.getElementById('compare-b'))"
        )
        self.assertIn("different devices", self.js("document.getElementById('compare-note').textContent"))
        self.assertEqual(self.visible("compare"), 0)

    def test_the_default_comparison_is_the_same_with_and_without_the_script(self):
        cells = "Array.from(document.querySelectorAll('#compare td')).map(c => c.textContent)"
        self.browser.open(self.site / "compare.html")
        self.wait("document.querySelectorAll('#compare-a option').length > 100")
        written = self.js(cells)
        swap = "document.getElementById('compare-swap').click();"
        self.js(swap + swap)
        self.assertEqual(self.js(cells), written)

    def test_readable_without_scripts(self):
        self.browser.call("Emulation.setScriptExecutionDisabled", {"value": True})
        try:
            self.browser.call("Page.navigate", {"url": (self.site / "index.html").as_uri()})
            time.sleep(1)
        finally:
            self.browser.call("Emulation.setScriptExecutionDisabled", {"value": False})
        self.assertGreater(self.js("document.querySelectorAll('figure svg').length"), 0)
        self.assertTrue(self.js("document.getElementById('verdict').textContent.length > 10"))
        self.assertTrue(self.js("document.getElementById('theme').hidden"), "a button without its script is hidden")

    def test_screenshots_for_people(self):
        folder = os.environ.get("TIGON_SHOTS")
        if not folder:
            return
        os.makedirs(folder, exist_ok=True)
        biggest = max((self.site / "case").glob("*.html"), key=lambda path: path.stat().st_size)
        for theme in ("light", "dark"):
            self.browser.call(
                "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": theme}]}
            )
            for width, height in ((1250, 1500), (400, 1200)):
                self.browser.size(width, height)
                for page in [*self.pages, biggest]:
                    self.browser.open(page)
                    name = "case" if page == biggest else page.stem
                    self.browser.shot(f"{folder}/{name}-{theme}-{width}.png")
        self.browser.size(1250, 900)


if __name__ == "__main__":
    if PROGRAM is None:
        print("no chromium; install it with: sudo apt-get install chromium", file=sys.stderr)
        sys.exit(77)
    unittest.main()
