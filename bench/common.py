"""What the benchmark drivers share: the models, running the tool, tables and the result file."""
import json
import math
import pathlib
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build"
ENTENTE = BUILD / "bin" / "entente"
MODEL_FOLDER = BUILD / "models"
sys.path.insert(0, str(ROOT / "models"))
from fetch import read_manifest  # noqa: E402

MODELS = [row["name"] for row in read_manifest() if row["package"] != "repository"]


class ToolError(Exception):
    """The tool under test failed; the text says how."""


def run_tool(*arguments, timeout=900):
    """Standard output of `entente ARGUMENTS`."""
    command = [str(argument) for argument in (ENTENTE, *arguments)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if result.returncode:
        raise ToolError(f"{' '.join(command[:3])}: exit {result.returncode}: {result.stderr.strip()[-300:]}")
    return result.stdout


def run_json(*arguments, timeout=900):
    return json.loads(run_tool(*arguments, "--json", timeout=timeout))


def geomean(values):
    values = list(values)
    return math.exp(statistics.fmean(math.log(value) for value in values)) if values else None


def print_table(header, rows):
    texts = [header] + [[cell if isinstance(cell, str) else "-" if cell is None else f"{cell:.3g}" for cell in row]
                        for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(header))]
    for row in texts:
        print("  ".join(cell.ljust(width) if column == 0 else cell.rjust(width)
                        for column, (cell, width) in enumerate(zip(row, widths))), flush=True)


def write_result(name, metrics, **more):
    """build/bench/NAME.json; metrics that could not be measured are left out."""
    path = BUILD / "bench" / f"{name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    known = {key: value for key, value in sorted(metrics.items()) if value is not None and math.isfinite(value)}
    path.write_text(json.dumps({"metrics": known, **more}, indent=1) + "\n")
    print(f"written: {path.relative_to(ROOT)}")
