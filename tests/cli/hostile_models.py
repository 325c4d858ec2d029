#!/usr/bin/env python3
"""Models meant to hurt: each is refused or compiled within its limits, and the peak memory of the process, less what it
takes for two nodes, stays under --max-memory-mb plus the mapped file. Then what a fold would blow up is declined and named. $ENTENTE is the program; last line `N passed, N failed`."""
import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/import"))
from commands import check, results  # noqa: E402
from onnx_bytes import *  # noqa: E402,F403

ENTENTE = os.environ.get("ENTENTE", str(ROOT / "build/bin/entente"))
MIB = 1 << 20
LIMIT = 6
SANITIZED = "sanitize" in ENTENTE  # its shadow memory counts as the process's


def run(*arguments):
    """Exit code, output and peak memory of the process alone."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([ENTENTE, *map(str, arguments)], stdout=out, stderr=out)
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        return child.returncode, out.read().decode(errors="replace"), usage.ru_maxrss * 1024


def ints(name, values):
    return tensor(name, INT64, [len(values)], struct.pack(f"<{len(values)}q", *values))


def filled(name, dims, value=1.0):
    """Two things: an initializer of the dims, and the node that blows it up."""
    return ints(name + ".dims", dims), node("ConstantOfShape", [name + ".dims"], [name], [
        attr_tensor("value", tensor("", FLOAT, [1], floats([value])))], name=name)


def nested(depth):
    inner = graph([node("Identity", ["x"], ["o"])], [], [value("o")])
    for _ in range(depth):
        choice = node("If", ["c"], ["o"], [attr_graph("then_branch", inner), attr_graph("else_branch", inner)] if depth < 9 else
                      [attr_graph("then_branch", inner), attr_graph("else_branch", graph([node("Neg", ["x"], ["o"])], [], [value("o")]))])
        inner = graph([choice], [], [value("o")])
    return model(graph([node("If", ["c"], ["y"], [attr_graph("then_branch", inner), attr_graph("else_branch", inner)])],
                       [value("x"), value("c", BOOL, ())], [value("y")]))


def simple(nodes, initializers=(), dims=(4,), functions=()):
    return model(graph(nodes, [value("x", FLOAT, dims)], [value("y", FLOAT, dims)], initializers), functions=functions)


def calls(count, fan):
    """Functions that call the next one `fan` times: fan^count nodes."""
    def body(i):
        names = ["a", *[f"t{k}" for k in range(fan - 1)], "d"]
        return [node(f"F{i + 1}", [names[k]], [names[k + 1]], domain="my") for k in range(fan)]
    return simple([node("F0", ["x"], ["y"], domain="my")], functions=[
        function(f"F{i}", "my", ["a"], ["d"], body(i)) for i in range(count)] + [
        function(f"F{count}", "my", ["a"], ["d"], [node("Neg", ["a"], ["d"])])])


def expand(dims):
    return simple([node("Expand", ["x", "s"], ["big"], name="grow"), node("ReduceMax", ["big"], ["y"], [attr_int("keepdims", 0)])],
                  [ints("s", dims)])


def many_fills(count):
    initializers, nodes = [], []
    last = "x"
    for i in range(count):
        dims, fill = filled(f"f{i}", [512, 511], float(i))
        initializers.append(dims)
        nodes += [fill, node("Add", [last, f"f{i}"], [f"s{i}" if i + 1 < count else "y"], name=f"add{i}")]
        last = f"s{i}"
    return simple(nodes, initializers, (512, 511))


def matmul_chain(count):
    dims, fill = filled("w", [512, 512], 0.001)
    nodes = [fill]
    for i in range(count):
        nodes.append(node("MatMul", ["w" if i == 0 else f"m{i - 1}", "w"], [f"m{i}"], name=f"mm{i}"))
    return simple([*nodes, node("Add", ["x", f"m{count - 1}"], ["y"])], [dims], (512, 512))


def folded_window():
    wide, fill = filled("image", [1, 1, 512, 512])
    return simple([fill, node("AveragePool", ["image"], ["pooled"], [attr_ints("kernel_shape", [400, 400]),
                   attr_ints("pads", [199, 199, 200, 200])], name="wide"), node("Add", ["x", "pooled"], ["y"])],
                  [wide], (1, 1, 512, 512))


def chain(count):
    names = ["x", *[f"v{i}" for i in range(count - 1)], "y"]
    return simple([node("Neg" if i % 2 else "Abs", [names[i]], [names[i + 1]]) for i in range(count)])


def attention_of_constants(count):
    """Folding it would need count * count scores."""
    inputs = [tensor(name, FLOAT, [1, 1, count, 1], floats([0.01]) * count) for name in "qkv"]
    return model(graph([node("Attention", ["q", "k", "v"], ["a"], name="scores"), node("Add", ["x", "a"], ["y"])],
                       [value("x", FLOAT, (1, 1, count, 1))], [value("y", FLOAT, (1, 1, count, 1))], inputs), 23)


def loops_in_loops(count):
    """Written out, the outer one gives `count` bodies to the module."""
    def body(nodes):
        return graph([*nodes, node("Identity", ["c"], ["c2"])], [value("i", INT64, ()), value("c", BOOL, ()), value("v")],
                     [value("c2", BOOL, ()), value("w")])
    inner = node("Loop", ["n", "", "v"], ["w"], [attr_graph("body", body([node("Add", ["v", "v"], ["w"])]))])
    return simple([node("Loop", ["n", "", "x"], ["y"], [attr_graph("body", body([inner]))])],
                  [tensor("n", INT64, [], struct.pack("<q", count))])


def packed_integers(count):
    """A byte each in the file, eight in memory."""
    items = tensor("i", INT64, [count], None, data(7, b"\x01" * count))
    return simple([node("Cast", ["i"], ["f"], [attr_int("to", FLOAT)]), node("Add", ["x", "f"], ["y"])], [items], (count,))


def long_names(size):
    name = "n" * size
    return simple([node("Neg", ["x"], [name]), node("Neg", [name], ["y"], name=name)])


def many_ports(count):
    return simple([node("Split", ["x"], [f"o{i}" for i in range(count)], [attr_int("axis", 0)]), node("Neg", ["o7"], ["y"])], dims=(count,))


HUGE = 1 << 40
# name: (model, flags, exit code, rule and words of the message)
HOSTILE = {
    "nesting": (nested(100), [], LIMIT, ["limit.nesting", "--max-nesting"]),
    "nesting-by-flag": (nested(20), ["--max-nesting", 10], LIMIT, ["limit.nesting", "--max-nesting"]),
    "function-recursion": (simple([node("F", ["x"], ["y"], domain="my")], functions=[
        function("F", "my", ["a"], ["b"], [node("F", ["a"], ["b"], domain="my")])]), [], LIMIT, ["limit.nesting"]),
    "function-bomb": (calls(40, 2), ["--max-nodes", 20000], LIMIT, ["limit.nodes", "--max-nodes"]),
    "nodes-by-flag": (chain(300), ["--max-nodes", 200], LIMIT, ["limit.nodes", "--max-nodes"]),
    "weight-without-data": (simple([node("Add", ["x", "w"], ["y"])], [tensor("w", FLOAT, [1 << 30])]), [], 2, ["tensor.size"]),
    "weight-too-big": (simple([node("Add", ["x", "w"], ["y"])], [tensor("w", FLOAT, [HUGE])]), [], LIMIT,
                       ["limit.tensor-bytes", "--max-tensor-mb"]),
    "weight-beyond-63-bits": (simple([node("Add", ["x", "w"], ["y"])], [tensor("w", FLOAT, [HUGE, HUGE])]), [], 2, ["tensor.overflow"]),
    "value-too-big": (expand([HUGE, 4]), [], LIMIT, ["limit.tensor-bytes", "grow", "--max-tensor-mb"]),
    "value-by-flag": (expand([1024, 1024, 4]), ["--max-tensor-mb", 8], LIMIT, ["limit.tensor-bytes", "grow", "--max-tensor-mb"]),
    "many-fills": (many_fills(200), [], 0, []),
    "matmul-chain": (matmul_chain(2000), ["--max-seconds", 2], LIMIT, ["limit.time", "stage 'rewrite'", "--max-seconds"]),
    "folded-window": (folded_window(), [], 0, []),
    "attention-of-constants": (attention_of_constants(4096), [], 0, []),
    "loops-in-loops": (loops_in_loops(1000), ["--max-memory-mb", 32], LIMIT, ["limit.memory", "--max-memory-mb", "stage 'rewrite'"]),
    "packed-integers": (packed_integers(2000000), ["--max-memory-mb", 16], LIMIT, ["limit.memory", "--max-memory-mb", "stage 'import'"]),
    "long-names": (long_names(1 << 20), [], 0, []),
    "many-ports": (many_ports(20000), ["--max-memory-mb", 16], LIMIT, ["limit.memory", "--max-memory-mb"]),
    "long-chain": (chain(3000), ["--max-memory-mb", 4], LIMIT, ["limit.memory", "--max-memory-mb", "stage '"]),
}


def compile_limited(path, memory_mb, flags):
    """Exit code, output and peak memory under a limit that takes the place of the flags' own."""
    at = flags.index("--max-memory-mb") if "--max-memory-mb" in flags else len(flags)
    return run("compile", path, "-o", path.with_suffix(".ent"), "--device", "cpu", "--max-memory-mb", memory_mb, *flags[:at], *flags[at + 2:])


def hostile(folder):
    (folder / "two.onnx").write_bytes(chain(2))
    _, _, least = compile_limited(folder / "two.onnx", 256, [])
    for name, (content, flags, code, words) in HOSTILE.items():
        path, bundle = folder / f"{name}.onnx", folder / f"{name}.ent"
        path.write_bytes(content)
        own = flags[flags.index("--max-memory-mb") + 1] if "--max-memory-mb" in flags else 256
        for memory_mb in (own, *(mb for mb in (4, 24, 96) if mb < own)):
            start = time.monotonic()
            got, text, peak = compile_limited(path, memory_mb, flags)
            seconds = time.monotonic() - start
            right = got == code and all(word in text for word in words) if memory_mb == own else got in (code, LIMIT)
            check(f"{name} in {memory_mb} MiB", right, f"exit {got} (want {code}): {text[-500:]}")
            room = memory_mb * MIB + len(content) + 4 * MIB
            check(f"{name} within its {memory_mb} MiB", SANITIZED or peak - least < room, f"{(peak - least) / MIB:.0f} MiB")
            check(f"{name} within its time", seconds < (flags[flags.index("--max-seconds") + 1] + 20 if "--max-seconds" in flags else 100),
                  f"{seconds:.0f} s")
            check(f"{name} leaves nothing or little", not bundle.exists() if got else bundle.stat().st_size < 20 * MIB)
            bundle.unlink(missing_ok=True)
    got, text, _ = run("compile", folder / "nesting.onnx", "-o", folder / "out.ent", "--max-nodes", "0")
    check("a limit of 0 is no limit", got == 1 and "--max-nodes" in text, text)


def npy(values, dims):
    header = "{'descr': '<i8', 'fortran_order': False, 'shape': %s, }\n" % (dims,)
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + struct.pack(f"<{len(values)}q", *values)


def explained_notes(target):
    """Exit code, text, and the notes of the JSON form."""
    code, text, _ = run("explain", target)
    json_code, json_text, _ = run("explain", target, "--json")
    return code or json_code, text, json.loads(json_text[json_text.index("{"):])["plan"]["notes"] if json_code == 0 else []


def folding_bloat(folder):
    """A13: ConstantOfShape([8192, 8192]) * 2, one row of it gathered: only that row is made. Where all of it is needed,
    the fold is declined and named."""
    dims, fill = filled("ones", [8192, 8192])
    double = node("Mul", ["ones", "two"], ["twos"], name="double")
    weights = [dims, tensor("two", FLOAT, [], floats([2]))]
    row = node("Gather", ["twos", "i"], ["y"], [attr_int("axis", 0)], name="row")
    path, bundle = folder / "a13.onnx", folder / "a13.ent"
    path.write_bytes(model(graph([fill, double, row], [value("i", INT64, (1,))], [value("y", FLOAT, (1, 8192))], weights)))
    (folder / "i.npy").write_bytes(npy([5], (1,)))
    check("A13 is small", path.stat().st_size < 400, path.stat().st_size)
    code, text, peak = run("compile", path, "-o", bundle)
    check("A13 compiles", code == 0, text)
    check("A13 artefact under 1 MiB", bundle.exists() and bundle.stat().st_size < MIB)
    check("A13 compiles in under 200 MiB", SANITIZED or peak < 200 * MIB, f"{peak / MIB:.0f} MiB")
    code, text, peak = run("run", bundle, "--input", f"i={folder / 'i.npy'}", "--output-dir", folder)
    check("A13 runs", code == 0, text)
    check("A13 runs in under 200 MiB", SANITIZED or peak < 200 * MIB, f"{peak / MIB:.0f} MiB")
    data = (folder / "y.npy").read_bytes() if (folder / "y.npy").exists() else b""
    check("A13 gives twos", data[-8192 * 4:] == floats([2.0]) * 8192)

    whole = node("ReduceMax", ["twos"], ["y"], [attr_int("keepdims", 0)], name="whole")
    path.write_bytes(model(graph([fill, double, whole], [value("i", INT64, (1,))], [value("y", FLOAT, ())], weights)))
    code, text, peak = run("compile", path, "-o", bundle)
    check("a fold of everything is declined", code == 0 and bundle.stat().st_size < MIB, text)
    check("that compiles in under 200 MiB", SANITIZED or peak < 200 * MIB, f"{peak / MIB:.0f} MiB")
    for target in (path, bundle):
        code, text, notes = explained_notes(target)
        check("explain names the declined fold", code == 0 and "'ones' (ConstantOfShape) was not folded: its result of 268435456 bytes" in text,
              text[-800:])
        check("so do its notes", any("ones" in note and "not folded" in note for note in notes), notes)


def main():
    for part in (hostile, folding_bloat):
        with tempfile.TemporaryDirectory() as folder:
            part(pathlib.Path(folder))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
