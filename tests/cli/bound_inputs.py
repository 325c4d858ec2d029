#!/usr/bin/env python3
"""Inputs whose values decide shapes: bound to what the model is run with, guarded in the bundle, said aloud.
Last line `N passed, N failed`."""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "import"))
from commands import check, expect, results  # noqa: E402
from onnx_bytes import FLOAT, INT64, graph, model, node, tensor, value  # noqa: E402


def axes_model(path):
    """y = ReduceMax(x, axes + zero): the axes are computed from an input."""
    zero = tensor("zero", INT64, [1], struct.pack("<q", 0))
    nodes = [node("Add", ["axes", "zero"], ["a"], name="add"),
             node("ReduceMax", ["x", "a"], ["y"], name="max")]
    x, axes, y = value("x", FLOAT, [2, 3]), value("axes", INT64, [1]), value("y", FLOAT, ["a", "b"])
    path.write_bytes(model(graph(nodes, [x, axes], [y], [zero]), 18))


def pb(path, dtype, dims, raw):
    path.write_bytes(tensor("", dtype, dims, raw))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, bundle = folder / "m.onnx", folder / "m.ent"
        axes_model(source)
        pb(folder / "x.pb", FLOAT, [2, 3], struct.pack("<6f", 1, 9, 3, 4, 5, 6))
        for axis in (-1, 0):
            pb(folder / f"a{axis}.pb", INT64, [1], struct.pack("<q", axis))
        given = ["--input", f"x={folder / 'x.pb'}"]
        for device in ("cpu", "reference"):
            expect(f"rows on {device}", 0, "run", source, *given, "--input", f"axes={folder / 'a-1.pb'}", "--device", device,
                   stdout="y: f32[2,1] 9 6")
            expect(f"columns on {device}", 0, "run", source, *given, "--input", f"axes={folder / 'a0.pb'}", "--device", device,
                   stdout="y: f32[1,3] 4 9 6")
        expect("it is said", 0, "run", source, *given, "--input", f"axes={folder / 'a0.pb'}", "-v",
               stderr="input 'axes' is fixed to 0: its value decides a shape")
        expect("without a value", 3, "compile", source, "-o", bundle, stderr="max")
        expect("explain", 0, "explain", source, "--const", "axes=-1", stdout="input 'axes' is fixed to -1")
        expect("compile", 0, "compile", source, "-o", bundle, "--const", "axes=-1")
        expect("a made input", 0, "run", bundle, *given, stdout="y: f32[2,1] 9 6")
        out = expect("another value", 3, "run", bundle, *given, "--input", f"axes={folder / 'a0.pb'}", stderr="compiled for -1 there")
        check("no numbers", "f32" not in out, out)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
