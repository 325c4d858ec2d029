#!/usr/bin/env python3
"""Loop and Scan as a person meets them: written out where the iterations are known, refused by name where not.
Last line `N passed, N failed`."""
import pathlib
import struct
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "import"))
from commands import check, expect, results  # noqa: E402
from onnx_bytes import BOOL, FLOAT, INT64, attr_graph, attr_int, attr_ints, graph, model, node, tensor, value  # noqa: E402


def i64(name, dims, *items):
    return tensor(name, INT64, dims, struct.pack(f"<{len(items)}q", *items))


def f32(name, dims, *items):
    return tensor(name, FLOAT, dims, struct.pack(f"<{len(items)}f", *items))


def boolean(name, item):
    return tensor(name, BOOL, [], bytes([item]))


def body(nodes, states, scans=(), condition="keep", constants=(), name="body"):
    """states: (in, out, dims) each."""
    inputs = [value("i", INT64, []), value("c", BOOL, [])] + [value(s[0], FLOAT, s[2]) for s in states]
    outputs = [value(condition, BOOL, [])] + [value(s[1], FLOAT, s[2]) for s in states] + [value(s, FLOAT, ["?"]) for s in scans]
    return graph(nodes, inputs, outputs, constants, name=name)


KEEP = node("Identity", ["c"], ["keep"])
DOUBLE = body([KEEP, node("Add", ["a", "a"], ["b"], name="twice"), node("Identity", ["b"], ["s"])], [("a", "b", [2])], ["s"])


def loop(trips, condition, inner, outputs, constants, inputs=(("x", FLOAT, [2]),), extra=()):
    n = node("Loop", [trips, condition, "x"], outputs, [attr_graph("body", inner)], name="loop")
    return model(graph([n, *extra], [value(*i) for i in inputs], [value(o, FLOAT, ["?"]) for o in outputs], constants), 17)


GROWS = body([KEEP, node("Concat", ["a", "a"], ["b"], [attr_int("axis", 0)])], [("a", "b", [2])])
UNTIL_TWO = body([node("Less", ["i", "one"], ["keep"]), node("Add", ["a", "a"], ["b"])], [("a", "b", [2])],
                 constants=[i64("one", [], 1)])
UNTIL_LARGE = body([node("ReduceMax", ["a"], ["m"], [attr_int("keepdims", 0)]), node("Less", ["m", "limit"], ["keep"]),
                    node("Add", ["a", "a"], ["b"])], [("a", "b", [2])], constants=[f32("limit", [], 100)])
GROWS_UNTIL_LARGE = body([node("ReduceSum", ["a"], ["m"], [attr_int("keepdims", 0)]), node("Less", ["m", "limit"], ["keep"]),
                          node("Concat", ["a", "a"], ["b"], [attr_int("axis", 0)])], [("a", "b", [2])], constants=[f32("limit", [], 9)])
PLUS_CAPTURED = body([node("Add", ["a", "half"], ["b"]), node("Mul", ["b", "b"], ["d"]), node("ReduceMax", ["d"], ["e"], [attr_int("keepdims", 0)]),
                      node("Less", ["e", "limit"], ["keep"])], [("a", "b", [2])], constants=[f32("limit", [], 50)])
NEVER = body([KEEP, node("Add", ["a", "a"], ["b"])], [("a", "b", [2])])
NESTED = body([KEEP, node("Loop", ["i", "", "a"], ["b"], [attr_graph("body", graph(
    [node("Identity", ["c2"], ["k2"]), node("Add", ["a2", "one"], ["b2"])],
    [value("i2", INT64, []), value("c2", BOOL, []), value("a2", FLOAT, [2])],
    [value("k2", BOOL, []), value("b2", FLOAT, [2])], [f32("one", [], 1)], name="inner"))], name="inner")], [("a", "b", [2])])


def scan(axes, directions, out_axes, out_directions):
    """Running sums over the last axis of x[2,3]: state[2], outputs the state after each step."""
    inner = graph([node("Add", ["a", "t"], ["b"]), node("Identity", ["b"], ["s"])],
                  [value("a", FLOAT, [2]), value("t", FLOAT, [2])], [value("b", FLOAT, [2]), value("s", FLOAT, [2])], name="step")
    attributes = [attr_graph("body", inner), attr_int("num_scan_inputs", 1), attr_ints("scan_input_axes", axes),
                  attr_ints("scan_input_directions", directions), attr_ints("scan_output_axes", out_axes),
                  attr_ints("scan_output_directions", out_directions)]
    n = node("Scan", ["zero", "x"], ["y", "z"], attributes, name="scan")
    return model(graph([n], [value("x", FLOAT, [2, 3])], [value("y", FLOAT, ["?"]), value("z", FLOAT, ["?", "?"])],
                       [f32("zero", [2], 0, 0)]), 17)


CASES = [
    ("three times", loop("m", "", DOUBLE, ["y", "z"], [i64("m", [], 3)]), ["y: f32[2] 8 16", "z: f32[3,2] 2 4 4 8 8 16"]),
    ("not once", loop("m", "", DOUBLE, ["y", "z"], [i64("m", [], 0)]), ["y: f32[2] 1 2", "z: f32[0,2]\n"]),
    ("condition is false", loop("", "f", DOUBLE, ["y", "z"], [boolean("f", 0)]), ["y: f32[2] 1 2", "z: f32[0,2]\n"]),
    ("stops by the iteration", loop("", "t", UNTIL_TWO, ["y"], [boolean("t", 1)]), ["y: f32[2] 4 8"]),
    ("trip count ends it first", loop("m", "t", UNTIL_TWO, ["y"], [i64("m", [], 1), boolean("t", 1)]), ["y: f32[2] 2 4"]),
    ("a shape that grows", loop("m", "", GROWS, ["y"], [i64("m", [], 2)]), ["y: f32[8] 1 2 1 2 1 2 1 2"]),
    ("nested", loop("m", "", NESTED, ["y"], [i64("m", [], 4)]), ["y: f32[2] 7 8"]),
    ("a condition of the data", loop("", "t", UNTIL_LARGE, ["y"], [boolean("t", 1)]), ["y: f32[2] 128 256"]),
    ("captured values and the data", loop("", "t", PLUS_CAPTURED, ["y"], [boolean("t", 1), f32("k", [], 0.5)],
                                          extra=[node("Mul", ["x", "k"], ["half"])]), ["y: f32[2] 4 8"]),
    ("scan", scan([1], [0], [0], [0]), ["y: f32[2] 6 15", "z: f32[3,2] 1 4 3 9 6 15"]),
    ("scan backwards", scan([-1], [1], [-1], [1]), ["y: f32[2] 6 15", "z: f32[2,3] 6 5 3 15 11 6"]),
]
REFUSED = [
    ("a shape that grows unknown times", loop("", "t", GROWS_UNTIL_LARGE, ["y"], [boolean("t", 1)]), "'loop' (Loop)"),
    ("no end", loop("", "", NEVER, ["y"], []), "loop"),
]


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "x2.pb").write_bytes(f32("", [2], 1, 2))
        (folder / "x6.pb").write_bytes(f32("", [2, 3], 1, 2, 3, 4, 5, 6))
        source = folder / "m.onnx"
        for title, data, wanted in CASES:
            source.write_bytes(data)
            x = folder / ("x6.pb" if "scan" in title else "x2.pb")
            for device in ("cpu", "reference"):
                out = expect(f"{title} on {device}", 0, "run", source, "--input", f"x={x}", "--device", device)
                check(f"{title} on {device}: numbers", all(w in out for w in wanted), out)
        for title, data, who in REFUSED:
            source.write_bytes(data)
            expect(title, 3, "run", source, "--input", f"x={folder / 'x2.pb'}", stderr=who)
        source.write_bytes(loop("m", "", DOUBLE, ["y", "z"], [], inputs=(("x", FLOAT, [2]), ("m", INT64, []))))
        (folder / "m2.pb").write_bytes(i64("", [], 2))
        expect("a fed trip count", 0, "run", source, "--input", f"x={folder / 'x2.pb'}", "--input", f"m={folder / 'm2.pb'}",
               stdout="z: f32[2,2] 2 4 4 8")
        for device in ("cpu", "reference"):
            source.write_bytes(loop("m", "", NEVER, ["y"], [], inputs=(("x", FLOAT, [2]), ("m", INT64, []))))
            expect("trips at run time", 0, "compile", source, "-o", folder / "m.ent", "--device", device)
            for m, wanted in ((0, "1 2"), (1, "2 4"), (5, "32 64"), (2, "4 8"), (-3, "1 2")):
                (folder / "m.pb").write_bytes(i64("", [], m))
                expect(f"{m} trips on {device}", 0, "run", folder / "m.ent", "--input", f"x={folder / 'x2.pb'}", "--input",
                       f"m={folder / 'm.pb'}", stdout=f"y: f32[2] {wanted}\n")
        source.write_bytes(loop("m", "", DOUBLE, ["y", "z"], [], inputs=(("x", FLOAT, [2]), ("m", INT64, []))))
        expect("an unknown trip count", 3, "compile", source, "-o", folder / "m.ent", stderr="trip count")
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
