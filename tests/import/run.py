#!/usr/bin/env python3
"""Hostile and odd models through `entente print MODEL --stage import`: exit code and rule of each.

usage: run.py [PROGRAM]   (default: $ENTENTE, else build/bin/entente); last line: N passed, N failed
"""
import os
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from onnx_bytes import *  # noqa: E402,F403

MODEL, UNSUPPORTED, LIMIT = 2, 3, 6
W = floats([1, 2, 3, 4])
X, Y = value("x"), value("y")
RELU = node("Relu", ["x"], ["y"], name="r")


def simple(nodes, version=17, initializers=(), **more):
    """A model with input x and output y, both f32[4]."""
    return model(graph(nodes, [X], [Y], initializers), version, **more)


def one(op, attributes=(), version=17, inputs=("x",), initializers=(), **more):
    return simple([node(op, list(inputs), ["y"], attributes, name="n")], version, initializers, **more)


def with_weight(weight, version=17):
    return one("Add", version=version, inputs=("x", "w"), initializers=[weight])


def outside(**entries):
    return with_weight(tensor("w", FLOAT, [4], extra=external(**entries)))


def branch(nodes, outputs, inputs=(), initializers=()):
    return graph(nodes, inputs, [value(o) for o in outputs], initializers, name="b")


def if_model(then_branch, else_branch, extra_nodes=(), initializers=()):
    c = tensor("c", BOOL, [], b"\x01")
    n = node("If", ["c"], ["y"], [attr_graph("then_branch", then_branch), attr_graph("else_branch", else_branch)], name="if")
    return simple([n, *extra_nodes], 17, [c, *initializers])


def nested(depth):
    g = branch([node("Identity", ["x"], ["o"])], ["o"])
    for _ in range(depth):
        g = branch([node("If", ["c"], ["o"], [attr_graph("then_branch", g), attr_graph("else_branch", OTHER)])], ["o"])
    return if_model(g, OTHER)


def deep_types(depth):
    t = data(1, number(1, FLOAT))
    for _ in range(depth):
        t = data(4, data(1, t))
    return model(graph([RELU], [data(1, "x") + data(2, t)], [Y]))


BODY = branch([node("Identity", ["x"], ["o"])], ["o"])
OTHER = branch([node("Identity", ["x"], ["p"])], ["p"])

# name: (bytes, exit code, rule); rule None: accepted
CASES = {
    "good": (simple([RELU]), 0, None),
    "empty": (b"", MODEL, "file.empty"),
    "truncated": (simple([RELU])[:-7], MODEL, "file.truncated"),
    "text": (b"#!/bin/sh\necho this is no model\n", MODEL, None),
    "zeros": (bytes(64), MODEL, "file.not-onnx"),
    "png": (b"\x89PNG\r\n\x1a\n" + bytes(40), MODEL, None),
    "only-header": (model(None), MODEL, "file.no-graph"),
    "other-protobuf": (data(2, "hello"), MODEL, "file.not-onnx"),
    "no-ir": (simple([RELU], ir=None), MODEL, "ir.missing"),
    "ir-too-new": (simple([RELU], ir=99), UNSUPPORTED, "ir.version"),
    "ir-too-old": (simple([RELU], ir=1), UNSUPPORTED, "ir.version"),
    "opset-0": (simple([RELU], 0), UNSUPPORTED, "opset.version"),
    "opset-5": (simple([RELU], 5), UNSUPPORTED, "opset.version"),
    "opset-28": (simple([RELU], 28), UNSUPPORTED, "opset.version"),
    "opset-7": (simple([RELU], 7), 0, None),
    "opset-27": (simple([RELU], 27), 0, None),
    "opset-negative": (simple([RELU], -1), UNSUPPORTED, "opset.version"),
    "opset-missing": (simple([RELU], None), MODEL, "opset.missing"),
    "opset-twice": (simple([RELU], 17, opsets=[opset(13, "ai.onnx")]), MODEL, "opset.repeated"),
    "opset-unused-domain": (simple([RELU], 17, opsets=[opset(999, "com.example")]), 0, None),
    "unknown-domain": (simple([node("Fancy", ["x"], ["y"], name="n", domain="com.example")],
                              opsets=[opset(1, "com.example")]), UNSUPPORTED, "operator.domain"),
    "unknown-operator": (one("NoSuchThing"), UNSUPPORTED, "operator.unknown"),
    "operator-too-new": (one("Gelu"), MODEL, "operator.version"),
    "operator-removed": (one("Upsample", inputs=("x", "x")), MODEL, "operator.version"),
    "no-operator": (simple([data(1, "x") + data(2, "y")]), MODEL, "operator.no-type"),
    "too-few-inputs": (one("Add"), MODEL, "operator.arity"),
    "too-many-inputs": (one("Relu", inputs=("x", "x")), MODEL, "operator.arity"),
    "required-input-absent": (one("Where", inputs=("x", "", "x")), MODEL, "operator.missing-input"),
    "undefined-input": (one("Relu", inputs=("nope",)), MODEL, "graph.undefined-value"),
    "undefined-output": (model(graph([RELU], [X], [value("z")])), MODEL, "graph.undefined-output"),
    "no-outputs": (model(graph([RELU], [X], [])), MODEL, "graph.no-outputs"),
    "duplicate-output": (simple([RELU, node("Neg", ["x"], ["y"])]), MODEL, "graph.duplicate-value"),
    "duplicate-initializer": (one("Add", inputs=("x", "w"), initializers=[tensor("w", FLOAT, [4], W)] * 2),
                              MODEL, "graph.duplicate-value"),
    "cycle": (simple([node("Add", ["x", "b"], ["a"], name="first"), node("Neg", ["a"], ["b"], name="second"),
                      node("Relu", ["b"], ["y"])]), MODEL, "graph.cycle"),
    "self-cycle": (simple([node("Add", ["x", "y"], ["y"], name="self")]), MODEL, "graph.cycle"),
    "cycle-through-capture": (if_model(branch([node("Identity", ["late"], ["o"])], ["o"]), BODY,
                                       [node("Neg", ["y"], ["late"])]), MODEL, "graph.cycle"),
    "unsorted": (simple([node("Relu", ["a"], ["y"]), node("Neg", ["x"], ["a"])]), 0, None),
    "captured-later": (if_model(branch([node("Identity", ["late"], ["o"])], ["o"]), BODY,
                                [node("Neg", ["x"], ["late"])]), 0, None),
    "shadowing": (if_model(branch([node("Neg", ["x"], ["late"]), node("Relu", ["late"], ["o"])], ["o"]), BODY,
                           [node("Neg", ["x"], ["late"])]), 0, None),
    "branch-hands-outer-value-on": (if_model(branch([], ["x"]), BODY), 0, None),
    "branch-with-input": (if_model(branch([node("Identity", ["x"], ["o"])], ["o"], [value("i")]), BODY), MODEL, "graph.inputs"),
    "branch-output-count": (if_model(branch([node("Identity", ["x"], ["o"])], ["o", "o"]), BODY), MODEL, "graph.output-count"),
    "branch-missing": (simple([node("If", ["c"], ["y"], [attr_graph("then_branch", BODY)])], 17,
                              [tensor("c", BOOL, [], b"\1")]), MODEL, "attribute.missing"),
    "nested-20": (nested(20), 0, None),
    "nested-5000": (nested(5000), LIMIT, "limit.nesting"),
    "types-nested-20000": (deep_types(20000), LIMIT, "limit.nesting"),
    "attribute-unknown": (one("Relu", [attr_int("strength", 3)]), MODEL, "attribute.unknown"),
    "attribute-of-later-version": (one("Reshape", [attr_int("allowzero", 1)], 13, ("x", "x")), MODEL, "attribute.unknown"),
    "attribute-leftover": (one("Relu", [attr_ints("consumed_inputs", [0])]), 0, None),
    "attribute-missing": (one("Concat"), MODEL, "attribute.missing"),
    "attribute-type": (one("Softmax", [attr_string("axis", "1")]), MODEL, "attribute.type"),
    "attribute-twice": (one("Softmax", [attr_int("axis", 0), attr_int("axis", 0)]), MODEL, "attribute.repeated"),
    "attribute-broadcast": (one("Add", [attr_int("broadcast", 1)], 7, ("x", "x")), MODEL, "attribute.broadcast"),
    "sparse-initializer": (model(graph([RELU], [X], [Y], extra=data(15, data(1, tensor("s", FLOAT, [1], floats([1])))))),
                           UNSUPPORTED, "initializer.sparse"),
    "constant-sparse": (simple([node("Constant", [], ["k"], [attribute("sparse_value", 11, data(22, b""))]),
                                node("Add", ["x", "k"], ["y"])]), UNSUPPORTED, "constant.sparse"),
    "constant-empty": (simple([node("Constant", [], ["k"]), node("Add", ["x", "k"], ["y"])]), MODEL, "constant.no-value"),
    "constant-twice": (simple([node("Constant", [], ["k"], [attr_int("value_int", 1), attr_int("value_int", 2)]),
                               node("Add", ["x", "k"], ["y"])]), MODEL, "constant.no-value"),
    "sequence-input": (model(graph([RELU], [data(1, "x") + data(2, data(4, data(1, data(1, number(1, 1)))))], [Y])),
                       UNSUPPORTED, "type.not-tensor"),
    "string-input": (model(graph([RELU], [value("x", STRING)], [Y])), UNSUPPORTED, "tensor.string"),
    "untyped-input": (model(graph([RELU], [data(1, "x")], [Y])), MODEL, "input.no-type"),
    "negative-shape": (model(graph([RELU], [value("x", FLOAT, [-7])], [Y])), MODEL, "shape.negative-dim"),
    "rank-9": (model(graph([RELU], [value("x", FLOAT, [1] * 9)], [Y])), UNSUPPORTED, "tensor.rank"),
    "training-dropout": (one("Dropout", inputs=("x", "", "t"), initializers=[tensor("t", BOOL, [], b"\1")]),
                         UNSUPPORTED, "operator.training"),
    "tensor-short": (with_weight(tensor("w", FLOAT, [4], W[:15])), MODEL, "tensor.size"),
    "tensor-long": (with_weight(tensor("w", FLOAT, [4], W + b"\0")), MODEL, "tensor.size"),
    "tensor-no-data": (with_weight(tensor("w", FLOAT, [4])), MODEL, "tensor.size"),
    "tensor-negative": (with_weight(tensor("w", FLOAT, [-4], W)), MODEL, "tensor.negative-dim"),
    "tensor-overflow": (with_weight(tensor("w", FLOAT, [1 << 40, 1 << 40], W)), MODEL, "tensor.overflow"),
    "tensor-overflow-wraps": (with_weight(tensor("w", FLOAT, [1 << 32, 1 << 32, 4], W)), MODEL, "tensor.overflow"),
    "tensor-bytes-overflow": (with_weight(tensor("w", FLOAT, [1 << 61], W)), MODEL, "tensor.overflow"),
    "tensor-dtype-unknown": (with_weight(tensor("w", 77, [4], W)), UNSUPPORTED, "tensor.dtype"),
    "tensor-dtype-missing": (with_weight(tensor("w", 0, [4], W)), MODEL, "tensor.dtype"),
    "tensor-string": (with_weight(tensor("w", STRING, [1], extra=data(6, "text"))), UNSUPPORTED, "tensor.string"),
    "tensor-two-forms": (with_weight(tensor("w", FLOAT, [4], W, extra=data(4, W))), MODEL, "tensor.several-data"),
    "tensor-range": (with_weight(tensor("w", INT8, [1], extra=data(5, varint(300)))), MODEL, "tensor.range"),
    "tensor-segment": (with_weight(tensor("w", FLOAT, [4], W, extra=data(3, number(1, 0)))), UNSUPPORTED, "tensor.segment"),
    "initializer-listed-as-input": (model(graph([node("Add", ["x", "w"], ["y"])], [X, value("w")], [Y],
                                                [tensor("w", FLOAT, [4], W)]), 8, 3), 0, None),
    "initializer-disagrees": (model(graph([node("Add", ["x", "w"], ["y"])], [X, value("w", FLOAT, [5])], [Y],
                                          [tensor("w", FLOAT, [4], W)]), 8, 3), MODEL, "initializer.type"),
    "name-with-nul": (simple([node("Relu", ["x"], ["y"], name="a\0b")]), MODEL, "file.embedded-nul"),
    "name-not-utf8": (simple([node("Relu", ["x"], ["y"], name="n").replace(b"n", b"\xff")]), MODEL, "file.not-utf8"),
    "name-overlong": (simple([node("Relu", ["x"], ["y"], name="nn").replace(b"nn", b"\xc0\xaf")]), MODEL, "file.not-utf8"),
    "name-utf8": (simple([node("Relu", ["x"], ["y"], name="sch\u00f6n \u6f22 \U0001f600")]), 0, None),
    "function": (simple([node("Twice", ["x"], ["y"], domain="my")], functions=[
        function("Twice", "my", ["a"], ["c"], [node("Add", ["a", "a"], ["c"])])], opsets=[opset(1, "my")]), 0, None),
    "function-recursive": (simple([node("F", ["x"], ["y"], domain="my")], functions=[
        function("F", "my", ["a"], ["c"], [node("F", ["a"], ["c"], domain="my")])]), LIMIT, "limit.nesting"),
    "function-bomb": (simple([node("F0", ["x"], ["y"], domain="my")], functions=[
        function("F%d" % i, "my", ["a"], ["d"], [node("F%d" % (i + 1), ["a"], ["b"], domain="my"),
                                                  node("F%d" % (i + 1), ["b"], ["d"], domain="my")])
        for i in range(40)] + [function("F40", "my", ["a"], ["d"], [node("Neg", ["a"], ["d"])])]), LIMIT, "limit.nodes"),
    "function-arity": (simple([node("F", ["x", "x"], ["y"], domain="my")], functions=[
        function("F", "my", ["a"], ["c"], [node("Neg", ["a"], ["c"])])]), MODEL, "function.arity"),
    "function-output-undefined": (simple([node("F", ["x"], ["y"], domain="my")], functions=[
        function("F", "my", ["a"], ["zz"], [node("Neg", ["a"], ["c"])])]), MODEL, "function.undefined-output"),
    "function-twice": (simple([RELU], functions=[function("F", "my", ["a"], ["a"], [])] * 2), UNSUPPORTED, "function.overload"),
}

LOCATIONS = {
    "ok": (dict(location="ok.bin", offset="16", length="16"), None),
    "ok-subfolder": (dict(location="sub/./ok.bin", length="16"), None),
    "ok-link-inside": (dict(location="inside-link.bin", length="16"), None),
    "ok-no-length": (dict(location="ok.bin", offset="16"), None),
    "dotdot": (dict(location="../secret.bin", length="16"), "external-data.escapes"),
    "dotdot-middle": (dict(location="sub/../../secret.bin", length="16"), "external-data.escapes"),
    "dotdot-inside": (dict(location="sub/../ok.bin", length="16"), "external-data.escapes"),
    "absolute": (dict(location="/etc/hostname", length="1"), "external-data.absolute"),
    "link-out": (dict(location="link.bin", length="16"), "external-data.escapes"),
    "link-folder-out": (dict(location="linkdir/secret.bin", length="16"), "external-data.escapes"),
    "link-dangling": (dict(location="dangling.bin", length="16"), "external-data.missing"),
    "device": (dict(location="zero", length="16"), "external-data.escapes"),
    "fifo": (dict(location="fifo", length="16"), "external-data.not-a-file"),
    "folder": (dict(location="sub", length="16"), "external-data.not-a-file"),
    "folder-slash": (dict(location="sub/", length="16"), "external-data.missing"),
    "missing": (dict(location="nope.bin", length="16"), "external-data.missing"),
    "file-as-folder": (dict(location="ok.bin/x", length="16"), "external-data.missing"),
    "empty-location": (dict(location="", length="16"), "external-data.no-location"),
    "no-location": (dict(offset="0", length="16"), "external-data.no-location"),
    "past-end": (dict(location="ok.bin", offset="24", length="16"), "external-data.past-end"),
    "offset-negative": (dict(location="ok.bin", offset="-16", length="16"), "external-data.offset"),
    "offset-huge": (dict(location="ok.bin", offset=str(2**63 - 8), length="16"), "external-data.past-end"),
    "offset-over-64-bit": (dict(location="ok.bin", offset=str(2**64 + 16), length="16"), "external-data.offset"),
    "offset-text": (dict(location="ok.bin", offset="16x", length="16"), "external-data.offset"),
    "offset-space": (dict(location="ok.bin", offset=" 16", length="16"), "external-data.offset"),
    "offset-empty": (dict(location="ok.bin", offset="", length="16"), "external-data.offset"),
    "length-short": (dict(location="ok.bin", offset="0", length="8"), "external-data.length"),
    "length-long": (dict(location="ok.bin", offset="0", length="32"), "external-data.length"),
    "length-negative": (dict(location="ok.bin", length="-1"), "external-data.length"),
    "no-length-whole-file": (dict(location="ok.bin"), "external-data.length"),
    "nul": (dict(location="ok.bin\0x", length="16"), "external-data.embedded-nul"),
    "empty-file": (dict(location="empty.bin", length="16"), "external-data.past-end"),
}


class Runner:
    def __init__(self, program):
        self.program, self.passed, self.failed = program, 0, 0

    def check(self, name, path, code, rule, more=()):
        run = subprocess.run([self.program, "print", path, "--stage", "import", *more], capture_output=True, timeout=120)
        text = (run.stdout + run.stderr).decode(errors="replace")
        ok = run.returncode == code and (rule is None or "[%s]" % rule in text)
        if code != 0:
            ok = ok and os.path.basename(path) in text
        self.passed, self.failed = self.passed + ok, self.failed + (not ok)
        if not ok:
            last = text.strip().splitlines()[-1:] or [""]
            print("FAIL %s: expected exit %d [%s], got %d: %s" % (name, code, rule, run.returncode, last[0][:300]))


def make_outside(folder):
    os.makedirs(os.path.join(folder, "model", "sub"))
    inner = os.path.join(folder, "model")
    for path in ("secret.bin", "model/ok.bin"):
        with open(os.path.join(folder, path), "wb") as f:
            f.write(W + W)
    for path, size in (("model/sub/ok.bin", 16), ("model/empty.bin", 0)):
        with open(os.path.join(folder, path), "wb") as f:
            f.write(W[:size])
    os.symlink("../secret.bin", os.path.join(inner, "link.bin"))
    os.symlink("..", os.path.join(inner, "linkdir"))
    os.symlink("sub/ok.bin", os.path.join(inner, "inside-link.bin"))
    os.symlink("nothing-here", os.path.join(inner, "dangling.bin"))
    os.symlink("/dev/zero", os.path.join(inner, "zero"))
    os.mkfifo(os.path.join(inner, "fifo"))
    return inner


def main():
    program = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("ENTENTE", "build/bin/entente")
    runner = Runner(os.path.abspath(program))
    with tempfile.TemporaryDirectory() as folder:
        inner = make_outside(folder)
        for name, (content, code, rule) in CASES.items():
            path = os.path.join(folder, name + ".onnx")
            with open(path, "wb") as f:
                f.write(content)
            runner.check(name, path, code, rule)
        for name, (entries, rule) in LOCATIONS.items():
            path = os.path.join(inner, "external-" + name + ".onnx")
            with open(path, "wb") as f:
                f.write(outside(**entries))
            runner.check("external " + name, path, MODEL if rule else 0, rule)
        path = os.path.join(inner, "external-link-out.onnx")
        runner.check("external link-out, root allowed", path, 0, None, ["--external-data-root", folder])
        runner.check("external dotdot, root allowed", os.path.join(inner, "external-dotdot.onnx"), MODEL,
                     "external-data.escapes", ["--external-data-root", folder])
        runner.check("missing file", os.path.join(folder, "no-such-file.onnx"), MODEL, None)
        runner.check("a folder", folder, MODEL, None)
    print("%d passed, %d failed" % (runner.passed, runner.failed))
    return 1 if runner.failed else 0


if __name__ == "__main__":
    sys.exit(main())
