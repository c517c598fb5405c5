"""A network in ONNX as a model's file: operators of its graph as those of ATen, and so as steps.

Parameters are the floats that a file holds; a convolution whose batch normalisation was folded into
it is one with a bias. Weights in external files are not opened. ONNX pads either side of a window
by itself, a step both sides alike: where that gives the same extents, it is what a step says, and
else rows are added before it.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any

from paradl.grids.reading.errors import InputError, add_place, format_text, shorten
from paradl.sweep.importing.networks.graph import (
    BATCH,
    FUSED,
    VENDOR,
    ImportedNetwork,
    Sizes,
    TracedGraph,
    TracedTensor,
    expect_sizes,
    finish,
)
from paradl.sweep.importing.networks.onnx_graph import FLOATS, GraphShapes, load_model
from paradl.sweep.importing.networks.operator_steps import OperatorSite, short, unusual, view
from paradl.sweep.importing.networks.torch_operators import KINDS, TorchOperators

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


# ONNX's operators by names of ATen: those of the same name, then others. `gather` stands for all
# that move memory and compute next to nothing.
SAME_NAME = """Relu Elu Celu Selu Sigmoid Tanh HardSigmoid HardSwish Gelu Mish Softplus Softmax Erf
Exp Log Sqrt Reciprocal Pow Neg Abs Floor Ceil Round Sign Sin Cos Where Add Sub Mul Div Einsum
Dropout Conv ConvTranspose MaxPool AveragePool"""
OTHER_NAMES = {
    "view": """Identity Flatten Reshape Squeeze Unsqueeze Transpose Expand Slice Cast CastLike Trilu
    QuantizeLinear DequantizeLinear""",
    "gather": """Resize Upsample DepthToSpace SpaceToDepth Tile Pad GridSample GlobalMaxPool LRN
    CumSum TopK ArgMax ArgMin OneHot GatherElements GatherND ScatterND ScatterElements ReduceSum
    ReduceMax ReduceMin ReduceProd ReduceL1 ReduceL2 ReduceSumSquare ReduceLogSumExp
    RotaryEmbedding""",
    "eq": "Equal Less Greater LessOrEqual GreaterOrEqual Not And Or Xor IsNaN IsInf Mod",
    **{"mm": "Gemm MatMul", "index": "Gather", "chunk": "Split", "cat": "Concat"},
    **{"mean": "ReduceMean GlobalAveragePool", "add": "Sum", "clamp": "Min Max"},
    **{"hardtanh": "Clip", "leaky_relu": "LeakyRelu PRelu", "silu": "Swish"},
    **{"batch_norm": "BatchNormalization", "instance_norm": "InstanceNormalization"},
    **{"layer_norm": "LayerNormalization", "rms_norm": "RMSNormalization"},
    **{"group_norm": "GroupNormalization", "log_softmax": "LogSoftmax", "lstm": "LSTM"},
    **{"gru": "GRU RNN", "scaled_dot_product_attention": "Attention"},
}
ATEN = {kind: kind.lower() for kind in SAME_NAME.split()}
ATEN |= {kind: name for name, kinds in OTHER_NAMES.items() for kind in kinds.split()}
# Arguments and their defaults: attributes in old versions of ONNX, inputs behind the first in new.
ARGUMENTS: dict[str, dict[str, Any]] = {
    **{"cat": {"axis": 1}, "mean": {"axes": None}, "dropout": {"ratio": 0.5}},
    "hardtanh": {"min": None, "max": None},
}
POOLS = {"maxpool": "maxpool", "averagepool": "avgpool"}
MOST_LABEL = 150


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
        reader.walk(model.graph.node)
    label = name or path.stem
    title = f"{label}, imported from ONNX"
    found = {"no parameters, and the same for all samples": reader.constants}
    found |= {"read by several operators, and counted once": reader.shared}
    listed = {what: map(shorten, [*names][:8]) for what, names in found.items() if names}
    notes = [f"{what}: {', '.join(names)}" for what, names in listed.items()]
    return finish(reader.graph, label, title, path.name, None, allow_unknown, notes)


class _Reader(TorchOperators):
    """Walks the nodes of a graph, which stand in an order in which they can run.

    constants: inputs beside the sample, and tables that are no parameters. shared: weights.
    """

    def __init__(self, onnx: Any, model: Any, sample: Sequence[int] | None) -> None:
        self.read_attribute = onnx.helper.get_attribute_value
        self.shapes = GraphShapes(onnx, model)
        self.tensors = {name: self.make_weight(name) for name in self.shapes.types}
        # Older files list weights among the inputs. Masks, types and positions follow tokens.
        inputs = [value for value in model.graph.input if value.name not in self.tensors]
        inputs.sort(key=lambda value: value.name != "input_ids")
        kinds = [value.type.tensor_type.elem_type for value in inputs]
        pasts = ["past" in value.name for value in inputs]
        floats = [kind in FLOATS and not past for kind, past in zip(kinds, pasts, strict=True)]
        if not inputs or any(floats[1:]):
            listed = ", ".join(shorten(value.name) for value in inputs[:5])
            what = f"expected one input, got {len(inputs)}: {listed}"
            raise InputError(what, advice="export it without states")
        name, *others = [value.name for value in inputs]
        stated = [value.type.tensor_type.shape.dim for value in inputs]
        sizes = _fill_in([dim.dim_value for dim in stated[0]], sample)
        extents = sizes[1:]
        if len(extents) == 1:  # features of a table, or tokens
            extents = (*extents, 1) if kinds[0] in FLOATS else (1, *extents)
        super().__init__(TracedGraph(expect_sizes(extents, f"input {shorten(name)}")))
        self.shapes.samples = sizes[0]
        self.shapes.add_type(name, kinds[0], sizes)
        self.tensors[name] = self.graph.enter((BATCH, *sizes[1:]))
        self.constants: dict[str, None] = dict.fromkeys(others)
        self.shared: dict[str, None] = {}
        named = {dim.dim_param: size for dim, size in zip(stated[0], sizes, strict=False)}
        for name, kind, dims, past in zip(others, kinds[1:], stated[1:], pasts[1:], strict=True):
            # Training has no earlier tokens, and masks are of all.
            known = [dim.dim_value or named.get(dim.dim_param, int(not past)) for dim in dims]
            every = [not past and re.search("past|total", dim.dim_param) for dim in dims]
            pairs = zip(known, every, strict=True)
            self.shapes.add_type(name, kind, [sizes[-1] if whole else n for n, whole in pairs])
            self.tensors[name] = self.make_weight(name)

    def make_weight(
        self, name: str, parts: Sequence[tuple[str, int]] | None = None
    ) -> TracedTensor:
        """Return a tensor that is the same for all samples: of parameters, or one of its own."""
        sizes = self.shapes.find(name) or ()
        if not self.shapes.is_parameter(name):
            return TracedTensor(sizes)
        parts = [(name, math.prod(sizes))] if parts is None else parts
        return TracedTensor(sizes, weights=tuple(dict.fromkeys(parts)))

    def walk(self, nodes: Sequence[Any]) -> None:
        """Take all nodes."""
        for node in nodes:
            label = str(node.name or node.op_type).strip("/").replace("/", ".")[:MOST_LABEL]
            label = label if label.isprintable() and label else "operator"
            with add_place(f"node {label}"):
                try:
                    self.shapes.add(node)
                    self.take_node(node, label)
                except InputError:
                    raise
                # What shape inference lets pass, such as a matrix of four dimensions.
                except (AttributeError, LookupError, TypeError, ValueError, ArithmeticError):
                    raise InputError("its inputs or attributes do not fit it") from None

    def take_node(self, node: Any, label: str) -> None:
        """Add the outputs of a node."""
        if any(part.HasField("g") for part in node.attribute):
            advice = "export it without branches or loops, or caches of earlier tokens"
            raise InputError(f"{shorten(node.op_type)} has a graph of its own", advice=advice)
        reads = [self.tensors[name] for name in node.input if name]
        outputs = [name for name in node.output if name]
        is_live = any(not tensor.is_weight for tensor in reads)
        if not is_live or not outputs or outputs[0] in self.shapes.values:
            # Single items are numbers that it computes with; sources have weights of their own.
            parts = [pair for tensor in reads for pair in tensor.weights if pair[1] > 1]
            own = None if node.op_type in ("Constant", "DequantizeLinear") else parts
            self.tensors |= {name: self.make_weight(name, own) for name in outputs}
            return
        name = f"{node.domain}.{node.op_type}" if node.domain else node.op_type
        kind = ATEN.get(name, format_text(name))
        attributes = {part.name: self.read_attribute(part) for part in node.attribute}
        if kind == "index" and reads[0].is_weight:
            kind = "index_select" if attributes.get("axis") else "embedding"
        args: list[Any] = [attributes]
        values = [self.shapes.values.get(name) for name in node.input[1:]]
        for place, (key, default) in enumerate(ARGUMENTS.get(kind, {}).items()):
            value = values[place] if key not in attributes and place < len(values) else None
            args.append(attributes.get(key, default) if value is None else short(value.tolist()))
        # Behind the scale and the shift are means and variances, which are no parameters.
        reads = reads[:3] if kind.endswith("norm") else reads
        reads = [self.choose_weights(kind, tensor, label) for tensor in reads]
        shapes = [self.find_shape(name, kind) for name in outputs]
        live = [tensor for tensor in reads if not tensor.is_weight]
        site = OperatorSite(kind, label, shapes[0], args, reads, live)
        made = self.take(site, [site.shape])
        made = self.add_rest(site, made[0] if isinstance(made, tuple) else made)
        self.tensors |= {n: view(made, shape) for n, shape in zip(outputs, shapes, strict=True)}

    def choose_weights(self, kind: str, tensor: TracedTensor, label: str) -> TracedTensor:
        """Return what an operator reads, without parameters where there can be none."""
        is_scalar = kind in {*KINDS["scalars"], "hardtanh"}
        is_number = is_scalar and math.prod(tensor.shape) == 1
        # A scale is one of channels: what differs by position, too, is a table of angles.
        is_table = kind in ("mul", "div") and sum(size > 1 for size in tensor.shape) > 1
        names = [name for name, _ in tensor.weights]
        if is_number or is_table or kind in ("view", "gather"):
            self.constants |= dict.fromkeys(names) if is_table else {}
            return replace(tensor, weights=())
        weights = []
        for name, size in tensor.weights:
            # Exporters write what is equal once: a shared table, and ones of untrained norms.
            same = self.shapes.find_equal(name, self.tables) if kind == "mm" else name
            if same in self.graph.counted and self.shapes.is_uniform(same):
                same = f"{label}.{name}"
            elif same in self.graph.counted:
                self.shared[same] = None
            weights.append((same, size))
        return replace(tensor, weights=tuple(weights))

    def find_shape(self, name: str, kind: str) -> Sizes:
        """Return the shape of an activation, with BATCH samples."""
        sizes, samples = self.shapes.find(name), self.shapes.samples
        if sizes is None or min(sizes, default=1) < 1:
            known = "not known" if sizes is None else [*sizes]
            advice = FUSED if VENDOR in kind else "none may depend on values of the sample"
            raise InputError(f"the sizes that {kind} gives are {known}", advice=advice)
        # Wherever the samples are: what counts is the number of items.
        at = next((place for place, size in enumerate(sizes) if size % samples == 0), None)
        count = 0 if at is None else sizes[at] // samples * BATCH
        return sizes if at is None else (*sizes[:at], count, *sizes[at + 1 :])

    def take_conv(self, site: OperatorSite) -> TracedTensor:
        """Add a convolution or a pooling; those along a sequence are counted."""
        attributes, is_pool = site.args[0], site.kind in POOLS
        kernel = attributes["kernel_shape"] if is_pool else site.reads[1].shape[2:]
        if len(kernel) == 1 or not (is_pool or site.reads[1].is_weight):
            return self.count(site) if is_pool else self.take_conv1d(site)
        x, inverts = self.fit_image(site.live[0], site), site.kind == "convtranspose"
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
        settings |= {"filters": site.shape[1], **unusual(groups=groups)}
        word = "transposed_conv" if inverts else "conv"
        return self.weighted(word, settings, site, x, site.shape[1:])

    take_convtranspose = take_maxpool = take_averagepool = take_conv

    def take_lstm(self, site: OperatorSite) -> Any:
        """Add a recurrent layer, of matrices [directions, gates x features, width]."""
        directions, x = site.reads[1].shape[0], site.live[0]
        gates = 1 if site.kind == "lstm" else directions
        # Not the states that it starts with, nor the lengths of samples.
        read = [tensor for tensor in site.weights if tensor.weights]
        parts = [replace(t, shape=(gates * t.shape[1], *t.shape[2:])) for t in read]
        features = directions * site.args[0]["hidden_size"]
        args = [x, None, None, len(parts) > 2, 1, 0.0, False, directions > 1]
        made = replace(site, shape=(*x.shape[:2], features), reads=[x, *parts], args=args)
        return super().take_lstm(made) if site.kind == "lstm" else super().take_gru(made)

    take_gru = take_lstm

    def take_einsum(self, site: OperatorSite) -> TracedTensor:
        equation = site.args[0].get("equation", b"").decode(errors="replace")
        return super().take_einsum(replace(site, args=[equation]))


def _fill_in(stated: Sequence[int], sample: Sequence[int] | None) -> Sizes:
    """Return the sizes of an input: BATCH samples, and those of `sample`, where a file has none."""
    # A name, such as N, is a size of 0 here; older exporters write -1.
    batch, *rest = (max(size, 0) for size in stated or (0,))
    named = [size or "?" for size in rest]
    if sample is None and 0 in rest:
        advice = "give them as --shape, such as --shape 3,224,224, or --shape 512 of tokens"
        raise InputError(f"its input leaves sizes open: {named}", advice=advice)
    given = [*(sample or rest)]
    fits = len(given) == len(rest) or not stated
    if not fits or any(size not in (0, n) for n, size in zip(given, rest, strict=False)):
        raise InputError(f"the input has {named}, got {given}", where="--shape")
    return (batch or BATCH, *given)
