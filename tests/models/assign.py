#!/usr/bin/env python3
"""Models split over several devices by seeded random assignments, compared with ONNX Runtime; last line `N passed, N failed`.

For each leaf a device is drawn among those that offer it alone (the core may change layouts at its boundary); whole composites
and fused groups are left to the devices that the leaves fall to. At least --crossings copies between memories must lie on the
executed path. The same numbers are wanted as from one device.
"""
import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "models"))
sys.path.insert(0, str(ROOT / "tests" / "models"))
import run as table  # noqa: E402
from inputs import make_inputs, save_inputs, shape_arguments, shapes_of  # noqa: E402

DEVICES = "cpu,reference,sim:nhwc16,sim:attn"
# Every kind of network that the plain C of `reference` runs in seconds.
MODELS = ("magika silero_ifless ppocrv4_det ppocrv4_rec ppocrv2_cls open_nsfw_r50 minilm_l3 resnet50 mobilenet_v2 "
          "vit_tiny_patch16_224")


def offers_of(args, model, shapes):
    """leaf name -> devices that offer it alone."""
    command = [args.entente, "print", model, "--stage", "negotiate", "--device", args.device, *shape_arguments(shapes)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    found = collections.defaultdict(set)
    for line in text.splitlines():
        words = line.split(" ")
        if words[0] != "offer" or "withdrawn:" in words or words[2] == "host":
            continue
        names = []
        for word in words[words.index("nodes") + 1:]:
            if word.startswith("%") or word.startswith("->%") or word == "granted":
                break
            names.append(word)
        if len(names) == 1:
            found[names[0]].add(words[2])
    return found


def escape(name):
    return "".join(f"[{c}]" if c in "*?[" else c for c in name)


def write_assignment(path, offers, seed):
    draw = random.Random(seed)
    with open(path, "w") as file:
        for name in sorted(offers, key=lambda n: (len(n), n)):
            file.write(f"{escape(name)} {draw.choice(sorted(offers[name]))}\n")


def crossings_of(plan):
    return sum(1 for c in plan["converts"] if c["from_memory"] != c["to_memory"])


def check(args, name, model, shapes, inputs, want, offers, seed):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        assignment = folder / "assign.txt"
        write_assignment(assignment, offers, seed)
        bundle = folder / "model.ent"
        command = [args.entente, "compile", model, "-o", bundle, "--device", args.device, "--assign", assignment, "--json",
                   *shape_arguments(shapes)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            return None, f"compile: exit {done.returncode}: {done.stderr.strip()[-300:]}"
        crossings = crossings_of(json.loads(done.stdout)["plan"])
        out = folder / "out"
        done = subprocess.run([args.entente, "run", bundle, "--output-dir", out, *save_inputs(inputs, folder)], capture_output=True,
                              text=True)
        if done.returncode:
            return crossings, f"run: exit {done.returncode}: {done.stderr.strip()[-300:]}"
        found = {path.stem: np.load(path) for path in out.glob("*.npy")}
        _, _, reason = table.compare(want, found, (table.ABSOLUTE, table.RELATIVE, 0))
        if reason:
            return crossings, reason
    if crossings < args.crossings:
        return crossings, f"only {crossings} crossings"
    return crossings, None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entente", default=ROOT / "build/bin/entente", type=pathlib.Path)
    parser.add_argument("--device", default=DEVICES)
    parser.add_argument("--models", default=MODELS.replace(" ", ","))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--crossings", type=int, default=10)
    args = parser.parse_args()
    passed = failed = 0
    for name in args.models.split(","):
        model = ROOT / "build" / "models" / f"{name}.onnx"
        shapes = shapes_of(name)
        inputs = make_inputs(model, shapes)
        want = table.reference(model, inputs, fused=True)
        offers = offers_of(args, model, shapes)
        for seed in range(1, args.seeds + 1):
            crossings, problem = check(args, name, model, shapes, inputs, want, offers, seed)
            print(f"{name:22} seed {seed} {len(offers):5} leaves {crossings if crossings is not None else '-':>5} crossings  {problem or 'ok'}", flush=True)
            passed, failed = passed + (problem is None), failed + (problem is not None)
    print(f"{passed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
