"""Models of one node that moves elements, or does little to each: ns an element of the result, on one thread."""
import pathlib
import random
import struct
import sys
import tempfile

from common import ROOT, run_json

sys.path.insert(0, str(ROOT / "tests/import"))
from onnx_bytes import FLOAT, INT64, attr_int, attr_ints, attr_string, graph, model, node, tensor, value  # noqa: E402

ROUNDS = 5


def i64(name, items):
    return tensor(name, INT64, [len(items)], struct.pack(f"<{len(items)}q", *items))


def f32(name, items):
    return tensor(name, FLOAT, [len(items)], struct.pack(f"<{len(items)}f", *items))


def cases():
    """name: (node, shape of x, shape of y, constants, shape of a second input or None)"""
    places = random.Random(1).choices(range(4096), k=4096)
    scales = f32("s", [1, 1, 2, 2])
    return {
        "gather_elements_of_rows": (node("Gather", ["x", "i"], ["y"], [attr_int("axis", 1)]), (64, 4096), (64, 4096), [i64("i", places)], None),
        "gather_rows_of_384": (node("Gather", ["x", "i"], ["y"]), (4096, 384), (1024, 384), [i64("i", places[:1024])], None),
        "gather_rows_of_16": (node("Gather", ["x", "i"], ["y"]), (4096, 16), (4096, 16), [i64("i", places)], None),
        "pad_reflect": (node("Pad", ["x", "p"], ["y"], [attr_string("mode", "reflect")]), (64, 4096), (64, 4224), [i64("p", [0, 64, 0, 64])], None),
        "pad_constant": (node("Pad", ["x", "p"], ["y"]), (64, 4096), (64, 4224), [i64("p", [0, 64, 0, 64])], None),
        "resize_nearest_2x": (node("Resize", ["x", "", "s"], ["y"], [attr_string("mode", "nearest")]), (1, 32, 64, 64), (1, 32, 128, 128), [scales], None),
        "slice_every_third": (node("Slice", ["x", "b", "e", "a", "k"], ["y"]), (64, 4096), (64, 1366),
                              [i64("b", [0]), i64("e", [4096]), i64("a", [1]), i64("k", [3])], None),
        "transpose": (node("Transpose", ["x"], ["y"], [attr_ints("perm", [1, 0])]), (512, 512), (512, 512), [], None),
        "depth_to_space": (node("DepthToSpace", ["x"], ["y"], [attr_int("blocksize", 2)]), (1, 64, 64, 64), (1, 16, 128, 128), [], None),
        "scale_rows_of_7": (node("Mul", ["x", "z"], ["y"]), (1, 64, 48, 7), (1, 64, 48, 7), [], (1, 64, 48, 1)),
    }


def measure(folder, case):
    """Measured and predicted ns an element; the least of some rounds, as other programs only slow it down."""
    what, x, y, constants, z = case
    inputs = [value("x", FLOAT, x)] + ([value("z", FLOAT, z)] if z else [])
    path = pathlib.Path(folder) / "move.onnx"
    path.write_bytes(model(graph([what], inputs, [value("y", FLOAT, y)], constants), 18))
    rounds = [run_json("explain", path, "--measure", "--device", "cpu", "--threads", 1)["steps"] for _ in range(ROUNDS)]
    count = 1
    for dim in y:
        count *= dim
    took = min(sum(step.get("measured_ns") or 0 for step in steps) for steps in rounds)
    return took / count, sum(step.get("predicted_ns") or 0 for step in rounds[0]) / count


def moves():
    """(name, measured, predicted) of each case."""
    with tempfile.TemporaryDirectory() as folder:
        return [(name, *measure(folder, case)) for name, case in cases().items()]
