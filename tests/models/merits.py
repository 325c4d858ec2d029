#!/usr/bin/env python3
"""Each simulated device wins some region on some model by its price alone; last line `N passed, N failed`.

Plans the models over cpu, reference and both profiles of sim without any assignment. A win counts when the plan's own record of it says
so: the region's runner-up is another device, or the same with another, and dearer.
"""
import argparse
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "models"))
from inputs import shape_arguments, shapes_of  # noqa: E402

SIMULATED = ("sim:nhwc16", "sim:attn")
DEVICES = ",".join(("cpu", "reference") + SIMULATED)


def plan_of(entente, name):
    command = [entente, "explain", ROOT / "build" / "models" / f"{name}.onnx", "--device", DEVICES, "--json",
               *shape_arguments(shapes_of(name))]
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)["plan"]


def is_win(region):
    runner_up = region["runner_up"]
    return runner_up and runner_up["devices"] != region["device"] and runner_up["price_ns"] > region["predicted_ns"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--entente", default=ROOT / "build/bin/entente", type=pathlib.Path)
    parser.add_argument("--models", default="resnet50,minilm_l3,vit_tiny_patch16_224,mobilenet_v2")
    args = parser.parse_args()
    wins = {device: 0 for device in SIMULATED}
    for name in args.models.split(","):
        for region in plan_of(args.entente, name)["regions"]:
            if region["device"] in wins and is_win(region):
                if wins[region["device"]] == 0:
                    print(f"{name}: {region['nodes'][0]}: {region['device']}: {region['reason']}")
                wins[region["device"]] += 1
    for device, count in wins.items():
        print(f"{device:12} {count:4} regions won")
    failed = sum(count == 0 for count in wins.values())
    print(f"{len(wins) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
