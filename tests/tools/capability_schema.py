#!/usr/bin/env python3
"""capability-db/schema.json against the core's reader: both judge the documents of tests/golden/capability and every record alike.

The reader's verdict on a document is the golden's expectation. Documents marked parser-only hold faults that a JSON Schema cannot
express (operator names, JSON syntax, one field against another); the schema may let those through. Needs Python's jsonschema;
without it nothing is judged, and the last line says so."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SCHEMA = ROOT / "capability-db" / "schema.json"


def golden_documents(path):
    """(name, parser_only, text, wanted by the reader) of a golden."""
    text, expected = path.read_text().split("\n--- expect\n")
    refused = set(re.findall(r"^([\w-]+):", expected, re.MULTILINE))
    for part in text.split("\ndocument ")[1:]:
        head, body = part.split("\n", 1)
        name, *flags = head.split()
        yield name, "parser-only" in flags, body, name not in refused


def accepts(validator, text):
    try:
        return validator.is_valid(json.loads(text))
    except ValueError:
        return False


def main():
    try:
        import jsonschema
    except ImportError:
        json.loads(SCHEMA.read_text())
        print("jsonschema is not installed: the schema was read and judged nothing")
        return 0
    schema = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    passed = failed = 0

    def judge(what, good):
        nonlocal passed, failed
        passed, failed = passed + good, failed + (not good)
        if not good:
            print(f"FAIL {what}")

    goldens = sorted((ROOT / "tests/golden/capability").glob("*.txt"))
    for path in goldens:
        for name, parser_only, text, wanted in golden_documents(path):
            found = accepts(validator, text)
            judge(f"{path.name}: {name}: reader {wanted}, schema {found}", found == wanted or (parser_only and not wanted))
    records = [p for p in sorted((ROOT / "capability-db").glob("*.json")) if p != SCHEMA]
    records += sorted((ROOT / "plugins/sim/profiles").glob("*.json"))
    for path in records:
        errors = [f"{'/'.join(map(str, e.path))}: {e.message}" for e in validator.iter_errors(json.loads(path.read_text()))]
        judge(f"{path.relative_to(ROOT)}: {errors}", not errors)
    judge("there are goldens and records", bool(goldens) and len(records) >= 2)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
