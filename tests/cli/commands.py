#!/usr/bin/env python3
"""The command line as a person uses it: exit codes, messages, JSON, nothing half written. Standard library only, and
models/digits. $ENTENTE is the program. Last line `N passed, N failed`."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENTENTE = os.environ.get("ENTENTE", str(ROOT / "build/bin/entente"))
DIGITS = str(ROOT / "models/digits/digits.onnx")
SAMPLE = str(ROOT / "models/digits/sample.npy")
results = []


def run(*arguments, environment=None):
    done = subprocess.run([ENTENTE, *map(str, arguments)], capture_output=True, text=True, timeout=120,
                          env={**os.environ, **(environment or {})})
    return done.returncode, done.stdout, done.stderr


def check(name, condition, detail=""):
    results.append(bool(condition))
    if not condition:
        print(f"FAILED {name}: {detail}")


def expect(name, code, *arguments, stderr="", stdout="", environment=None):
    got, out, err = run(*arguments, environment=environment)
    good = got == code and stderr in err and stdout in out
    check(name, good, f"exit {got} (want {code})\nstdout: {out[-400:]}\nstderr: {err[-400:]}")
    return out


def input_name():
    out = expect("print import", 0, "print", DIGITS, "--stage", "import", stdout="graph main(")
    return out.split("graph main(%")[1].split(":")[0]


def usage():
    expect("version", 0, "--version", stdout="entente 0.")
    expect("help", 0, "--help", stdout="Exit codes:")
    for command in "compile run check bench explain caps plugins print".split():
        expect(f"help {command}", 0, command, "--help", stdout=f"Usage: entente {command}")
    expect("no command", 1, "frobnicate", stderr="usage.command")
    expect("stages are logged with -v", 0, "print", DIGITS, "-v", stderr="stage rewrite: ")
    _, _, quiet = run("print", DIGITS)
    check("nothing is logged without -v", quiet == "", quiet)
    expect("no such option", 1, "compile", DIGITS, "--frobnicate", stderr="usage.option")
    expect("no output", 1, "compile", DIGITS, stderr="-o FILE.ent")
    expect("bad number", 1, "run", DIGITS, "--threads", "many", stderr="usage.value")
    expect("bad shape", 1, "run", DIGITS, "--shape", "x=1xx2", stderr="usage.value")
    expect("bad precision", 1, "run", DIGITS, "--precision", "sloppy", stderr="usage.value")
    expect("no such stage", 1, "print", DIGITS, "--stage", "magic", stderr="stage.unknown")
    expect("no such input", 1, "run", DIGITS, "--shape", "nothing=1x2", stderr="bind.input")


def models(folder):
    expect("missing model", 2, "compile", folder / "none.onnx", "-o", folder / "a.ent", stderr="none.onnx")
    (folder / "empty.onnx").write_bytes(b"")
    (folder / "text.onnx").write_bytes(b"this is no model at all, only text\n" * 10)
    (folder / "cut.onnx").write_bytes(pathlib.Path(DIGITS).read_bytes()[:-100])
    for name in ("empty", "text", "cut"):
        expect(f"{name} model", 2, "compile", folder / f"{name}.onnx", "-o", folder / f"{name}.ent", stderr=f"{name}.onnx")
        check(f"{name} leaves nothing", not (folder / f"{name}.ent").exists())
    out = expect("error as JSON", 2, "compile", folder / "empty.onnx", "-o", folder / "a.ent", "--json")
    error = json.loads(out)
    check("JSON has code, rule and schema", error["schema"] == 1 and error["error"]["code"] == 2 and error["error"]["rule"], out)
    check("only inputs in the folder", sorted(p.name for p in folder.iterdir()) == ["cut.onnx", "empty.onnx", "text.onnx"],
          list(folder.iterdir()))


def devices(folder):
    expect("unknown device", 4, "compile", DIGITS, "-o", folder / "b.ent", "--device", "toaster", stderr="device.unknown")
    expect("null declines all", 3, "compile", DIGITS, "-o", folder / "b.ent", "--device", "null", stderr="plan.no-cover")
    check("no bundle after a refusal", not (folder / "b.ent").exists())
    out = expect("plugins as JSON", 0, "plugins", "--json")
    names = {p["name"]: p for p in json.loads(out)["plugins"]}
    check("cpu, reference, sim and null are found", {"cpu", "reference", "sim", "null"} <= set(names), sorted(names))
    check("only cpu is a default", names["cpu"]["default"] and not any(names[n]["default"] for n in names if n != "cpu"))
    out = expect("caps as JSON", 0, "caps", "cpu", "reference", "--json")
    check("two declarations", [d["schema"] for d in json.loads(out)["devices"]] == [1, 1], out[:200])
    expect("no plugins at all", 4, "run", DIGITS, stderr="device.none", environment={"ENTENTE_PLUGIN_PATH": str(folder)})
    (folder / "assign.txt").write_text("* null\n")
    expect("assigned to a device that declines", 3, "compile", DIGITS, "-o", folder / "b.ent", "--device", "cpu,null", "--assign",
           folder / "assign.txt", stderr="assign.declined")
    (folder / "assign.txt").write_text("onlyglob\n")
    expect("bad assignment", 1, "compile", DIGITS, "-o", folder / "b.ent", "--assign", folder / "assign.txt", stderr="assign.txt:1")


def bundles(folder, name):
    bundle = folder / "digits.ent"
    expect("compile", 0, "compile", DIGITS, "-o", bundle, "--transcript", folder / "t.jsonl", "--dump-dir", folder, stdout="digits.ent")
    lines = (folder / "t.jsonl").read_text().splitlines()
    check("transcript lines are JSON", all(isinstance(json.loads(line), dict) for line in lines))
    check("stages are dumped", len(list(folder.glob("*-*.txt"))) >= 6)
    again = folder / "again.ent"
    expect("compile again", 0, "compile", DIGITS, "-o", again, "--transcript", folder / "t2.jsonl")
    check("the transcript is deterministic", (folder / "t2.jsonl").read_text() == (folder / "t.jsonl").read_text())
    check("the bundle is deterministic", again.read_bytes() == bundle.read_bytes())
    one = expect("run model", 0, "run", DIGITS, "--input", f"{name}={SAMPLE}", stdout="f32")
    two = expect("run bundle", 0, "run", bundle, "--input", f"{name}={SAMPLE}", "--output-dir", folder / "out")
    check("same answer", one == two, f"{one}\n{two}")
    check("outputs are written", any((folder / "out").glob("*.npy")))
    expect("wrong input name", 1, "run", bundle, "--input", f"nothing={SAMPLE}", stderr="run.input-name")
    expect("input is no tensor", 1, "run", bundle, "--input", f"{name}={__file__[:-3]}", stderr="commands")
    data = bytearray(bundle.read_bytes())
    for at in (9, 70, len(data) // 2, len(data) - 3):
        flipped = bytearray(data)
        flipped[at] ^= 0x20
        (folder / "flipped.ent").write_bytes(flipped)
        code, _, err = run("run", folder / "flipped.ent", "--input", f"{name}={SAMPLE}")
        check(f"flipped byte {at}", code == 2 and "flipped.ent" in err, f"exit {code}: {err}")
    (folder / "short.ent").write_bytes(data[:len(data) // 2])
    expect("cut bundle", 2, "run", folder / "short.ent", stderr="short.ent")
    expect("unwritable output", 1, "compile", DIGITS, "-o", folder / "no" / "such" / "x.ent", stderr="x.ent")


def explain(folder):
    out = expect("explain", 0, "explain", DIGITS, "--json", "--measure")
    plan = json.loads(out)
    tiers = {"native", "tuned", "generic", "emulated"}
    check("every node has device, tier and reason",
          plan["nodes"] and all(n["device"] and n["tier"] in tiers and n["reason"] for n in plan["nodes"]), out[:300])
    dispatches = [s for s in plan["steps"] if s["kind"] == "dispatch"]
    check("every dispatch is measured and predicted", dispatches and all(s["measured_ns"] > 0 and s["predicted_ns"] > 0 for s in dispatches))
    reference = json.loads(expect("explain on reference", 0, "explain", DIGITS, "--json", "--device", "reference"))
    check("reference runs generic code", all(r["tier"] == "generic" for r in reference["plan"]["regions"] if r["kind"] == "region"))
    out = expect("bench", 0, "bench", DIGITS, "--iterations", "20", "--json")
    check("bench fields", {"median_ns", "p90_ns", "min_ns", "peak_rss_bytes", "weights_bytes", "arena_bytes"} <= set(json.loads(out)), out)


def main():
    usage()
    name = input_name()
    for part in (models, devices, lambda folder: bundles(folder, name), explain):
        with tempfile.TemporaryDirectory() as folder:
            part(pathlib.Path(folder))
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
