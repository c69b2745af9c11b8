"""Checks records against harness/record/record.schema.json: the part of JSON Schema draft 7 that it uses."""
import json
import pathlib
import re

SCHEMA = json.loads((pathlib.Path(__file__).resolve().parents[2] / "harness/record/record.schema.json").read_text())
TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int,
         "number": (int, float)}


def violation(value, schema=None, where=""):
    """What is wrong with `value`, or ''."""
    schema = SCHEMA if schema is None else schema
    if "$ref" in schema:
        return violation(value, SCHEMA["definitions"][schema["$ref"].rsplit("/", 1)[1]], where)
    types = schema.get("type", [])
    types = [types] if isinstance(types, str) else types
    if types and not any(isinstance(value, TYPES[t]) and (t == "boolean" or not isinstance(value, bool))
                         for t in types):
        return f"{where}: {value!r} is not {types}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where}: {value!r} is none of {schema['enum']}"
    if "const" in schema and value != schema["const"]:
        return f"{where}: {value!r}"
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        return f"{where}: {value!r} does not match {schema['pattern']}"
    if "minimum" in schema and isinstance(value, (int, float)) and value < schema["minimum"]:
        return f"{where}: {value} is below {schema['minimum']}"
    if isinstance(value, dict):
        for key in schema.get("required", ()):
            if key not in value:
                return f"{where}: no {key}"
        for key, item in value.items():
            inner = schema.get("properties", {}).get(key, schema.get("additionalProperties", {}))
            if isinstance(inner, dict) and (found := violation(item, inner, f"{where}/{key}")):
                return found
    if isinstance(value, list):
        for index, item in enumerate(value):
            if found := violation(item, schema.get("items", {}), f"{where}/{index}"):
                return found
    for branch in schema.get("allOf", ()):
        if not violation(value, branch["if"]) and (found := violation(value, branch["then"], where)):
            return found
    return ""
