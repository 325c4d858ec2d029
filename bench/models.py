#!/usr/bin/env python3
"""How much of each model's time is slow paths, and how well the plan predicted it: models.py [MODEL...]

generic_share is the measured time of steps whose tier is generic or emulated over that of all steps. prediction is the median over
the steps of |log2(predicted / measured)|: 0 is perfect, 1 is off by a factor of two.
"""
import math
import statistics
import sys

from common import MODEL_FOLDER, MODELS, ToolError, print_table, run_json, write_result
from inputs import constant_arguments, make_inputs, shape_arguments, shapes_of


def judge(steps):
    measured = [step for step in steps if step.get("measured_ns", 0) > 0]
    if not measured:
        raise ToolError("no step has a measured time")
    total = sum(step["measured_ns"] for step in measured)
    slow = sum(step["measured_ns"] for step in measured if step.get("tier") in ("generic", "emulated"))
    errors = [abs(math.log2(step["predicted_ns"] / step["measured_ns"])) for step in measured
              if step.get("predicted_ns", 0) > 0]
    if not errors:
        raise ToolError("no step has a predicted time")
    predicted = sum(step.get("predicted_ns", 0) for step in measured)
    return {"steps": len(measured), "unpredicted": len(measured) - len(errors), "measured_ns": total,
            "predicted_ns": predicted, "generic_share": slow / total, "errors": errors}


def main():
    rows, metrics, all_errors, failed = [], {}, [], {}
    for name in sys.argv[1:] or MODELS:
        try:
            path, shapes = MODEL_FOLDER / f"{name}.onnx", shapes_of(name)
            plan = run_json("explain", path, "--device", "cpu", "--measure", *shape_arguments(shapes),
                            *constant_arguments(make_inputs(path, shapes)))
            result = judge(plan["steps"])
        except (ToolError, ValueError, KeyError) as error:
            failed[name] = str(error)
            rows.append([name] + [None] * 6)
            continue
        prediction = statistics.median(result["errors"])
        all_errors += result["errors"]
        metrics[f"{name}_generic_share"] = result["generic_share"]
        metrics[f"{name}_prediction_log2_median"] = prediction
        rows.append([name, f"{result['steps']}", f"{result['unpredicted']}", result["measured_ns"] / 1e6,
                     result["predicted_ns"] / 1e6, result["generic_share"], prediction])
    shares = [value for key, value in metrics.items() if key.endswith("_generic_share")]
    metrics["generic_share_max"] = max(shares) if shares and not failed else None
    metrics["prediction_log2_median"] = statistics.median(all_errors) if all_errors and not failed else None
    metrics["models_failed"] = len(failed)
    print_table(["model", "steps", "unpredicted", "measured ms", "predicted ms", "generic share", "|log2| median"], rows)
    for name, reason in failed.items():
        print(f"FAILED: {name}: {reason}")
    for key in ("generic_share_max", "prediction_log2_median"):
        print(f"{key}: {metrics[key] if metrics[key] is None else round(metrics[key], 4)}")
    write_result("models", metrics, failed=failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
