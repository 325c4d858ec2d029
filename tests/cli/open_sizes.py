#!/usr/bin/env python3
"""Sizes that stay open: one bundle for a range of shapes, its guard, and what --dim takes. Last line `N passed, N failed`."""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "import"))
from commands import expect, results  # noqa: E402
from onnx_bytes import FLOAT, graph, model, node, tensor, value  # noqa: E402


def sum_model(path):
    """y = ReduceSum(Transpose(x)) over rows, x [n, w]: every size of it is open."""
    axes = tensor("axes", 7, [1], struct.pack("<q", 1))
    nodes = [node("Transpose", ["x"], ["t"], name="turn"), node("ReduceSum", ["t", "axes"], ["y"], name="sum")]
    path.write_bytes(model(graph(nodes, [value("x", FLOAT, ["n", "w"])], [value("y", FLOAT, ["w", "one"])], [axes]), 18))


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        source, bundle = folder / "m.onnx", folder / "m.ent"
        sum_model(source)
        for n, w in ((1, 2), (3, 1), (2, 4), (5, 2)):
            numbers = range(1, n * w + 1)
            (folder / f"x{n}{w}.pb").write_bytes(tensor("", FLOAT, [n, w], struct.pack(f"<{n * w}f", *numbers)))
        given = lambda n, w: ["--input", f"x={folder / f'x{n}{w}.pb'}"]  # noqa: E731
        expect("without sizes", 1, "compile", source, "-o", bundle, stderr="or ranges like 1..64")
        for device in ("cpu", "reference"):
            expect(f"compile for {device}", 0, "compile", source, "--dim", "n=1..4", "--dim", "w=1..8:4", "--device", device,
                   "-o", bundle)
            expect(f"1x2 on {device}", 0, "run", bundle, *given(1, 2), stdout="y: f32[2,1] 1 2")
            expect(f"3x1 on {device}", 0, "run", bundle, *given(3, 1), stdout="y: f32[1,1] 6")
            expect(f"2x4 on {device}", 0, "run", bundle, *given(2, 4), stdout="y: f32[4,1] 6 8 10 12")
            expect(f"too many rows on {device}", 3, "run", bundle, *given(5, 2),
                   stderr="the dimension 'n' is 5; this bundle is for 1 to 4")
        expect("none or one row", 0, "compile", source, "--dim", "n=0..1", "--dim", "w=1..8", "-o", bundle)
        expect("one row", 0, "run", bundle, *given(1, 2), stdout="y: f32[2,1] 1 2")
        expect("one size fixed", 0, "compile", source, "--dim", "n=2", "--dim", "w=1..8", "-o", bundle)
        expect("the fixed one", 1, "run", bundle, *given(1, 2), stderr="dimension 0 is 1 and must be 2")
        for text in ("n=", "n=1..", "n=..2", "n=1..2:", "n=1-2", "n=1..2..3", "n=99999999999999999999", "=1..2"):
            expect(f"--dim {text}", 1, "compile", source, "--dim", text, "-o", bundle, stderr="LEAST..MOST:TYPICAL")
        expect("an empty range", 1, "compile", source, "--dim", "n=4..2", "--dim", "w=1", "-o", bundle, stderr="is empty")
        expect("no such size", 1, "compile", source, "--dim", "q=1..2", "-o", bundle, stderr="no symbolic size 'q'")
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
