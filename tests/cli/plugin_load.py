#!/usr/bin/env python3
"""Plugins that cannot be loaded are refused in words, the others work, and explain says per node who
took it, who declined and why. $ENTENTE is the program; last line `N passed, N failed`."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/import"))
from commands import check, results  # noqa: E402
from onnx_bytes import *  # noqa: E402,F403

ENTENTE = os.environ.get("ENTENTE", str(ROOT / "build/bin/entente"))
BUILD = pathlib.Path(os.environ.get("ENTENTE_TEST_BINARY_DIR", ROOT / "build"))
SHIPPED = BUILD / "lib/entente/plugins"

# library of tests/plugins: (rule, words of the refusal besides the path)
LIBRARIES = {
    "broken_no_symbol.so": ("plugin.missing-symbol", ["ent_plugin_v1"]),
    "broken_too_new.so": ("plugin.abi", ["ABI 2 to 3", "this host speaks 1"]),
    "broken_too_old.so": ("plugin.abi", ["ABI 0 to 0", "this host speaks 1"]),
    "broken_small_table.so": ("plugin.abi", ["40 bytes"]),
    "broken_missing_dependency.so": ("plugin.loader", ["libentente_absent.so"]),
}
RELU_ONLY = {
    "schema": 1, "name": "relu", "kind": "npu", "units": 1, "launch_ns": 10, "depths": ["region"],
    "memory": [{"name": "dram", "scope": "device", "bytes": 1 << 30, "read_gbps": 500}],
    "links": [{"to": "host", "latency_ns": 10, "gbps": 500}],
    "patterns": [{"name": "relu", "depth": "region", "tier": "native", "nodes": [{"ops": ["Relu"]}],
                  "cost": {"base_ns": 10, "gbps": 5000}}]}


def run(folders, *arguments):
    path = ":".join(map(str, folders))
    done = subprocess.run([ENTENTE, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "ENTENTE_PLUGIN_PATH": path})
    return done.returncode, done.stdout, done.stderr


def manifest(folder, name, library, default=True, architecture="any"):
    (folder / f"{name}.json").write_text(json.dumps({
        "manifest": 1, "name": name, "library": str(library), "abi": [1, 1], "architecture": architecture, "depths": ["region"],
        "default": default}))


def write_model(path, operators):
    names = ["x", *[f"v{i}" for i in range(len(operators) - 1)], "y"]
    nodes = [node(op, [names[i]], [names[i + 1]], name=f"n{i}") for i, op in enumerate(operators)]
    path.write_bytes(model(graph(nodes, [value("x", FLOAT, (64, 1024))], [value("y", FLOAT, (64, 1024))])))


def wrong_machine(path):
    """A library's head for a machine that this is not (s390)."""
    head = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    head[16:20] = (3).to_bytes(2, "little") + (22).to_bytes(2, "little")
    path.write_bytes(head + bytes(4096))


def refusals(folder, model_path):
    bad = folder / "bad"
    bad.mkdir()
    (bad / "empty.so").touch()
    (bad / "folder.so").mkdir()
    wrong_machine(bad / "foreign.so")
    cases = {name.removesuffix(".so"): (BUILD / "tests/plugins" / name, *rest) for name, rest in LIBRARIES.items()}
    cases.update({name: (bad / f"{name}.so", "plugin.loader", []) for name in ("empty", "folder", "foreign", "gone")})
    for name, (library, _, _) in cases.items():
        manifest(bad, name, library)
    code, out, _ = run([bad, SHIPPED], "plugins", "--json")
    found = {p["name"]: p for p in json.loads(out)["plugins"]}
    check("plugins lists all and exits 0", code == 0 and set(cases) <= set(found), sorted(found))
    for name, (library, rule, words) in cases.items():
        p = found.get(name, {})
        said = p.get("reason") or ""
        check(f"{name} is refused by rule", not p.get("usable", True) and p.get("rule") == rule, p)
        check(f"{name} names the library and why", str(library) in said and all(w in said for w in words) and len(said) > len(str(library)), said)
        code, _, err = run([bad, SHIPPED], "compile", model_path, "-o", folder / "no.ent", "--device", name)
        check(f"{name} demanded is exit 4", code == 4 and rule in err, f"exit {code}: {err}")
    check("nothing was written", not (folder / "no.ent").exists())
    code, out, err = run([bad, SHIPPED], "run", model_path)
    check("the remaining devices still work", code == 0 and "f32" in out, err)
    check("each refused default is warned of", all(name in err for name in cases), err)


def two_that_claim_all(folder, model_path):
    both = folder / "both"
    both.mkdir()
    for name in ("first", "second"):
        shutil.copy(BUILD / "tests/plugins/hostile.so", both / f"{name}.so")
        manifest(both, name, both / f"{name}.so", default=False)
    code, out, err = run([both, SHIPPED], "explain", model_path, "--json", "--device", "first,second")
    check("two that claim every node", code == 0, err)
    nodes = json.loads(out)["nodes"] if code == 0 else []
    check("each node runs on one of them", len(nodes) == 5 and all(n["device"] in ("first", "second") for n in nodes), nodes)
    code, out, err = run([both, SHIPPED], "run", model_path, "--device", "first,second")
    check("and it runs", code == 0, err)


def relu_only(folder, model_path):
    own = folder / "own"
    (own / "sim").mkdir(parents=True)
    shutil.copy(SHIPPED / "libentente_sim.so", own / "libentente_sim.so")
    manifest(own, "sim", own / "libentente_sim.so", default=False)
    (own / "sim/relu.json").write_text(json.dumps(RELU_ONLY))
    code, out, err = run([own, SHIPPED], "explain", model_path, "--json", "--device", "sim:relu,reference")
    check("a device for Relu only", code == 0, err)
    if code:
        return
    document = json.loads(out)
    plan = document["plan"]
    devices = [n["device"] for n in document["nodes"]]
    check("Relu there, Softplus on the other", devices == ["sim:relu", "reference"] * 2 + ["sim:relu"], devices)
    check("five regions", len([r for r in plan["regions"] if r["kind"] != "view"]) == 5, [r["kind"] for r in plan["regions"]])
    check("copies in and out are listed", len(plan["converts"]) >= 4, plan["converts"])
    check("every region has its price", all(r["predicted_ns"] > 0 for r in plan["regions"]))
    check("every node has a sentence", all(n["reason"] for n in document["nodes"]), document["nodes"])
    declined = {(r["node"], r["device"]): r for r in plan["refusals"]}
    for name in ("n1", "n3"):
        r = declined.get((name, "sim:relu"), {})
        check(f"why {name} is not on sim:relu", "." in str(r.get("reason", "")) and r.get("text"), plan["refusals"])
    code, out, err = run([own, SHIPPED], "run", model_path, "--device", "sim:relu,reference")
    code2, alone, _ = run([own, SHIPPED], "run", model_path, "--device", "reference")
    check("split or not, the same numbers", code == code2 == 0 and out == alone, err)


def main():
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        model_path = folder / "a14.onnx"
        write_model(model_path, ["Relu", "Softplus"] * 2 + ["Relu"])
        for part in (refusals, two_that_claim_all, relu_only):
            part(folder, model_path)
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
