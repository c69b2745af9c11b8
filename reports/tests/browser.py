# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium driven over the DevTools protocol through two pipes, with the standard library alone."""

import base64
import fcntl
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def find():
    """The path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One page at a time. Collects console errors, exceptions and every request that is not for a file of the disk."""

    def __init__(self, program, width=1250, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="tigon-browser-")
        to_child, self.out = os.pipe()
        self.inp, from_child = os.pipe()

        def place():  # DevTools reads descriptor 3 and writes 4, which may be these pipes' own numbers
            reads, writes = (fcntl.fcntl(end, fcntl.F_DUPFD, 5) for end in (to_child, from_child))
            os.dup2(reads, 3), os.dup2(writes, 4)

        self.process = subprocess.Popen(
            [
                program,
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--remote-debugging-pipe",
                f"--user-data-dir={self.profile}",
                f"--window-size={width},{height}",
                "about:blank",
            ],
            preexec_fn=place,
            close_fds=False,
            start_new_session=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_child), os.close(from_child)
        self.buffer, self.number, self.events, self.problems, self.requests = b"", 0, [], [], []
        targets = self.call("Target.getTargets", session=False)["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")["targetId"]
        self.session = self.call("Target.attachToTarget", {"targetId": page, "flatten": True}, session=False)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setEmulatedMedia",
            {"features": [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]},
        )
        self.size(width, height)

    def size(self, width, height):
        self.call(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False},
        )

    def close(self):
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        os.close(self.out), os.close(self.inp)
        shutil.rmtree(self.profile, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()

    def _message(self, deadline):
        while b"\0" not in self.buffer:
            ready, _, _ = select.select([self.inp], [], [], max(0.0, deadline - time.monotonic()))
            data = os.read(self.inp, 1 << 20) if ready else b""
            if not data:
                raise TimeoutError("the browser does not answer" if not ready else "the browser has ended")
            self.buffer += data
        line, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(line)

    def _event(self, message):
        method, values = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.problems.append(json.dumps(values["exceptionDetails"])[:500])
        elif method == "Runtime.consoleAPICalled" and values["type"] in ("error", "warning", "assert"):
            self.problems.append(json.dumps(values["args"])[:500])
        elif method == "Log.entryAdded" and values["entry"]["level"] in ("error", "warning"):
            self.problems.append(values["entry"]["text"] + " " + values["entry"].get("url", ""))
        elif method == "Network.requestWillBeSent":
            url = values["request"]["url"]
            if not url.startswith(("file:", "data:", "blob:", "about:")):
                self.requests.append(url)
        self.events.append(method)

    def call(self, method, parameters=None, session=True, seconds=60):
        """Result of one DevTools command."""
        self.number += 1
        command = {"id": self.number, "method": method, "params": parameters or {}}
        if session:
            command["sessionId"] = self.session
        os.write(self.out, json.dumps(command).encode() + b"\0")
        deadline = time.monotonic() + seconds
        while True:
            message = self._message(deadline)
            if message.get("id") == self.number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                return message["result"]
            self._event(message)

    def open(self, path, fragment="", seconds=60):
        """Loads a file and returns the milliseconds that the page itself says loading took."""
        self.call("Page.navigate", {"url": "about:blank"})
        self.call("Page.navigate", {"url": pathlib.Path(path).resolve().as_uri() + fragment})
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.js("document.readyState === 'complete' && location.protocol === 'file:'"):
                return self.js("performance.getEntriesByType('navigation')[0].duration || performance.now()")
            time.sleep(0.02)
        raise TimeoutError(f"{path} does not load")

    def js(self, expression):
        """Value of a JavaScript expression in the page."""
        result = self.call("Runtime.evaluate", {"expression": expression, "returnByValue": True, "awaitPromise": True})
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {json.dumps(result['exceptionDetails'])[:300]}")
        return result["result"].get("value")

    def shot(self, path):
        data = self.call("Page.captureScreenshot", {"format": "png"})["data"]
        pathlib.Path(path).write_bytes(base64.b64decode(data))
