"""Writes ONNX models byte by byte, without the onnx package, so that broken ones can be made too.

Every function returns the bytes of one protobuf message; field numbers are those of onnx.proto.
"""
import struct

FLOAT, UINT8, INT8, INT64, STRING, BOOL, FLOAT16, INT4 = 1, 2, 3, 7, 8, 9, 10, 22
ATTR_FLOAT, ATTR_INT, ATTR_STRING, ATTR_TENSOR, ATTR_GRAPH, ATTR_FLOATS, ATTR_INTS = 1, 2, 3, 4, 5, 6, 7


def varint(value):
    value &= (1 << 64) - 1
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field, value):
    return varint(field << 3) + varint(value)


def data(field, value):
    if isinstance(value, str):
        value = value.encode()
    return varint(field << 3 | 2) + varint(len(value)) + value


def floats(value):
    return struct.pack("<%df" % len(value), *value)


def external(**entries):
    """Fields of a TensorProto that say where its data lies."""
    out = number(14, 1)
    for key, value in entries.items():
        out += data(13, data(1, key) + data(2, value))
    return out


def tensor(name, dtype, dims, raw=None, extra=b""):
    out = b"".join(number(1, d) for d in dims) + number(2, dtype) + data(8, name)
    return out + (data(9, raw) if raw is not None else b"") + extra


def value(name, dtype=FLOAT, dims=(4,)):
    shape = b"".join(data(1, data(2, d) if isinstance(d, str) else number(1, d)) for d in dims)
    return data(1, name) + data(2, data(1, number(1, dtype) + data(2, shape)))


def attribute(name, kind, payload):
    return data(1, name) + number(20, kind) + payload


def attr_int(name, v):
    return attribute(name, ATTR_INT, number(3, v))


def attr_ints(name, v):
    return attribute(name, ATTR_INTS, b"".join(number(8, x) for x in v))


def attr_string(name, v):
    return attribute(name, ATTR_STRING, data(4, v))


def attr_graph(name, v):
    return attribute(name, ATTR_GRAPH, data(6, v))


def attr_tensor(name, v):
    return attribute(name, ATTR_TENSOR, data(5, v))


def node(op, inputs, outputs, attributes=(), name="", domain=""):
    out = b"".join(data(1, i) for i in inputs) + b"".join(data(2, o) for o in outputs)
    out += data(3, name) if name else b""
    out += data(4, op) + b"".join(data(5, a) for a in attributes)
    return out + (data(7, domain) if domain else b"")


def graph(nodes, inputs, outputs, initializers=(), name="g", extra=b""):
    out = b"".join(data(1, n) for n in nodes) + data(2, name)
    out += b"".join(data(5, t) for t in initializers)
    out += b"".join(data(11, v) for v in inputs) + b"".join(data(12, v) for v in outputs)
    return out + extra


def opset(version, domain=""):
    return (data(1, domain) if domain else b"") + number(2, version)


def function(name, domain, inputs, outputs, nodes, version=17, attributes=()):
    out = data(1, name) + b"".join(data(4, i) for i in inputs) + b"".join(data(5, o) for o in outputs)
    out += b"".join(data(6, a) for a in attributes) + b"".join(data(7, n) for n in nodes)
    return out + data(9, opset(version)) + data(10, domain)


def model(g, version=17, ir=8, opsets=(), functions=()):
    out = number(1, ir) if ir is not None else b""
    out += b"" if version is None else data(8, opset(version))
    out += b"".join(data(8, o) for o in opsets)
    out += data(7, g) if g is not None else b""
    return out + b"".join(data(25, f) for f in functions)
