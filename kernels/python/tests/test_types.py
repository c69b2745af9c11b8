# SPDX-License-Identifier: Apache-2.0
"""The package is typed, and mypy has nothing to say against it."""
import pathlib
import unittest

import tigon

PACKAGE = pathlib.Path(tigon.__file__).parent
SETTINGS = PACKAGE.parents[2] / "pyproject.toml"


class TypesTest(unittest.TestCase):
    def test_mypy(self):
        from mypy import api

        said, errors, code = api.run(["--config-file", str(SETTINGS), "--no-incremental", str(PACKAGE)])
        self.assertEqual(code, 0, said + errors)
        self.assertTrue((PACKAGE / "py.typed").is_file())


if __name__ == "__main__":
    unittest.main()
