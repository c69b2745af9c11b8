# SPDX-License-Identifier: Apache-2.0
"""Tests of the declaration of records and of the check against it."""
import contextlib
import copy
import io
import json
import pathlib
import unittest
import unittest.mock

from command_test import CommandTest, full_run
from tigon_report import records, schema

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "recorded"


def run_record():
    return {**full_run()[0], "host": dict.fromkeys(("name", "os", "kernel", "cpu"), "x") | {"cores": 2, "memory_bytes": 1},
            "build": dict.fromkeys(("preset", "compiler", "flags", "type"), "x")}


class DeclarationTest(unittest.TestCase):
    def test_a_kind_is_listed_and_chosen_alike(self):
        self.assertEqual(sorted(schema.SCHEMA["properties"]["record"]["enum"]), sorted(schema.KINDS))
        for branch in schema.SCHEMA["allOf"]:
            name = branch["if"]["properties"]["record"]["const"]
            self.assertEqual(branch["then"], {"$ref": f"#/definitions/{name}"})

    def test_what_readers_use_of_a_kind_is_declared(self):
        for kind, declared in schema.KINDS.items():
            fields = declared["properties"]
            self.assertLessEqual({*declared.get("identity", ()), *declared["required"]}, {*fields}, kind)
            self.assertLessEqual({*schema.needed(kind)}, {*declared["required"]}, kind)

    def test_the_version_is_one_that_records_may_bear(self):
        self.assertRegex(schema.VERSION, schema.SCHEMA["properties"]["schema_version"]["pattern"])

    def test_types(self):
        types = schema.field_types("bench")
        self.assertEqual({*types["median_s"]}, {int, float, type(None)})
        self.assertEqual((types["n"], types["dtype"], types["samples_s"]), ((int,), (str,), (list,)))
        self.assertEqual(schema.types_at("run", "tool", "dirty"), (bool,))
        self.assertNotIn("median_s", schema.field_types("of another version"))
        self.assertIn(float, schema.types_anywhere("peak_bytes"))  # whole in one kind
        with self.assertRaises(KeyError):
            schema.types_anywhere("nosuch")


class CheckTest(CommandTest):
    def test_records_of_real_runs_follow_it_and_hold_no_other_field(self):
        checked = 0
        for file in sorted(RECORDED.rglob("*.jsonl")):
            lines = [json.loads(line) for line in file.read_text().splitlines()]
            if not lines[0].get("slim"):
                checked += len(lines)
                self.assertEqual([found for line in lines if (found := schema.violation(line))], [], file)
        self.assertGreater(checked, 1000)

    def test_it_says_what_is_wrong_and_where(self):
        good = run_record()
        self.assertEqual(schema.violation(good), "")
        for change, found in (({"record": "nosuch"}, '/record: "nosuch"'), ({"run_id": "x"}, '/run_id: "x"'),
                              ({"seed": 1.5}, '/seed: 1.5'), ({"seed": True}, '/seed: true'),
                              ({"tags": {"a": 1}}, '/tags/a: 1'), ({"command": ["x", 1]}, '/command/1: 1'),
                              ({"device": {"kind": "fpga"}}, '/device/kind: "fpga"'),
                              ({"device": {}}, '/device: no "kind"'), ({"host": None}, '/host: null'),
                              ({"shard": {"index": -1, "count": 2, "source": ""}}, '/shard/index: -1'),
                              ({"news": 1}, '/news: run declares no such field')):
            self.assertTrue(schema.violation({**good, **change}).startswith(found), (change, schema.violation({**good, **change})))
        del good["seed"]
        self.assertEqual(schema.violation(good), ': no "seed"')

    def test_a_keyword_that_the_check_does_not_know_is_an_error(self):
        odd = copy.deepcopy(schema.SCHEMA)
        odd["maximum"] = 3
        with unittest.mock.patch.object(schema, "SCHEMA", odd), self.assertRaises(KeyError):
            schema.violation(run_record())

    def test_files_from_the_command_line(self):
        good, bad = self.write("good.jsonl", [run_record()]), self.write("bad.jsonl", [run_record(), b'{"record": "bench"}'])
        with contextlib.redirect_stdout(io.StringIO()) as out:
            self.assertEqual(schema.main([str(good)]), 0)
            self.assertEqual(schema.main([str(good), str(bad)]), 1)
        self.assertIn("bad.jsonl:2: ", out.getvalue())

    def test_readers_need_less_and_pass_over_what_they_do_not_know(self):
        bench = next(record for record in full_run() if record["record"] == "bench")
        self.assertIsNone(records.problem_of({**bench, "news": 1}))
        self.assertEqual(records.problem_of({key: value for key, value in bench.items() if key != "basis"}), 'bench: no "basis"')


if __name__ == "__main__":
    unittest.main()
