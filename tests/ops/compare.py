#!/usr/bin/env python3
"""Compares core/ops with ONNX test-case folders, operator by operator.

usage: compare.py LIBRARY DIR...

LIBRARY is core/ops built as a shared object; DIR holds test-case folders (model.onnx, test_data_set_0). Only models of one node
are run; an operator that is not in abi/ent_ops.def, or a node that is not in the newest form, is counted as skipped. Every case
runs three times: row-major tensors, channels-last tensors, and channels in blocks of 8 where the rank is 4.

Needs Python with onnx and numpy; it is a developer's tool and no part of the test suite.
"""
import ctypes as c
import pathlib
import re
import sys

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = pathlib.Path(__file__).resolve().parents[2]
# TensorProto.DataType -> ent_dtype
DTYPES = {1: 1, 2: 6, 3: 5, 4: 8, 5: 7, 6: 9, 7: 11, 9: 13, 10: 2, 11: 4, 12: 10, 13: 12, 14: 25, 15: 26, 16: 3, 17: 19,
          18: 20, 19: 21, 20: 22, 21: 16, 22: 15, 23: 23, 24: 24, 25: 18, 26: 17}
# Their values are ent_dtype numbers in Entente, TensorProto.DataType numbers in ONNX.
DTYPE_ATTRIBUTES = {"to", "output_dtype", "precision", "softmax_precision", "stash_type"}
BITS = [0, 32, 16, 16, 64, 8, 8, 16, 16, 32, 32, 64, 64, 8, 0, 4, 4, 2, 2, 8, 8, 8, 8, 4, 8, 64, 128]
STANDARD = {1: np.float32, 2: np.float16, 4: np.float64, 5: np.int8, 6: np.uint8, 7: np.int16, 8: np.uint16, 9: np.int32,
            10: np.uint32, 11: np.int64, 12: np.uint64, 13: np.bool_, 25: np.complex64, 26: np.complex128}


class Layout(c.Structure):
    _fields_ = [("kind", c.c_uint8), ("rank", c.c_uint8), ("block_count", c.c_uint8), ("reserved", c.c_uint8),
                ("order", c.c_uint8 * 8), ("block_axis", c.c_uint8 * 2), ("block_size", c.c_uint16 * 2), ("opaque", c.c_uint64)]


class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("size_bytes", c.c_uint64), ("dtype", c.c_uint32), ("rank", c.c_uint32),
                ("dims", c.c_int64 * 8), ("layout", Layout)]


class Str(c.Structure):
    _fields_ = [("data", c.c_char_p), ("size", c.c_size_t)]


class Attr(c.Structure):
    _fields_ = [("name", Str), ("type", c.c_uint32), ("count", c.c_uint32), ("i", c.c_int64), ("f", c.c_double), ("s", Str),
                ("ints", c.POINTER(c.c_int64)), ("floats", c.POINTER(c.c_double)), ("tensor", c.POINTER(Tensor))]


class Attrs(c.Structure):
    _fields_ = [("items", c.POINTER(Attr)), ("count", c.c_uint32)]


class Error(c.Structure):
    _fields_ = [("code", c.c_int), ("text", c.c_char * 256)]


def table():
    text = (ROOT / "abi/ent_ops.def").read_text()
    return {m[2]: (int(m[1]), int(m[3].split(",")[-1]), int(m[4]))
            for m in re.finditer(r'^ENT_OP\((\d+), (\w+), "([\d,]+)", \w+, \d+, (-?\d+),', text, re.M)}


def plain(rank):
    return Layout(1, rank, 0, 0, (c.c_uint8 * 8)(*range(rank)))


def variant_layout(rank, variant):
    layout = plain(rank)
    if variant >= 1 and rank >= 3:
        layout.order = (c.c_uint8 * 8)(*([0] + list(range(2, rank)) + [1]))
    if variant == 2 and rank == 4:
        layout.block_count, layout.block_axis[0], layout.block_size[0] = 1, 1, 8
    return layout


def layout_bytes(layout, dtype, dims):
    extents = []
    for axis in list(layout.order)[:layout.rank]:
        block = layout.block_size[0] if layout.block_count and layout.block_axis[0] == axis else 1
        extents.append(-(-dims[axis] // block))
    extents += [layout.block_size[0]] * layout.block_count
    row = (extents.pop() if extents else 1) * BITS[dtype]
    return -(-row // 8) * int(np.prod(extents, dtype=np.int64))


class Host:
    """A tensor and the memory it borrows."""

    def __init__(self, dtype, dims, layout):
        self.size = layout_bytes(layout, dtype, dims)
        self.buffer = (c.c_char * max(1, self.size))(*(b"\xaa" * max(1, self.size)))
        self.tensor = Tensor(c.addressof(self.buffer), self.size, dtype, len(dims), (c.c_int64 * 8)(*dims), layout)


def pack(array, bits):
    """Codes of a sub-byte array, each row of the last axis padded to a byte."""
    per = 8 // bits
    if array.size == 0:
        return b""
    rows = array.reshape(-1, array.shape[-1]) if array.ndim else array.reshape(1, 1)
    rows = np.pad(rows, ((0, 0), (0, -rows.shape[1] % per)))
    parts = rows.reshape(rows.shape[0], -1, per).astype(np.uint32) & ((1 << bits) - 1)
    return sum(parts[:, :, i] << (i * bits) for i in range(per)).astype(np.uint8).tobytes()


def codes(array, dtype):
    if dtype in STANDARD:
        return np.ascontiguousarray(array.astype(STANDARD[dtype])).tobytes()
    if BITS[dtype] < 8:
        return pack(array.view(np.uint8) if array.dtype.itemsize == 1 else array, BITS[dtype])
    return np.ascontiguousarray(array).tobytes()


class Library:
    def __init__(self, path):
        self.so = c.CDLL(path)
        self.ops = table()

    def convert(self, source, layout):
        target = Host(source.tensor.dtype, list(source.tensor.dims)[:source.tensor.rank], layout)
        error = Error()
        if self.so.ent_ops_convert(c.byref(source.tensor), c.byref(target.tensor), c.byref(error)):
            raise RuntimeError(error.text.decode())
        return target

    def host(self, array, dtype, variant):
        source = Host(dtype, array.shape, plain(array.ndim))
        c.memmove(source.buffer, codes(array, dtype), source.size)
        return self.convert(source, variant_layout(array.ndim, variant))

    def attributes(self, node, keep):
        items = (Attr * max(1, len(node.attribute)))()
        for item, a in zip(items, node.attribute):
            keep.append(a.name.encode())
            item.name = Str(keep[-1], len(keep[-1]))
            if a.type == onnx.AttributeProto.INT:
                item.type, item.i = 1, DTYPES[a.i] if a.name in DTYPE_ATTRIBUTES and a.i else a.i
            elif a.type == onnx.AttributeProto.FLOAT:
                item.type, item.f = 2, a.f
            elif a.type == onnx.AttributeProto.STRING:
                keep.append(a.s)
                item.type, item.s = 3, Str(a.s, len(a.s))
            elif a.type == onnx.AttributeProto.INTS:
                item.type, item.count, item.ints = 4, len(a.ints), (c.c_int64 * max(1, len(a.ints)))(*a.ints)
            elif a.type == onnx.AttributeProto.TENSOR:
                keep.append(self.host(numpy_helper.to_array(a.t), DTYPES[a.t.data_type], 0))
                item.type, item.tensor = 6, c.pointer(keep[-1].tensor)
        keep.append(items)
        return Attrs(items, len(node.attribute))

    def run(self, node, feeds, variant):
        """Codes of each output, with dtype and dims; feeds: name -> (array, dtype)."""
        keep = []
        op = self.ops[node.op_type][0]
        attrs = self.attributes(node, keep)
        inputs = (c.POINTER(Tensor) * max(1, len(node.input)))()
        for i, name in enumerate(node.input):
            if name:
                keep.append(self.host(*feeds[name], variant))
                inputs[i] = c.pointer(keep[-1].tensor)
        count, error = len(node.output), Error()
        dims = (Tensor * count)()
        self.so.ent_ops_output_dims.argtypes = [c.c_uint32, Attrs, c.c_void_p, c.c_uint32, c.c_void_p, c.c_uint32, c.c_void_p]
        if self.so.ent_ops_output_dims(op, attrs, inputs, len(node.input), dims, count, c.byref(error)):
            raise RuntimeError("dims: " + error.text.decode())
        hosts = [Host(d.dtype, list(d.dims)[:d.rank], variant_layout(d.rank, variant)) for d in dims]
        outputs = (c.POINTER(Tensor) * count)(*[c.pointer(h.tensor) for h in hosts])
        self.so.ent_ops_evaluate.argtypes = [c.c_uint32, Attrs, c.c_void_p, c.c_uint32, c.c_void_p, c.c_uint32, c.c_void_p,
                                             c.c_void_p]
        if self.so.ent_ops_evaluate(op, attrs, inputs, len(node.input), outputs, count, None, c.byref(error)):
            raise RuntimeError(error.text.decode())
        results = []
        for host in hosts:
            result = self.convert(host, plain(host.tensor.rank))
            results.append((bytes(result.buffer)[:result.size], result.tensor.dtype, list(result.tensor.dims)[:result.tensor.rank]))
        return results


def agrees(result, wanted, proto_dtype):
    data, dtype, dims = result
    if dtype != DTYPES[proto_dtype] or dims != list(wanted.shape):
        return f"dtype {dtype} dims {dims}, wanted {DTYPES[proto_dtype]} {list(wanted.shape)}"
    if dtype in STANDARD or dtype == 3:
        if dtype == 3:
            got = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32).reshape(dims)
            wanted = wanted.astype(np.float32)
        else:
            got = np.frombuffer(data, STANDARD[dtype]).reshape(dims)
        if got.dtype.kind not in "fc":
            return None if np.array_equal(got, wanted) else f"{got.flatten()[:8]} wanted {wanted.flatten()[:8]}"
        rtol, atol = {2: (2e-3, 2e-3), 3: (1e-2, 1e-2)}.get(dtype, (1e-3, 1e-5))
        if np.allclose(got.astype(np.complex128), wanted.astype(np.complex128), rtol, atol, equal_nan=True):
            return None
        return f"{got.flatten()[:8]} wanted {wanted.flatten()[:8]}"
    return None if data == codes(wanted, dtype) else f"bytes {data[:16]} wanted {codes(wanted, dtype)[:16]}"


def read(path):
    proto = onnx.TensorProto()
    proto.ParseFromString(path.read_bytes())
    return numpy_helper.to_array(proto), proto.data_type


def run_case(library, folder):
    model = onnx.load(folder / "model.onnx")
    if len(model.graph.node) != 1:
        return "skip", "more than one node"
    node = model.graph.node[0]
    entry = library.ops.get(node.op_type)
    if entry is None or node.domain not in ("", "ai.onnx"):
        return "skip", "operator not in the table"
    try:
        newest = onnx.defs.get_schema(node.op_type, model.opset_import[0].version).since_version
        if newest != onnx.defs.get_schema(node.op_type, entry[1]).since_version and node.op_type in (
                "Softmax", "LogSoftmax", "Split", "Resize", "Slice", "Pad", "Clip"):
            return "skip", "an older form"
        feeds, data = {}, folder / "test_data_set_0"
        for initializer in model.graph.initializer:
            feeds[initializer.name] = (numpy_helper.to_array(initializer), DTYPES[initializer.data_type])
        fed = [v.name for v in model.graph.input if v.name not in feeds]
        for i, name in enumerate(fed):
            array, proto_dtype = read(data / f"input_{i}.pb")
            feeds[name] = (array, DTYPES[proto_dtype])
        wanted = [read(data / f"output_{i}.pb") for i in range(len(model.graph.output))]
    except (KeyError, onnx.defs.SchemaError, TypeError, ValueError, FileNotFoundError) as problem:
        return "skip", f"not readable: {problem!r}"
    names = [v.name for v in model.graph.output]
    for variant in range(3):
        try:
            results = dict(zip(node.output, library.run(node, feeds, variant)))
        except RuntimeError as problem:
            return ("refused" if variant == 0 else "fail"), str(problem)
        for name, (array, proto_dtype) in zip(names, wanted):
            problem = agrees(results[name], array, proto_dtype)
            if problem:
                return "fail", f"layout {variant}, {name}: {problem}"
    return "pass", ""


def main():
    library = Library(sys.argv[1])
    counts = {}
    for folder in sorted(p for d in sys.argv[2:] for p in pathlib.Path(d).iterdir() if (p / "model.onnx").exists()):
        outcome, why = run_case(library, folder)
        counts[outcome] = counts.get(outcome, 0) + 1
        if outcome in ("fail", "refused"):
            print(f"{outcome}: {folder.name}: {why}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())))
    return 1 if counts.get("fail") else 0


if __name__ == "__main__":
    sys.exit(main())
