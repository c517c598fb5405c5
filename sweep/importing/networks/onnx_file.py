"""A CNN in ONNX as a model's file: operators of its graph as steps, weights by their sizes alone.

Shapes of all tensors come from `onnx.shape_inference`. A convolution whose batch normalisation was
folded into it is one with a bias. Weights in external files are not opened.
"""

import math
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from grids.reading.errors import InputError
from sweep.importing.networks.graph import (
    BATCH,
    ImportedNetwork,
    Sizes,
    TracedGraph,
    TracedTensor,
    expect_sizes,
    finish,
)

MOST_BYTES = 2**31  # of a file: protobuf reads no more
WORDS = {
    **{"Relu": "relu", "LeakyRelu": "leaky_relu", "Elu": "elu", "Sigmoid": "sigmoid"},
    **{"Tanh": "tanh", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "Gelu": "gelu"},
    **{"Mish": "mish", "Dropout": "dropout", "PRelu": "leaky_relu", "Clip": "relu6"},
}
NORMS = {"BatchNormalization": "batchnorm", "InstanceNormalization": "instancenorm"}
VIEWS = {"Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Transpose", "Softmax"}
JOINS = {"Add": "residual", "Sum": "residual", "Mul": "multiply"}


def read_onnx(path: Path, *, name: str = "", allow_unknown: bool = False) -> ImportedNetwork:
    """The network of a file. InputError: operators that are not known, or no ONNX."""
    onnx = _import_onnx()
    if path.stat().st_size >= MOST_BYTES:
        raise InputError("expected a file of less than 2 GiB", where=str(path))
    try:
        model = onnx.load(str(path), load_external_data=False)
        model = onnx.shape_inference.infer_shapes(model)
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"no ONNX file: {reason}", where=str(path)) from None
    reader = _Reader(model.graph, str(path))
    reader.run(onnx)
    label = name or path.stem
    return finish(
        reader.graph, label, f"{label}, imported from ONNX", path.name, None, allow_unknown
    )


def _import_onnx() -> Any:
    try:
        onnx = import_module("onnx")
        import_module("onnx.shape_inference")
        return onnx
    except ImportError:
        raise InputError("onnx is not installed", advice="pip install 'paradl[onnx]'") from None


class _Reader:
    """Walks the nodes of a graph, which stand in an order in which they can run."""

    def __init__(self, source: Any, where: str) -> None:
        self.source, self.where = source, where
        self.shapes: dict[str, Sizes] = {}
        self.tensors: dict[str, TracedTensor] = {}
        for weight in source.initializer:
            shape = tuple(weight.dims)
            pair = (weight.name, math.prod(shape))
            self.tensors[weight.name] = TracedTensor(shape, weights=(pair,))
        for value in (*source.input, *source.value_info, *source.output):
            dims = value.type.tensor_type.shape.dim
            # A name stands for the number of samples.
            self.shapes[value.name] = tuple(dim.dim_value or 1 for dim in dims)
        inputs = [value.name for value in source.input if value.name not in self.tensors]
        if len(inputs) != 1:
            raise InputError(f"expected one input, got {len(inputs)}", where=where)
        shape = self.shapes[inputs[0]]
        self.graph = TracedGraph(expect_sizes(shape[1:], where))
        self.tensors[inputs[0]] = self.graph.enter((BATCH, *shape[1:]))

    def run(self, onnx: Any) -> None:
        """Take all nodes."""
        for node in self.source.node:
            attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
            reads = [self.tensors[name] for name in node.input if name in self.tensors]
            self.tensors[node.output[0]] = self.call(node, attributes, reads)

    def call(
        self, node: Any, attributes: Mapping[str, Any], reads: list[TracedTensor]
    ) -> TracedTensor:
        """The output of a node."""
        kind, name = node.op_type, (node.name or node.op_type).strip("/").replace("/", ".")
        live = [tensor for tensor in reads if not tensor.is_weight]
        if not live:
            merged = tuple(pair for tensor in reads for pair in tensor.weights)
            return TracedTensor((), weights=merged)
        if node.output[0] not in self.shapes:
            raise InputError(f"{name}: the shape of its output is not known", where=self.where)
        x, inferred = live[0], self.shapes[node.output[0]]
        shape = (BATCH, *inferred[1:])
        sizes = shape[1:] if len(shape) == len(x.sizes) + 1 else (shape[1], *x.sizes[1:])
        if kind in ("Conv", "ConvTranspose"):
            settings = self.convolve(kind, attributes, reads, shape)
            word = "conv" if kind == "Conv" else "transposed_conv"
            self.graph.take_weights(reads[1:])
            return self.graph.add(word, settings, name, [x], shape, sizes)
        if kind in ("Gemm", "MatMul") and len(live) == 1:
            return self.multiply(name, reads, x, shape)
        if kind in NORMS:
            self.graph.take_weights(reads[1:])
            return self.graph.add(NORMS[kind], {}, name, [x], shape, x.sizes)
        if kind in WORDS:
            return self.graph.add(WORDS[kind], {}, name, [x], shape, x.sizes)
        if kind in ("MaxPool", "AveragePool"):
            settings = _window(attributes)
            if attributes.get("ceil_mode"):
                settings["ceil"] = True
            word = "maxpool" if kind == "MaxPool" else "avgpool"
            return self.graph.add(word, settings, name, [x], shape, sizes)
        if kind in ("GlobalAveragePool", "ReduceMean"):
            sizes = (x.sizes[0], *(1,) * (len(x.sizes) - 1))
            return self.graph.add("adaptive_avgpool", {"extent": 1}, name, [x], shape, sizes)
        if kind == "Concat" and len(live) == len(reads) and attributes.get("axis") == 1:
            return self.graph.join("concat", name, live, shape)
        if kind in JOINS and len(live) == 2:
            return self.graph.join(JOINS[kind], name, live, shape)
        if kind in VIEWS or kind in JOINS or kind in ("Sub", "Div"):
            weights = self.graph.take_weights(t for t in reads if t.is_weight)
            if weights > 1 and kind not in VIEWS:  # a scale or a shift of channels
                return self.graph.count(name, [x], shape, x.sizes, weights=weights)
            return TracedTensor(shape, x.step, x.sizes)
        self.graph.unknown[kind] += math.prod(sizes)
        return self.graph.count(name, live, shape, sizes)

    def convolve(
        self, kind: str, attributes: Mapping[str, Any], reads: list[TracedTensor], shape: Sizes
    ) -> dict[str, Any]:
        """The settings of a convolution."""
        groups = attributes.get("group", 1)
        settings = {"filters": shape[1], "kernel": _short(reads[1].shape[2:])}
        settings |= {key: value for key, value in _window(attributes).items() if key != "kernel"}
        settings.setdefault("stride", 1)
        if groups > 1:
            settings["groups"] = groups
        if len(reads) < 3:
            settings["bias"] = False
        return settings

    def multiply(
        self, name: str, reads: list[TracedTensor], x: TracedTensor, shape: Sizes
    ) -> TracedTensor:
        """A fully connected layer."""
        if math.prod(x.sizes) not in reads[1].shape:
            raise InputError(
                f"{name}: a matrix of {reads[1].shape} for {math.prod(x.sizes)} items",
                where=self.where,
                advice="ONNX is read of networks of images alone",
            )
        self.graph.take_weights(reads[1:])
        settings: dict[str, Any] = {"outputs": shape[1]}
        if len(reads) < 3:
            settings["bias"] = False
        sizes = (shape[1], *(1,) * (len(x.sizes) - 1))
        return self.graph.add("fc", settings, name, [x], shape, sizes)


def _window(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Kernel, stride, padding and dilation of a window. InputError: sides that differ."""
    settings: dict[str, Any] = {}
    for key, ours, usual in (("kernel_shape", "kernel", 0), ("strides", "stride", 1)):
        if key in attributes:
            settings[ours] = _short(attributes[key])
        elif usual:
            settings[ours] = usual
    if _short(attributes.get("dilations", [1])) != 1:
        settings["dilation"] = _short(attributes["dilations"])
    if attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER"):
        settings["padding"] = "same"
    pads = [*attributes.get("pads", [])]
    half = len(pads) // 2
    if any(pads):
        if pads[:half] != pads[half:]:
            raise InputError(f"a window is padded on one side: {pads}", advice="use equal padding")
        settings["padding"] = _short(pads[:half])
    return settings


def _short(sizes: Any) -> Any:
    """A number where all sizes are the same."""
    return sizes[0] if len(set(sizes)) == 1 else [*sizes]
