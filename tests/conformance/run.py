#!/usr/bin/env python3
"""ONNX conformance through `entente check`: run.py [--device SET] [--sets A,B] [--json FILE]; last line `N passed, N failed`.

Sets: cases (this repository's tests/cases), and from the pinned onnx package node, simple, pytorch-operator, pytorch-converted and
light. A case passes, is refused (exit 3 or 2, and the reason must name what is not supported), differs (wrong numbers) or crashes.
Wrong numbers, crashes, time-outs, refusals without a reason, and fewer passes than FLOORS are failures. Tolerances are the tool's
defaults. exceptions.tsv lists at most fifteen cases whose expected value can't be met, each with its argument; they count as neither.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnx.backend.test
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DATA = pathlib.Path(onnx.backend.test.__file__).parent / "data"
SETS = ("cases", "node", "simple", "pytorch-operator", "pytorch-converted", "light")
FLOORS = json.loads((pathlib.Path(__file__).parent / "floors.json").read_text())  # device set -> set -> least passes
MAX_EXCEPTIONS = 15
REASON = re.compile(r"opset|operator|Operator|node|input|output|attribute|dimension|type|sequence|string|optional|function|domain")
BATCH = 40  # cases of one process; a crash is then tracked down one by one


def read_exceptions():
    path = pathlib.Path(__file__).parent / "exceptions.tsv"
    rows = [line.split("\t") for line in path.read_text().splitlines() if line and not line.startswith("#")]
    if len(rows) > MAX_EXCEPTIONS or any(len(row) != 2 or not row[1].strip() for row in rows):
        sys.exit(f"{path}: wants at most {MAX_EXCEPTIONS} lines CASE<TAB>ARGUMENT")
    return {case: argument for case, argument in rows}


def light_cases(folder):
    """The package's light models have an output file and, as its own runner makes it, an input that counts up from 0 to 1."""
    for path in sorted((DATA / "light").glob("*.onnx")):
        data = folder / path.stem / "test_data_set_0"
        data.mkdir(parents=True)
        (data.parent / "model.onnx").symlink_to(path)
        graph = onnx.load(path, load_external_data=False).graph
        weights = {weight.name for weight in graph.initializer}
        fed = [value for value in graph.input if value.name not in weights]
        for index, value in enumerate(fed):
            shape = [dim.dim_value or 1 for dim in value.type.tensor_type.shape.dim]
            count = int(np.prod(shape))
            array = (np.arange(count).reshape(shape) / count).astype(np.float32)
            (data / f"input_{index}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
        for index in range(len(graph.output)):
            (data / f"output_{index}.pb").symlink_to(path.with_name(f"{path.stem}_output_{index}.pb"))
        yield data.parent


def folders_of(name, scratch):
    if name == "light":
        return list(light_cases(scratch))
    root = ROOT / "tests/cases" if name == "cases" else DATA / name
    return sorted(path.parent for path in root.glob("*/model.onnx"))


def check(args, folders):
    """{folder: (result, text)} by one process, or by one each when that process dies."""
    command = [args.entente, "check", "--json", "--device", args.device, *map(str, folders)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=args.timeout * len(folders))
        code = done.returncode
    except subprocess.TimeoutExpired:
        code, done = None, None
    if code is None or code < 0 or code > 7:
        if len(folders) > 1:
            return {folder: result for one in folders for folder, result in check(args, [one]).items()}
        died = "no end" if code is None else f"exit {code}: {done.stderr.strip()[-300:]}"
        return {folders[0]: ("crashed", died)}
    results = {}
    for line in done.stdout.splitlines():
        if line.startswith("{"):
            item = json.loads(line)
            if "case" in item:
                results[pathlib.Path(item["case"])] = (verdict(item), item["text"])
    return {folder: results.get(folder, ("crashed", "no line for it")) for folder in folders}


def verdict(item):
    if item["result"] == "passed":
        return "passed"
    if item["result"] == "skipped":
        return "refused" if REASON.search(item["text"]) else "unexplained"
    return "differs" if item["code"] == 5 else "broken"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--entente", default=os.environ.get("ENTENTE", ROOT / "build/bin/entente"))
    parser.add_argument("--timeout", type=float, default=60, help="seconds a case")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--json", type=pathlib.Path, help="write every verdict here")
    parser.add_argument("--refused", action="store_true", help="print the refused cases too")
    args = parser.parse_args()
    exceptions, failed, passed, everything = read_exceptions(), [], 0, {}
    print(f"{'set':20} {'passed':>7} {'refused':>8} {'differ':>7} {'other':>6} {'listed':>7}")
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        for name in args.sets.split(","):
            folders = folders_of(name, pathlib.Path(scratch))
            batches = [folders[i:i + BATCH] for i in range(0, len(folders), BATCH)]
            results = {}
            for part in pool.map(lambda batch: check(args, batch), batches):
                results.update(part)
            counts = collections.Counter()
            for folder, (result, text) in results.items():
                listed = folder.name in exceptions
                counts["listed" if listed else result] += 1
                everything[f"{name}/{folder.name}"] = {"result": result, "text": text, "listed": listed}
                if not listed and result not in ("passed", "refused"):
                    failed.append(f"{name}/{folder.name}: {result}: {text}")
                if args.refused and result == "refused":
                    print(f"refused {name}/{folder.name}: {text}")
            floor = FLOORS.get(args.device, {}).get(name, 0)
            if counts["passed"] < floor:
                failed.append(f"{name}: {counts['passed']} pass, the floor is {floor}")
            other = sum(counts.values()) - sum(counts[key] for key in ("passed", "refused", "differs", "listed"))
            print(f"{name:20} {counts['passed']:7} {counts['refused']:8} {counts['differs']:7} {other:6} {counts['listed']:7}")
            passed += counts["passed"]
    for line in failed:
        print(f"FAILED {line[:400]}")
    if args.json:
        args.json.write_text(json.dumps(everything, indent=1, sort_keys=True) + "\n")
    print(f"{passed} passed, {len(failed)} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
