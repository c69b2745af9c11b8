# SPDX-License-Identifier: Apache-2.0
"""python3 -m tigon_report.schema FILE: do records follow harness/record/record.schema.json, the declaration of all kinds?

What reads or writes records asks here which kinds there are, which fields they have and what names a record. The check
knows the part of JSON Schema draft 7 that the declaration uses, and takes a field that a kind does not declare for a
fault: it is for records that this tree writes. Readers pass such fields over.
"""
import functools
import json
import pathlib
import re
import sys

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "harness/record/record.schema.json").read_text())
VERSION = SCHEMA["version"]
KINDS = {branch["if"]["properties"]["record"]["const"]: SCHEMA["definitions"][branch["then"]["$ref"].split("/")[-1]]
         for branch in SCHEMA["allOf"]}
TYPES = {"object": (dict,), "array": (list,), "string": (str,), "boolean": (bool,), "null": (type(None),),
         "integer": (int,), "number": (int, float)}  # exact: true is no 1


def identity(kind):
    """The fields that name a record of a kind within its run; None: the kind may repeat."""
    return KINDS.get(kind, {}).get("identity")


def needed(kind):
    """The fields without which a record of a kind is not read."""
    return KINDS.get(kind, {}).get("needed", ())


@functools.lru_cache(maxsize=None)
def field_types(kind):
    """{field: the Python types that its values may have} of a kind; of an unknown one what every record has."""
    fields = {**SCHEMA["properties"], **KINDS.get(kind, {}).get("properties", {})}
    return {name: types for name, schema in fields.items() if (types := _types(schema))}


def types_at(kind, field, *members):
    """The types of a field of a kind, or of a member of it."""
    schema = KINDS[kind]["properties"][field]
    for name in members:
        schema = schema["properties"][name]
    return _types(schema)


def types_anywhere(field):
    """The types that a field may have in any kind."""
    found = {kind_type for kind in KINDS for kind_type in field_types(kind).get(field, ())}
    if not found:
        raise KeyError(f"no kind of record declares {field}")
    return found


def _types(schema):
    if "$ref" in schema:
        return _types(_definition(schema["$ref"]))
    names = schema.get("type", ())
    named = {one for name in ([names] if isinstance(names, str) else names) for one in TYPES[name]}
    return tuple(named | {type(value) for value in schema.get("enum", ())})


def _definition(reference):
    return SCHEMA["definitions"][reference.removeprefix("#/definitions/")]


# ---- the check ----------------------------------------------------------------------------------


def violation(record):
    """The first thing that is wrong with a record, with its place; '' when nothing is."""
    found = _violation(record, SCHEMA, "")
    if found:
        return found
    undeclared = sorted(record.keys() - SCHEMA["properties"].keys() - KINDS[record["record"]]["properties"].keys())
    return f"/{undeclared[0]}: {record['record']} declares no such field" if undeclared else ""


def _violation(value, schema, where):
    for keyword, rule in schema.items():
        if found := CHECKS[keyword](value, rule, schema, where):
            return found
    return ""


def _ok(value, rule, schema, where):
    return ""


def _fails(test):
    """The check of a keyword that a value passes when test(value, rule)."""
    def check(value, rule, schema, where):
        return "" if test(value, rule) else f"{where}: {json.dumps(value)[:60]}: {_text(schema)}"
    return check


def _text(schema):
    return json.dumps({key: rule for key, rule in schema.items() if key != "description"})[:120]


def _has_type(value, rule):
    return any(type(value) in TYPES[name] for name in ([rule] if isinstance(rule, str) else rule))


def _required(value, rule, schema, where):
    missing = [name for name in rule if isinstance(value, dict) and name not in value]
    return f"{where}: no \"{missing[0]}\"" if missing else ""


def _members(value, rule, schema, where):
    declared = {name: value[name] for name in rule if name in value} if isinstance(value, dict) else {}
    return _first(_violation(member, rule[name], f"{where}/{name}") for name, member in declared.items())


def _other_members(value, rule, schema, where):
    others = value.keys() - schema.get("properties", {}).keys() if isinstance(value, dict) else ()
    return _first(_violation(value[name], rule, f"{where}/{name}") for name in sorted(others))


def _items(value, rule, schema, where):
    return _first(_violation(item, rule, f"{where}/{n}") for n, item in enumerate(value if isinstance(value, list) else ()))


def _all_of(value, rule, schema, where):
    return _first(_violation(value, part, where) for part in rule)


def _if(value, rule, schema, where):
    return "" if _violation(value, rule, where) else _violation(value, schema["then"], where)


def _first(found):
    return next(filter(None, found), "")


CHECKS = {
    "$ref": lambda value, rule, schema, where: _violation(value, _definition(rule), where),
    "type": _fails(_has_type),
    "enum": _fails(lambda value, rule: value in rule),
    "const": _fails(lambda value, rule: value == rule),
    "minimum": _fails(lambda value, rule: not isinstance(value, (int, float)) or value >= rule),
    "pattern": _fails(lambda value, rule: not isinstance(value, str) or re.search(rule, value)),
    "required": _required, "properties": _members, "additionalProperties": _other_members, "items": _items,
    "allOf": _all_of, "if": _if,
    **dict.fromkeys(("then", "$schema", "title", "description", "version", "definitions", "identity", "needed"), _ok),
}


def main(argv):
    """Exit code 1 and a line for the first record of each file that does not follow the schema."""
    code = 0
    for file in argv:
        for number, line in enumerate(pathlib.Path(file).read_text().splitlines(), 1):
            if found := violation(json.loads(line)):
                print(f"{file}:{number}: {found}")
                code = 1
                break
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
