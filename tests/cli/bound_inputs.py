#!/usr/bin/env python3
"""Inputs whose values decide shapes: bound to what the model is run with, guarded in the bundle, said aloud.
Last line `N passed, N failed`."""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "import"))
from commands import check, expect, results  # noqa: E402
from onnx_bytes import FLOAT, INT64, attr_tensor, graph, model, node, tensor, value  # noqa: E402


def axes_model(path):
    """y = ReduceMax(x, axes + zero): the axes are computed from an input."""
    zero = tensor("zero", INT64, [1], struct.pack("<q", 0))
    nodes = [node("Add", ["axes", "zero"], ["a"], name="add"),
             node("ReduceMax", ["x", "a"], ["y"], name="max")]
    x, axes, y = value("x", FLOAT, [2, 3]), value("axes", INT64, [1]), value("y", FLOAT, ["a", "b"])
    path.write_bytes(model(graph(nodes, [x, axes], [y], [zero]), 18))


def declined_fold(folder):
    """ones[8192,8192] * 2, of which one row is read: nothing of it gets into the bundle, and explain says so."""
    shape, two = tensor("s", INT64, [2], struct.pack("<2q", 8192, 8192)), tensor("two", FLOAT, [], struct.pack("<f", 2))
    one = attr_tensor("value", tensor("", FLOAT, [1], struct.pack("<f", 1)))
    nodes = [node("ConstantOfShape", ["s"], ["c"], [one], name="fill"), node("Mul", ["c", "two"], ["m"], name="mul"),
             node("Gather", ["m", "i"], ["y"], name="gather")]
    source, bundle = folder / "fold.onnx", folder / "fold.ent"
    source.write_bytes(model(graph(nodes, [value("i", INT64, [1])], [value("y", FLOAT, [1, 8192])], [shape, two]), 17))
    expect("explain names the fold", 0, "explain", source, stdout="'fill' (ConstantOfShape) was not folded: its result of 268435456 bytes")
    expect("compile without it", 0, "compile", source, "-o", bundle)
    check("a small bundle", bundle.stat().st_size < 1 << 20, bundle.stat().st_size)


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
        declined_fold(folder)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
