#!/usr/bin/env python3
"""Train the small network in models/digits: train_digits.py [FOLDER]. Needs numpy, onnx and scikit-learn (for the data).

Two convolutions and a linear layer on 8x8 images of handwritten digits, plain stochastic gradient descent with momentum, all
in numpy. Four fifths of the images train it, the rest test it; the sample input is the first seven among the test images.
"""
import pathlib
import sys

import numpy as np
import onnx
from numpy.lib.stride_tricks import sliding_window_view
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits

CHANNELS = (8, 16)
EPOCHS, BATCH, RATE, MOMENTUM = 60, 32, 0.02, 0.9


def convolve(x, weight, bias):
    """3x3, same padding. Returns the result and the windows for the backward pass."""
    windows = sliding_window_view(np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    return np.einsum("nchwij,ocij->nohw", windows, weight, optimize=True) + bias[:, None, None], windows


def convolve_backward(gradient, windows, weight):
    flipped = sliding_window_view(np.pad(gradient, ((0, 0), (0, 0), (1, 1), (1, 1))), (3, 3), axis=(2, 3))
    d_x = np.einsum("nohwij,ocij->nchw", flipped, weight[:, :, ::-1, ::-1], optimize=True)
    d_weight = np.einsum("nohw,nchwij->ocij", gradient, windows, optimize=True)
    return d_x, d_weight, gradient.sum((0, 2, 3))


def pool(x):
    """2x2 maximum. Returns the result and the mask of the maxima."""
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    result = blocks.max((3, 5))
    return result, blocks == result[:, :, :, None, :, None]


def pool_backward(gradient, mask):
    n, c, h, _, w, _ = mask.shape
    return (mask * gradient[:, :, :, None, :, None]).reshape(n, c, 2 * h, 2 * w)


def forward(p, x):
    a1, w1 = convolve(x, p["w1"], p["b1"])
    r1 = np.maximum(a1, 0)
    p1, m1 = pool(r1)
    a2, w2 = convolve(p1, p["w2"], p["b2"])
    r2 = np.maximum(a2, 0)
    p2, m2 = pool(r2)
    flat = p2.reshape(len(x), -1)
    return flat @ p["w3"] + p["b3"], (a1, w1, m1, a2, w2, m2, p2.shape, flat)


def gradients(p, x, labels):
    logits, (a1, w1, m1, a2, w2, m2, shape, flat) = forward(p, x)
    scores = np.exp(logits - logits.max(1, keepdims=True))
    scores /= scores.sum(1, keepdims=True)
    scores[np.arange(len(x)), labels] -= 1
    scores /= len(x)
    g = {"w3": flat.T @ scores, "b3": scores.sum(0)}
    d2 = pool_backward((scores @ p["w3"].T).reshape(shape), m2) * (a2 > 0)
    d1, g["w2"], g["b2"] = convolve_backward(d2, w2, p["w2"])
    _, g["w1"], g["b1"] = convolve_backward(pool_backward(d1, m1) * (a1 > 0), w1, p["w1"])
    return g


def train(images, labels):
    rng = np.random.default_rng(1)
    c1, c2 = CHANNELS
    shapes = {"w1": (c1, 1, 3, 3), "b1": (c1,), "w2": (c2, c1, 3, 3), "b2": (c2,), "w3": (c2 * 4, 10), "b3": (10,)}
    fan_in = {"w1": 9, "w2": 9 * c1, "w3": c2 * 4}
    p = {k: rng.standard_normal(s) * np.sqrt(2 / fan_in[k]) if k in fan_in else np.zeros(s) for k, s in shapes.items()}
    velocity = {k: np.zeros_like(v) for k, v in p.items()}
    for _ in range(EPOCHS):
        order = rng.permutation(len(images))
        for start in range(0, len(order), BATCH):
            batch = order[start:start + BATCH]
            for k, g in gradients(p, images[batch], labels[batch]).items():
                velocity[k] = MOMENTUM * velocity[k] - RATE * g
                p[k] += velocity[k]
    return p


def export(p, path):
    weights = [numpy_helper.from_array(v.astype(np.float32), k) for k, v in p.items()]
    same = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1]}
    half = {"kernel_shape": [2, 2], "strides": [2, 2]}
    nodes = [
        helper.make_node("Conv", ["image", "w1", "b1"], ["a1"], "conv1", **same),
        helper.make_node("Relu", ["a1"], ["r1"], "relu1"),
        helper.make_node("MaxPool", ["r1"], ["p1"], "pool1", **half),
        helper.make_node("Conv", ["p1", "w2", "b2"], ["a2"], "conv2", **same),
        helper.make_node("Relu", ["a2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p2"], "pool2", **half),
        helper.make_node("Flatten", ["p2"], ["flat"], "flatten"),
        helper.make_node("Gemm", ["flat", "w3", "b3"], ["logits"], "linear"),
        helper.make_node("Softmax", ["logits"], ["scores"], "softmax"),
        helper.make_node("ArgMax", ["scores"], ["digit"], "argmax", axis=1, keepdims=0),
    ]
    graph = helper.make_graph(
        nodes, "digits", [helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 1, 8, 8])],
        [helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 10]),
         helper.make_tensor_value_info("digit", TensorProto.INT64, [1])], weights)
    model = helper.make_model(graph, producer_name="entente-train-digits", ir_version=8,
                              opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "models/digits")
    data = load_digits()
    images = (data.images / 16).astype(np.float32)[:, None]
    order = np.random.default_rng(0).permutation(len(images))
    split = len(order) * 4 // 5
    train_set, test_set = order[:split], order[split:]
    p = train(images[train_set].astype(np.float64), data.target[train_set])
    right = forward(p, images[test_set])[0].argmax(1) == data.target[test_set]
    export(p, folder / "digits.onnx")
    np.save(folder / "sample.npy", images[test_set[data.target[test_set] == 7][:1]])
    print(f"{right.sum()} of {len(right)} test images right")


if __name__ == "__main__":
    main()
