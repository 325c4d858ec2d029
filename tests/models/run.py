#!/usr/bin/env python3
"""Real models on this project beside ONNX Runtime, on the same seeded inputs, as one table; last line `N passed, N failed`.

A number agrees when |a-b| <= 1e-4 + 1e-3*|b|, b being ONNX Runtime's. Integers, shapes and dtypes must be equal. A model that needs
more has an entry in TOLERANCES with the reason. A model whose floats are all near zero fails too: zeros would pass. `over` is the largest |a-b| divided by what is allowed: 1.0 is the limit.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "models"))
from fetch import read_manifest  # noqa: E402
from inputs import make_inputs, save_inputs, shape_arguments, shapes_of  # noqa: E402

MODELS = [row["name"] for row in read_manifest()]
ABSOLUTE, RELATIVE = 1e-4, 1e-3
# model -> (absolute, relative, of the largest |b| of the output, reason)
TOLERANCES = {
    "smartturn_qdq": (0, 0, 1e-3, "its result is one of the 256 numbers of the last quantization, about 8e-4 apart where it is near 1; "
                                  "who rounds one number before it differently may land on the next one"),
}
# ONNX Runtime computes these as they stand: fused, it takes Softmax from a table of 256 numbers and, without VNNI, saturates sums
# of two products of 8 bits, which on this input moves its own result by three steps of the last quantization.
UNFUSED = ("smartturn_qdq",)


def reference(model_path, inputs, fused):
    levels = onnxruntime.GraphOptimizationLevel
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = levels.ORT_ENABLE_ALL if fused else levels.ORT_ENABLE_BASIC
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(str(model_path), options, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs)))


def ours(args, model_path, inputs, shapes, isa):
    """Runs the command-line tool; returns (outputs by file name, None) or (None, reason)."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "out"
        command = [args.entente, "run", model_path, "--device", args.device, "--output-dir", out,
                   *shape_arguments(shapes), *save_inputs(inputs, folder), *args.extra]
        environment = dict(os.environ)
        if isa:
            environment["ENTENTE_CPU_ISA"] = isa
        try:
            result = subprocess.run(command, capture_output=True, text=True, timeout=args.timeout, env=environment)
        except subprocess.TimeoutExpired:
            return None, f"no result within {args.timeout} s"
        except OSError as error:
            return None, str(error)
        if result.returncode:
            lines = result.stderr.strip().splitlines()
            picked = [line for line in lines if "ERROR" in line or "runtime error" in line][:1] or lines[-1:] or [""]
            return None, f"exit {result.returncode}: {picked[0]}"
        return {path.stem: np.load(path) for path in out.glob("*.npy")}, None


def compare_one(name, wanted, found, absolute, relative, of_peak):
    """(largest absolute error, largest error over what is allowed, reason or None)"""
    if found is None:
        return np.inf, np.inf, f"output {name} is missing"
    if found.shape != wanted.shape or found.dtype != wanted.dtype:
        return np.inf, np.inf, f"output {name}: {found.dtype}{found.shape}, not {wanted.dtype}{wanted.shape}"
    if wanted.size == 0:
        return 0.0, 0.0, None
    if not np.issubdtype(wanted.dtype, np.floating):
        equal = np.array_equal(wanted, found)
        return (0.0, 0.0, None) if equal else (np.inf, np.inf, f"output {name} differs")
    a, b = found.astype(np.float64), wanted.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        error = np.where(same, 0.0, np.abs(a - b))
        allowed = absolute + relative * np.abs(b) + of_peak * np.abs(b).max()
        over = np.where(same, 0.0, error / allowed)
    error, over = np.nan_to_num(error, nan=np.inf).max(), np.nan_to_num(over, nan=np.inf).max()
    return error, over, None if over <= 1 else f"output {name}: {over:.3g} times the tolerance"


def compare(wanted, found, tolerance):
    error = over = 0.0
    reasons = []
    for name, value in wanted.items():
        file_name = name.replace("/", "_").replace(":", "_")
        one_error, one_over, reason = compare_one(name, value, found.get(file_name), *tolerance)
        error, over = max(error, one_error), max(over, one_over)
        reasons += [reason] if reason else []
    return error, over, "; ".join(reasons)


def says_something(wanted, absolute):
    """False if zeros would nearly agree with the reference."""
    floats = [np.abs(value).max() for value in wanted.values() if np.issubdtype(value.dtype, np.floating) and value.size]
    return not floats or max(floats) >= 100 * absolute


def run_model(args, name, isas):
    path = args.folder / f"{name}.onnx"
    if not path.exists():
        print(f"{name:22} {'':8} FAILED: {path} is missing (./dev models {name})", flush=True)
        return [False] * len(isas)
    shapes = shapes_of(name)
    inputs = make_inputs(path, shapes, args.seed)
    wanted = reference(path, inputs, name not in UNFUSED)
    tolerance = TOLERANCES.get(name, (ABSOLUTE, RELATIVE, 0, ""))[:3]
    if not says_something(wanted, ABSOLUTE):
        print(f"{name:22} {'':8} FAILED: the reference is near zero on this input; choose another", flush=True)
        return [False] * len(isas)
    results = []
    for isa in isas:
        start = time.monotonic()
        found, reason = ours(args, path, inputs, shapes, isa)
        error, over = np.nan, np.nan
        if found is not None:
            error, over, reason = compare(wanted, found, tolerance)
        results.append(not reason)
        print(f"{name:22} {isa or 'best':8} {error:10.2e} {over:10.3g} {time.monotonic() - start:8.1f}  "
              f"{'FAILED: ' + reason if reason else 'ok'}", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entente", type=pathlib.Path, default=ROOT / "build" / "bin" / "entente")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "models", help="where the models lie")
    parser.add_argument("--models", default=",".join(MODELS), help="comma-separated names of the manifest")
    parser.add_argument("--isa", default="", help="comma-separated caps: baseline, avx2, avx512; default: the best only")
    parser.add_argument("--device", default="cpu", help="device set, as the tool takes it")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=600, help="seconds for one run")
    parser.add_argument("extra", nargs="*", help="further arguments of `entente run`, after --")
    args = parser.parse_args()
    print(f"{'model':22} {'isa':8} {'max error':>10} {'over':>10} {'seconds':>8}")
    results = []
    for name in args.models.split(","):
        results += run_model(args, name, args.isa.split(","))
    print(f"{results.count(True)} passed, {results.count(False)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
