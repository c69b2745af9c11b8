# SPDX-License-Identifier: Apache-2.0
"""The example of the page runs as it stands there."""
import pathlib
import re
import unittest

PAGE = pathlib.Path(__file__).parents[1] / "README.md"


class ReadmeTest(unittest.TestCase):
    def test_the_example(self):
        (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
        names = {}
        exec(example, names)
        self.assertEqual(names["x"].grad.shape, names["x"].shape)


if __name__ == "__main__":
    unittest.main()
