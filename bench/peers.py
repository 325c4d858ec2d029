#!/usr/bin/env python3
"""One interleaved run of this project beside ONNX Runtime and OpenVINO: peers.py [--rounds N] [--models A,B]

Ratios are ours/peer, lower is better. In each round every contender runs the same model on the same input for about the same time,
one after another; a ratio is the median over the rounds of the ratio of that round's medians, so that a machine that slows down
hurts all alike. f32 is forced everywhere, batch 1, 1 and 2 threads. A geomean is the worse of the two thread counts. A peer
that cannot import a model is left out of that model's ratio.
"""
import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import onnxruntime
import openvino

from common import BUILD, MODEL_FOLDER, MODELS, ToolError, geomean, print_table, run_json, run_tool, write_result
from inputs import make_inputs, shape_arguments, shapes_of

THREADS = (1, 2)
PEERS = ("onnxruntime", "openvino")
TARGET_SECONDS = 0.25  # of one contender in one round
SETTLE_SECONDS = 0.02  # lets a contender's spinning threads park
MEBIBYTE = 1 << 20


class OnnxRuntime:
    def __init__(self, path, inputs, threads):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.inputs = inputs

    def run_once(self):
        self.session.run(None, self.inputs)


class OpenVino:
    def __init__(self, path, inputs, threads):
        core = openvino.Core()
        model = core.read_model(path)
        model.reshape({name: list(value.shape) for name, value in inputs.items()})
        compiled = core.compile_model(model, "CPU", {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32",
                                                     "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1})
        self.request = compiled.create_infer_request()
        self.inputs = inputs

    def run_once(self):
        self.request.infer(self.inputs)


def median_ms(contender, iterations):
    times = []
    for _ in range(iterations):
        start = time.perf_counter()
        contender.run_once()
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def open_peers(path, inputs, threads, notes):
    peers = {}
    for name, kind in zip(PEERS, (OnnxRuntime, OpenVino)):
        try:
            peers[name] = kind(path, inputs, threads)
            peers[name].run_once()
        except Exception as error:  # whatever a peer throws at import is a fact about the peer
            peers.pop(name, None)
            notes.append(f"{path.stem}: {name} cannot run it: {str(error).strip().splitlines()[0][:160]}")
    return peers


def iterations_for(contender):
    start = time.perf_counter()
    for _ in range(3):
        contender.run_once()
    return max(3, min(500, int(TARGET_SECONDS * 3 / (time.perf_counter() - start))))


def measure(bundle, path, inputs, threads, rounds, notes):
    """Per contender the medians of all rounds in ms; and the last report of `entente bench`."""
    peers = open_peers(path, inputs, threads, notes)
    iterations = iterations_for(next(iter(peers.values()))) if peers else 20
    times = {name: [] for name in ("ours", *peers)}
    for round_number in range(rounds):
        order = list(times)
        order = order[round_number % len(order):] + order[:round_number % len(order)]
        for name in order:
            time.sleep(SETTLE_SECONDS)
            if name == "ours":
                report = run_json("bench", bundle, "--iterations", iterations, "--threads", threads)
                times[name].append(report["median_ns"] / 1e6)
            else:
                times[name].append(median_ms(peers[name], iterations))
    return times, report


def ratio(times, peer):
    if peer not in times:
        return None
    return statistics.median(ours / theirs for ours, theirs in zip(times["ours"], times[peer]))


def ratio_best(times):
    peers = [name for name in times if name != "ours"]
    if not peers:
        return None
    return statistics.median(ours / min(theirs) for ours, *theirs in zip(times["ours"], *(times[name] for name in peers)))


def compile_ms(path, shapes, bundle, repeats=3):
    """Median wall time of a whole `entente compile` process that writes a bundle."""
    times = []
    for _ in range(repeats):
        bundle.unlink(missing_ok=True)
        start = time.perf_counter()
        run_tool("compile", path, "--device", "cpu", *shape_arguments(shapes), "-o", bundle)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def rss_over_planned(report):
    """Resident memory above an empty process, less 8 MiB, over what the plan says: weights and arenas."""
    above = report["peak_rss_bytes"] - report["empty_rss_bytes"] - 8 * MEBIBYTE
    return max(0.0, above / (report["weights_bytes"] + report["arena_bytes"]))


def start_to_result_ms(bundle, repeats=15):
    """From process start to the first result of magika, with the example program that links the runtime alone."""
    command = [BUILD / "bin" / "classify_files", bundle, MODEL_FOLDER / "magika.labels.txt", __file__]
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1e3


def bench_model(name, folder, rounds, metrics, notes):
    """A row of the table and the ratios {(peer, threads): ratio}."""
    path, shapes, bundle = MODEL_FOLDER / f"{name}.onnx", shapes_of(name), folder / f"{name}.ent"
    metrics[f"{name}_compile_ms"] = compile_ms(path, shapes, bundle)
    if name == "magika":
        metrics["magika_start_to_result_ms"] = start_to_result_ms(bundle)
    inputs = make_inputs(path, shapes)
    row, ratios = [name], {}
    for threads in THREADS:
        times, report = measure(bundle, path, inputs, threads, rounds, notes)
        for peer, short in zip(PEERS, ("ort", "openvino")):
            ratios[peer, threads] = metrics[f"{name}_ratio_{short}_{threads}t"] = ratio(times, peer)
        ratios["best_peer", threads] = metrics[f"{name}_ratio_best_{threads}t"] = ratio_best(times)
        medians = [statistics.median(times[contender]) if contender in times else None for contender in ("ours", *PEERS)]
        row += [*medians, ratios["best_peer", threads]]
        metrics[f"{name}_rss_over_planned"] = max(metrics.get(f"{name}_rss_over_planned", 0.0), rss_over_planned(report))
    return [*row, metrics[f"{name}_compile_ms"], metrics[f"{name}_rss_over_planned"]], ratios


def summarize(all_ratios, metrics):
    for peer in (*PEERS, "best_peer"):
        means = [geomean(ratios[peer, threads] for ratios in all_ratios if ratios[peer, threads]) for threads in THREADS]
        for threads, mean in zip(THREADS, means):
            metrics[f"geomean_vs_{peer}_{threads}t"] = mean
        metrics[f"geomean_vs_{peer}"] = max(means) if all(means) else None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--models", default=",".join(MODELS))
    args = parser.parse_args()
    rows, all_ratios, metrics, notes, failed = [], [], {}, [], {}
    load_before = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for name in args.models.split(","):
            try:
                if not rows and not failed:  # the probe of the machine is cached by the first compile, whatever the model
                    run_tool("compile", MODEL_FOLDER / f"{name}.onnx", "--device", "cpu", *shape_arguments(shapes_of(name)),
                             "-o", folder / "first.ent")
                row, ratios = bench_model(name, folder, args.rounds, metrics, notes)
                rows.append(row)
                all_ratios.append(ratios)
            except (ToolError, OSError, subprocess.SubprocessError, KeyError, ValueError) as error:
                failed[name] = str(error)
                rows.append([name] + [None] * 10)
            print(f"{name} done", file=sys.stderr)
    metrics["models_failed"] = len(failed)
    if not failed:
        summarize(all_ratios, metrics)
    columns = [f"{contender} {threads}T" for threads in THREADS for contender in ("ours", "ORT", "OpenVINO", "ours/best")]
    print("median ms; ours/best is the ratio to the better peer")
    print_table(["model", *columns, "compile ms", "rss/planned"], rows)
    for note in dict.fromkeys(notes):
        print(f"note: {note}")
    for name, reason in failed.items():
        print(f"FAILED: {name}: {reason}")
    for key in sorted(metrics):
        if key.startswith("geomean") or key.startswith("magika_start"):
            print(f"{key}: {'-' if metrics[key] is None else round(metrics[key], 3)}")
    write_result("peers", metrics, failed=failed, notes=notes, rounds=args.rounds,
                 load_before=load_before, cores=os.cpu_count())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
