"""Seeded inputs for the models of the manifest, the same for every program that is compared."""
import json
import pathlib
import zlib

import numpy as np
import onnx

from fetch import read_manifest


def shapes_of(name):
    for row in read_manifest():
        if row["name"] == name:
            return json.loads(row["input_shapes"])
    raise KeyError(f"{name} is not in the manifest")


def input_types(model_path):
    """Name -> numpy dtype of every input that is no initializer."""
    graph = onnx.load(model_path, load_external_data=False).graph
    constants = {tensor.name for tensor in graph.initializer}
    return {value.name: onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
            for value in graph.input if value.name not in constants}


def make_picture(shape, dtype, rng):
    """Rows of random dark strokes on a bright ground, and some noise. On plain noise a text detector answers zero everywhere,
    and a result of zeros would pass a comparison."""
    height, width = shape[2:]
    page = np.full((height, width), 1.5)
    for top in range(height // 16, height - 24, 36):
        for left in range(width // 16, width - 16, 22):
            for _ in range(4):
                row, column = rng.integers(0, 22), rng.integers(0, 14)
                if rng.random() < 0.5:
                    page[top + row:top + row + 3, left:left + 16] = -1.5
                else:
                    page[top:top + 24, left + column:left + column + 3] = -1.5
    return (page + 0.1 * rng.standard_normal(shape)).astype(dtype)


def make_value(name, shape, dtype, rng):
    if name == "sr":
        return np.full(shape, 16000, dtype)
    if "mask" in name:
        return np.ones(shape, dtype)
    if name == "bytes":
        return rng.integers(0, 256, shape).astype(dtype)
    if np.issubdtype(dtype, np.integer):
        return rng.integers(1, 100, shape).astype(dtype)
    if len(shape) == 4 and shape[1] == 3:
        return make_picture(shape, dtype, rng)
    return rng.standard_normal(shape).astype(dtype)


def make_inputs(model_path, shapes, seed=1):
    """Name -> array. Each input has a stream of its own, so that adding one changes no other."""
    types = input_types(model_path)
    missing = set(types) - set(shapes)
    if missing:
        raise KeyError(f"{model_path}: no shape for {sorted(missing)}")
    return {name: make_value(name, tuple(shapes[name]), dtype, np.random.default_rng([seed, zlib.crc32(name.encode())]))
            for name, dtype in types.items()}


def save_inputs(inputs, folder):
    """Writes NAME.npy files; returns `--input NAME=FILE` arguments."""
    arguments = []
    for name, value in inputs.items():
        path = pathlib.Path(folder) / (name.replace("/", "_").replace(":", "_") + ".npy")
        np.save(path, value)
        arguments += ["--input", f"{name}={path}"]
    return arguments


def shape_arguments(shapes):
    """`--shape NAME=1x3x48x320` arguments; a scalar needs none."""
    arguments = []
    for name, shape in shapes.items():
        if shape:
            arguments += ["--shape", f"{name}=" + "x".join(str(extent) for extent in shape)]
    return arguments


def constant_arguments(inputs):
    """`--const NAME=16000` arguments for scalars of integers: which branch runs, and so what is compiled, depends on them."""
    arguments = []
    for name, value in inputs.items():
        if value.ndim == 0 and np.issubdtype(value.dtype, np.integer):
            arguments += ["--const", f"{name}={value}"]
    return arguments
