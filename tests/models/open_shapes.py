#!/usr/bin/env python3
"""Models with open sizes: one bundle, many shapes, each held against ONNX Runtime; last line `N passed, N failed`.

ppocrv4_rec runs at twenty widths from one bundle. The tolerance is that of run.py.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "models"))
sys.path.insert(0, str(ROOT / "tests/models"))
from inputs import make_inputs, save_inputs, shapes_of  # noqa: E402
from run import ABSOLUTE, RELATIVE, UNFUSED, compare, reference  # noqa: E402

# model -> (--dim arguments, input shapes of the runs)
CASES = {
    "ppocrv4_rec": (["p2o.DynamicDimension.0=1", "x.2=48", "p2o.DynamicDimension.1=16..640:320"],
                    [{"x": [1, 3, 48, width]} for width in (*range(16, 152, 8), 201, 320, 639)]),
    "minilm_l3": (["batch_size=1..2:1", "sequence_length=1..128:64"],
                  [{name: [batch, length] for name in ("input_ids", "attention_mask")}
                   for batch, length in ((1, 1), (1, 7), (2, 16), (1, 128))]),
    "ppocrv4_det": (["p2o.DynamicDimension.0=1", "p2o.DynamicDimension.1=32..640", "p2o.DynamicDimension.2=32..640"],
                    [{"x": [1, 3, height, width]} for height, width in ((32, 64), (96, 32), (64, 160))]),
    "magika": (["unk__214=1..8"], [{"bytes": [batch, 2048]} for batch in (1, 3)]),
}


def run_shape(args, bundle, source, shapes, folder):
    inputs = make_inputs(source, {**shapes_of(source.stem), **shapes}, 1)
    out = folder / "out"
    result = subprocess.run([args.entente, "run", bundle, "--output-dir", out, *save_inputs(inputs, folder)],
                            capture_output=True, text=True, timeout=args.timeout)
    if result.returncode:
        return np.inf, f"exit {result.returncode}: {result.stderr.strip()}"
    found = {path.stem: np.load(path) for path in out.glob("*.npy")}
    _, over, reason = compare(reference(source, inputs, source.stem not in UNFUSED), found, (ABSOLUTE, RELATIVE, 0))
    return over, reason


def run_model(args, name):
    dims, runs = CASES[name]
    source = ROOT / "build/models" / f"{name}.onnx"
    results = []
    with tempfile.TemporaryDirectory() as folder_name:
        folder = pathlib.Path(folder_name)
        bundle = folder / "m.ent"
        command = [args.entente, "compile", source, "--device", args.device, "-o", bundle]
        for dim in dims:
            command += ["--dim", dim]
        subprocess.run(command, check=True, capture_output=True)
        for shapes in runs:
            over, reason = run_shape(args, bundle, source, shapes, folder)
            text = " ".join("x".join(map(str, dims)) for dims in shapes.values())
            print(f"{name:14} {text:20} {over:10.3g}  {'FAILED: ' + reason if reason else 'ok'}", flush=True)
            results.append(not reason)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entente", default=ROOT / "build/bin/entente", type=pathlib.Path)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--timeout", type=float, default=120, help="seconds a run may take")
    parser.add_argument("--models", default=",".join(CASES))
    args = parser.parse_args()
    results = [result for name in args.models.split(",") for result in run_model(args, name)]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
