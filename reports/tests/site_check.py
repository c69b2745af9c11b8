# SPDX-License-Identifier: Apache-2.0
"""Helpers of the dashboard's tests: what a written site links to, without a browser."""
import html.parser
import pathlib
import urllib.parse


class Page(html.parser.HTMLParser):
    """The ids and links of one page."""

    def __init__(self, path):
        super().__init__()
        self.ids, self.links, self.scripts = set(), [], []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        if values.get("id"):
            self.ids.add(values["id"])
        if tag == "script":
            self.scripts.append(values.get("src"))
        for name in ("href", "src"):
            if values.get(name):
                self.links.append(values[name])


def broken_links(site):
    """['page: link'] of links that lead out of the site or to a file or an id that is not there."""
    pages = {path: Page(path) for path in pathlib.Path(site).rglob("*.html")}
    bad = []
    for path, page in pages.items():
        for link in page.links:
            parts = urllib.parse.urlsplit(link)
            if parts.scheme == "data":
                continue
            target = (path.parent / urllib.parse.unquote(parts.path)).resolve() if parts.path else path
            if parts.scheme or parts.netloc or not target.is_file():
                bad.append(f"{path.name}: {link}")
            elif parts.fragment and target in pages and urllib.parse.unquote(parts.fragment) not in pages[target].ids:
                bad.append(f"{path.name}: {link}")
    return bad
