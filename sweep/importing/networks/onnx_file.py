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
from sweep.importing.networks.operator_steps import (
    OperatorSite,
    OperatorSteps,
    ones,
    short,
    unusual,
)

MOST_BYTES = 2**31  # of a file: protobuf reads no more
WORDS = {
    **{"Relu": "relu", "LeakyRelu": "leaky_relu", "Elu": "elu", "Sigmoid": "sigmoid"},
    **{"Tanh": "tanh", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "Gelu": "gelu"},
    **{"Mish": "mish", "Dropout": "dropout", "PRelu": "leaky_relu", "Clip": "relu6"},
}
NORMS = {"BatchNormalization": "batchnorm", "InstanceNormalization": "instancenorm"}
VIEWS = {"Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Transpose", "Softmax"}
POOLS = {"MaxPool": "maxpool", "AveragePool": "avgpool"}
CONVOLUTIONS = {"Conv": "conv", "ConvTranspose": "transposed_conv"}
JOINS = {"Add": "residual", "Sum": "residual", "Mul": "multiply"}


def read_onnx(path: Path, *, name: str = "", allow_unknown: bool = False) -> ImportedNetwork:
    """Return the network of a file. InputError: operators that are not known, or no ONNX."""
    onnx = _import_onnx()
    if path.stat().st_size >= MOST_BYTES:
        raise InputError("expected a file of less than 2 GiB", where=str(path))
    try:
        model = onnx.load(str(path), load_external_data=False)
        model = onnx.shape_inference.infer_shapes(model)
    # Errors of onnx, and of protobuf, which it reads with.
    except Exception as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0][:200]
        raise InputError(f"no ONNX file: {reason}", where=str(path)) from None
    reader = _Reader(model.graph, str(path))
    reader.run(onnx)
    label = name or path.stem
    title = f"{label}, imported from ONNX"
    return finish(reader.graph, label, title, path.name, None, allow_unknown)


def _import_onnx() -> Any:
    try:
        onnx = import_module("onnx")
        import_module("onnx.shape_inference")
        return onnx
    except ImportError:
        raise InputError("onnx is not installed", advice="pip install 'paradl[onnx]'") from None


class _Reader(OperatorSteps):
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
        # Older files list weights among the inputs.
        inputs = [value.name for value in source.input if value.name not in self.tensors]
        if len(inputs) != 1:
            raise InputError(f"expected one input, got {len(inputs)}", where=where)
        shape = self.shapes[inputs[0]]
        super().__init__(TracedGraph(expect_sizes(shape[1:], where)))
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
        """Return the output of a node."""
        kind, name = node.op_type, (node.name or node.op_type).strip("/").replace("/", ".")
        live = [tensor for tensor in reads if not tensor.is_weight]
        if not live:
            merged = tuple(pair for tensor in reads for pair in tensor.weights)
            return TracedTensor((), weights=merged)
        if node.output[0] not in self.shapes:
            raise InputError(f"{name}: the shape of its output is not known", where=self.where)
        x, shape = live[0], (BATCH, *self.shapes[node.output[0]][1:])
        # A view has changed the dimensions: channels of the output, extents of the step.
        sizes = shape[1:] if len(shape) == len(x.sizes) + 1 else (shape[1], *x.sizes[1:])
        site = OperatorSite(kind, name, shape, [attributes], reads, live)
        if kind in CONVOLUTIONS:
            return self.convolve(site, attributes, sizes)
        if kind in ("Gemm", "MatMul") and len(live) == 1:
            return self.connect(site)
        if kind in NORMS:
            self.graph.take_weights(reads[1:])
            return self.word(site, NORMS[kind])
        if kind in WORDS:
            return self.word(site, WORDS[kind])
        if kind in POOLS:
            ceil = {"ceil": True} if attributes.get("ceil_mode") else {}
            return self.step(site, POOLS[kind], x, sizes, **_read_window(attributes), **ceil)
        if kind in ("GlobalAveragePool", "ReduceMean"):
            return self.pool_all(site, x)
        if kind == "Concat" and len(live) == len(reads) and attributes.get("axis") == 1:
            return self.graph.join("concat", name, live, shape)
        if kind in JOINS and len(live) == 2:
            return self.graph.join(JOINS[kind], name, live, shape)
        if kind in VIEWS or kind in JOINS or kind in ("Sub", "Div"):
            weights = self.graph.take_weights(site.weights)
            if weights > 1 and kind not in VIEWS:  # a scale or a shift of channels
                return self.graph.count(name, [x], shape, x.sizes, weights=weights)
            return TracedTensor(shape, x.step, x.sizes)
        self.graph.unknown[kind] += math.prod(sizes)
        return self.graph.count(name, live, shape, sizes)

    def convolve(
        self, site: OperatorSite, attributes: Mapping[str, Any], sizes: Sizes
    ) -> TracedTensor:
        """Add a convolution."""
        settings = {"filters": site.shape[1], "kernel": short(site.reads[1].shape[2:])}
        settings |= {k: v for k, v in _read_window(attributes).items() if k != "kernel"}
        more = attributes.get("output_padding", 0)
        settings |= unusual(groups=attributes.get("group", 1), output_padding=more)
        settings |= _read_bias(site)
        self.graph.take_weights(site.reads[1:])
        return self.step(site, CONVOLUTIONS[site.kind], site.live[0], sizes, **settings)

    def connect(self, site: OperatorSite) -> TracedTensor:
        """Add a fully connected layer."""
        x, matrix = site.live[0], site.reads[1]
        if math.prod(x.sizes) not in matrix.shape:
            raise InputError(
                f"{site.name}: a matrix of {matrix.shape} for {math.prod(x.sizes)} items",
                where=self.where,
                advice="of ONNX files, only networks of images are read",
            )
        self.graph.take_weights(site.reads[1:])
        sizes = (site.shape[1], *ones(x))
        return self.step(site, "fc", x, sizes, outputs=site.shape[1], **_read_bias(site))


def _read_bias(site: OperatorSite) -> dict[str, bool]:
    return {"bias": False} if len(site.reads) < 3 else {}


def _read_window(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Return kernel, stride, padding and dilation of a window. InputError: sides that differ."""
    settings: dict[str, Any] = {}
    if "kernel_shape" in attributes:
        settings["kernel"] = short(attributes["kernel_shape"])
    settings["stride"] = short(attributes.get("strides", 1))
    settings |= unusual(dilation=attributes.get("dilations", 1))
    if attributes.get("auto_pad", b"NOTSET") in (b"SAME_UPPER", b"SAME_LOWER"):
        settings["padding"] = "same"
    pads = [*attributes.get("pads", [])]
    half = len(pads) // 2
    if any(pads):
        if pads[:half] != pads[half:]:
            raise InputError(f"a window is padded on one side: {pads}", advice="use equal padding")
        settings["padding"] = short(pads[:half])
    return settings
