#!/usr/bin/env python3
"""The CPU plugin's microkernels against the peak measured in the same run: kernels.py [ARGUMENT of entente_kernel_bench...]

gemm_f32_1024_share_of_peak: a 1024x1024x1024 f32 matrix product on one core, over the rate of independent multiply-adds.
Then what moves elements, measured and predicted: move_NAME_ns.
"""
import json
import subprocess
import sys

from common import BUILD, print_table, write_result
from moves import moves


def main():
    command = [BUILD / "bin" / "entente_kernel_bench", "--json", *sys.argv[1:]]
    result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    metrics = result["metrics"]
    print_table(["metric", "value"], sorted(metrics.items()))
    moved = moves()
    print_table(["ns an element", "measured", "predicted"], moved)
    metrics.update((f"move_{name}_ns", measured) for name, measured, _ in moved)
    write_result("kernels", metrics, **{key: value for key, value in result.items() if key != "metrics"})
    return 0 if "gemm_f32_1024_share_of_peak" in metrics else 1


if __name__ == "__main__":
    sys.exit(main())
