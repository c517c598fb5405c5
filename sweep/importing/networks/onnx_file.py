"""A CNN in ONNX as a model's file: operators of its graph as steps, weights by their sizes alone.

A convolution whose batch normalisation was folded into it is one with a bias. Weights in external
files are not opened. ONNX pads either side of a window by itself, a step both sides alike: where
that gives the same extents, it is what a step says, and else rows are added before it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from paradl.grids.reading.errors import InputError, add_place, format_text, shorten
from paradl.sweep.importing.networks.graph import (
    BATCH,
    ImportedNetwork,
    Sizes,
    TracedGraph,
    TracedTensor,
    expect_sizes,
    finish,
)
from paradl.sweep.importing.networks.onnx_graph import GraphShapes, load_model
from paradl.sweep.importing.networks.operator_steps import (
    OperatorSite,
    OperatorSteps,
    ones,
    short,
    unusual,
)

SAME = (b"SAME_UPPER", b"SAME_LOWER")


@dataclass(frozen=True)
class Window:
    """A window that makes the extents `y` of `x`; span: rows with the gaps of its dilation."""

    x: Sizes
    y: Sizes
    span: Sizes
    stride: Sizes

    def invert(self, more: Sizes) -> dict[str, object]:
        """Return the paddings of a transposed convolution that adds `more` rows."""
        sizes = zip(self.x, self.y, self.stride, self.span, more, strict=True)
        # Whatever says how many rows are cut off (pads, output_shape, auto_pad): extents tell.
        cut = [(n - 1) * stride + span + added - m for n, m, stride, span, added in sizes]
        padding = [max(0, -(-rows // 2)) for rows in cut]
        added = [a + 2 * p - rows for a, p, rows in zip(more, padding, cut, strict=True)]
        return unusual(padding=padding, output_padding=added)

    def find_padding(self, before: Sizes, after: Sizes) -> Any:
        """Return a padding of both sides that is as good as these rows; None: there is none."""
        both = _add(before, after)
        if before == after:
            return before
        if both == tuple(size - 1 for size in self.span):
            return "same"
        halves: list[int] = []
        for x, y, span, stride, rows in zip(
            self.x, self.y, self.span, self.stride, both, strict=True
        ):
            tried = (rows - rows // 2, rows // 2)
            halves += [half for half in tried if (x - span + 2 * half) // stride + 1 == y][:1]
        return halves if len(halves) == len(self.x) else None


def _add(before: Sizes, after: Sizes) -> Sizes:
    return tuple(map(sum, zip(before, after, strict=True)))


def describe_window(
    attributes: Mapping[str, Any], kernel: Sequence[int], x: Sizes, y: Sizes, *, inverts: bool
) -> tuple[dict[str, object], Sizes]:
    """Return the settings of a step that makes extents y of x, and rows to add before it.

    inverts: whether it is a transposed convolution. InputError: dimensions differ.
    """
    rank = len(kernel)
    pads = tuple(attributes.get("pads") or [0] * 2 * rank)
    stride, dilation = (attributes.get(key) or [1] * rank for key in ("strides", "dilations"))
    if any(len(sizes) != rank for sizes in (x, y, stride, dilation, pads[rank:])):
        raise InputError(f"a window of {rank} dimensions, or its attributes, for {[*x]}")
    span = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    window = Window(x, y, span, tuple(stride))
    settings = {"kernel": short(kernel), "stride": short(stride)} | unusual(dilation=dilation)
    if inverts:
        return settings | window.invert(attributes.get("output_padding") or (0,) * rank), ()
    if attributes.get("ceil_mode"):
        settings["ceil"] = True
    is_same = attributes.get("auto_pad") in SAME
    padding = "same" if is_same else window.find_padding(pads[:rank], pads[rank:])
    if padding is None:
        return settings, _add(pads[:rank], pads[rank:])
    return settings | unusual(padding=padding), ()


WORDS = {
    **{"Relu": "relu", "LeakyRelu": "leaky_relu", "Elu": "elu", "Sigmoid": "sigmoid"},
    **{"Tanh": "tanh", "HardSigmoid": "hardsigmoid", "HardSwish": "hardswish", "Gelu": "gelu"},
    **{"Mish": "mish", "Dropout": "dropout", "PRelu": "leaky_relu", "Clip": "relu6"},
}
NORMS = {"BatchNormalization": "batchnorm", "InstanceNormalization": "instancenorm"}
VIEWS = {"Identity", "Flatten", "Reshape", "Squeeze", "Unsqueeze", "Cast", "Transpose", "Softmax"}
POOLS = {"MaxPool": "maxpool", "AveragePool": "avgpool"}
CONVOLUTIONS = {"Conv": "conv", "ConvTranspose": "transposed_conv"}
JOINS = {"Add": "residual", "Mul": "multiply"}
# Item by item: with a number or alone, fused with what they follow.
SCALARS = {*JOINS, "Sub", "Div", "Min", "Max", "Pow", "Sqrt", "Exp", "Log", "Neg", "Abs", "Erf"}
# They move memory, and compute next to nothing; what else they read are sizes.
MOVES = {
    *("Concat", "Split", "Slice", "Gather", "Pad", "Resize", "Upsample", "Expand", "Tile"),
    *("DepthToSpace", "SpaceToDepth", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin"),
}
MOST_LABEL = 150
IMAGES = "of ONNX files, only networks of images are read"


def read_onnx(
    path: Path, sample: Sequence[int] | None = None, *, name: str = "", allow_unknown: bool = False
) -> ImportedNetwork:
    """Return the network of a file. sample: sizes that the file leaves open.

    InputError: operators that are not known, or no ONNX.
    """
    try:
        onnx: Any = import_module("onnx")
        for part in ("shape_inference", "inliner", "reference"):
            import_module(f"onnx.{part}")
    except ImportError:
        raise InputError("onnx is not installed", advice="pip install 'paradl[onnx]'") from None
    model = load_model(path, onnx)
    with add_place(str(path)):
        reader = _Reader(onnx, model, sample)
        reader.run()
    label = name or path.stem
    title = f"{label}, imported from ONNX"
    return finish(reader.graph, label, title, path.name, None, allow_unknown)


class _Reader(OperatorSteps):
    """Walks the nodes of a graph, which stand in an order in which they can run."""

    def __init__(self, onnx: Any, model: Any, sample: Sequence[int] | None) -> None:
        self.nodes, self.read_attribute = model.graph.node, onnx.helper.get_attribute_value
        self.shapes = GraphShapes(onnx, model)
        self.tensors = {name: self.make_weight(name, ()) for name in self.shapes.types}
        # Older files list weights among the inputs.
        inputs = [value for value in model.graph.input if value.name not in self.tensors]
        if len(inputs) != 1:
            raise InputError(f"expected one input, got {len(inputs)}")
        name, kind = inputs[0].name, inputs[0].type.tensor_type
        sizes = _fill_in([dim.dim_value for dim in kind.shape.dim], sample)
        super().__init__(TracedGraph(expect_sizes(sizes[1:], f"input {shorten(name)}")))
        self.shapes.enter(name, kind.elem_type, sizes)
        self.tensors[name] = self.graph.enter((BATCH, *sizes[1:]))

    def make_weight(self, name: str, parts: Sequence[tuple[str, int]]) -> TracedTensor:
        """Return a tensor that is the same for all samples: parts of others, or one of its own."""
        sizes = self.shapes.find(name) or ()
        items = math.prod(sizes)
        is_same = sum(size for _, size in parts) == items
        return TracedTensor(sizes, weights=tuple(parts) if is_same else ((name, items),))

    def run(self) -> None:
        """Take all nodes."""
        for node in self.nodes:
            label = (node.name or node.op_type).strip("/").replace("/", ".")[:MOST_LABEL]
            label = label if label.isprintable() and label else "operator"
            with add_place(f"node {label}"):
                self.shapes.add(node)
                self.take(node, label)

    def take(self, node: Any, label: str) -> None:
        """Add the outputs of a node."""
        reads = [self.tensors[name] for name in node.input if name]
        live = [tensor for tensor in reads if not tensor.is_weight]
        outputs = [name for name in node.output if name]
        if not live or not outputs or outputs[0] in self.shapes.values:
            parts = dict.fromkeys(pair for tensor in reads for pair in tensor.weights)
            self.tensors |= {name: self.make_weight(name, [*parts]) for name in outputs}
            return
        attributes = {part.name: self.read_attribute(part) for part in node.attribute}
        kind = format_text(f"{node.domain}.{node.op_type}" if node.domain else node.op_type)
        # Of most operators, outputs behind the first are masks and statistics.
        for name in outputs if kind == "Split" else outputs[:1]:
            site = OperatorSite(kind, label, self.find_shape(name, kind), [attributes], reads, live)
            self.tensors[name] = made = self.call(site, attributes)
        self.tensors |= {name: made for name in outputs if name not in self.tensors}

    def find_shape(self, name: str, kind: str) -> Sizes:
        """Return the shape of an activation, with BATCH samples."""
        sizes = self.shapes.find(name)
        if not sizes or min(sizes) < 1:
            known = "not known" if sizes is None else [*sizes]
            raise InputError(f"the sizes that {kind} gives are {known}", advice=IMAGES)
        return (BATCH, *sizes[1:]) if sizes[0] == self.shapes.samples else sizes

    def call(self, site: OperatorSite, attributes: Mapping[str, Any]) -> TracedTensor:
        """Return the output of an operator on activations."""
        if site.kind in VIEWS or (site.kind in SCALARS and len(site.live) == 1):
            return self.scale(site)
        if site.shape[0] != BATCH or len(site.shape) < 2:
            shape = [*site.shape]
            raise InputError(f"its output {shape} does not begin with the samples", advice=IMAGES)
        made = self.add_step(site, attributes)
        if math.prod(made.sizes) != site.items:
            sizes = [*site.live[0].sizes]
            raise InputError(f"no step gives {[*site.shape[1:]]} from {sizes}", advice=IMAGES)
        return made

    def add_step(self, site: OperatorSite, attributes: Mapping[str, Any]) -> TracedTensor:
        """Add the step of an operator, and return its output."""
        kind, x = site.kind, site.live[0]
        if kind in CONVOLUTIONS or kind in POOLS:
            return self.slide(site, attributes)
        if kind in ("Gemm", "MatMul") and len(site.live) == 1:
            return self.connect(site)
        if kind in NORMS:
            self.graph.take_weights(site.weights)
            return self.word(site, NORMS[kind])
        if kind in WORDS:
            y = self.word(site, WORDS[kind])
            return self.add_rest(site, y) if kind == "PRelu" else y
        if kind == "GlobalAveragePool" or (kind == "ReduceMean" and site.items == x.sizes[0]):
            return self.pool_all(site, x)
        if len(site.live) == len(site.reads):
            if kind == "Concat" and attributes["axis"] % len(site.shape) == 1:
                return self.graph.join("concat", site.name, site.live, site.shape)
            if kind in JOINS and len(site.live) == 2:
                return self.graph.join(JOINS[kind], site.name, site.live, site.shape)
        if kind not in MOVES and kind not in SCALARS:
            self.graph.unknown[kind] += site.items
        weights = 0 if kind in MOVES else self.graph.take_weights(site.weights)
        return self.count(site, weights=weights)

    def scale(self, site: OperatorSite) -> TracedTensor:
        """Return a view, or a step with the weights that scale or shift channels."""
        x = site.live[0]
        several = [tensor for tensor in site.weights if math.prod(tensor.shape) > 1]
        if site.kind in VIEWS or not (weights := self.graph.take_weights(several)):
            return TracedTensor(site.shape, x.step, x.sizes)
        return self.graph.count(site.name, [x], site.shape, x.sizes, weights=weights)

    def slide(self, site: OperatorSite, attributes: Mapping[str, Any]) -> TracedTensor:
        """Add a convolution or a pooling."""
        x, is_pool = self.fit_image(site.live[0], site), site.kind in POOLS
        kernel = attributes["kernel_shape"] if is_pool else site.reads[1].shape[2:]
        inverts = site.kind == "ConvTranspose"
        settings, more = describe_window(
            attributes, kernel, x.sizes[1:], site.shape[2:], inverts=inverts
        )
        if any(more):
            padded = (x.sizes[0], *(n + m for n, m in zip(x.sizes[1:], more, strict=True)))
            x = self.graph.count(f"{site.name}.pad", [x], (BATCH, *padded), padded)
        if is_pool:
            return self.step(site, POOLS[site.kind], settings, x, site.shape[1:])
        weight, groups = site.reads[1].shape, attributes.get("group", 1)
        if math.prod(weight) * groups != x.sizes[0] * site.shape[1] * math.prod(kernel):
            raise InputError(
                f"weights of {[*weight]} do not fit {[*x.sizes]} in {groups} groups (group)"
            )
        self.graph.take_weights(site.weights)
        settings |= {"filters": site.shape[1], **unusual(groups=groups), **_read_bias(site)}
        return self.step(site, CONVOLUTIONS[site.kind], settings, x, site.shape[1:])

    def connect(self, site: OperatorSite) -> TracedTensor:
        """Add a fully connected layer."""
        x, matrix = site.live[0], site.weights[0]
        if sorted(matrix.shape) != sorted((math.prod(x.sizes), site.items)):
            items = f"{math.prod(x.sizes)} items"
            raise InputError(f"a matrix of {[*matrix.shape]} for {items}", advice=IMAGES)
        self.graph.take_weights(site.weights)
        settings = {"outputs": site.items, **_read_bias(site)}
        return self.step(site, "fc", settings, x, (site.items, *ones(x)))


def _read_bias(site: OperatorSite) -> dict[str, bool]:
    return {"bias": False} if len(site.reads) < 3 else {}


def _fill_in(stated: Sequence[int], sample: Sequence[int] | None) -> Sizes:
    """Return the sizes of an input: BATCH samples, and those of `sample`, where a file has none."""
    # A name, such as N, is a size of 0 here; older exporters write -1.
    batch, *rest = (max(size, 0) for size in stated or (0,))
    named = [size or "?" for size in rest]
    if sample is None and 0 in rest:
        advice = "give them as --shape, such as --shape 3,224,224"
        raise InputError(f"its input leaves sizes open: {named}", advice=advice)
    given = [*(sample or rest)]
    if [n for n, size in zip(given, rest, strict=False) if size] != [n for n in rest if n]:
        raise InputError(f"the input has {named}, got {given}", where="--shape")
    return (batch or BATCH, *given)
