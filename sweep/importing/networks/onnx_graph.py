"""The model in an ONNX file: sizes of its tensors, and values of those that depend on sizes alone.

Local functions stand in place of their calls. Nodes are counted before functions are written out,
since 26 that call each other twice are 2^26.

Exporters write sizes as arithmetic, such as Shape, Gather, Concat and Reshape: onnx's reference
operators compute these, one node at a time, since inference of a whole graph holds any values.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.models.layers import MOST_COUNT
from paradl.grids.reading.errors import InputError, add_place, shorten
from paradl.grids.reading.textfile import open_file
from paradl.sweep.importing.networks.graph import Sizes

MOST_BYTES = 2**31  # protobuf reads no more; larger networks keep their weights in other files
MOST_NODES = 10_000  # a model's file has at most 5,000 layers
DEEPEST = 50  # graphs in graphs, and functions in functions


def load_model(path: Path, onnx: Any) -> Any:
    """Return the model of a file. InputError: no ONNX, or more than the graph of a network."""
    with open_file(path) as file:
        content = file.read(MOST_BYTES)
    with add_place(str(path)):
        try:
            model = onnx.load_model_from_string(content)
        except Exception:  # protobuf's, which have no class in common
            what = "no ONNX file, one that is cut off, or one of more than 2 GiB"
            raise InputError(what, advice="is it the right file?") from None
        functions = {(part.domain, part.name): part.node for part in model.functions}
        if _count_nodes(model.graph.node, functions, {}) > MOST_NODES:
            raise InputError(f"more than {MOST_NODES:,} nodes")
        try:
            return onnx.inliner.inline_local_functions(model) if functions else model
        except Exception as error:
            raise InputError(f"its functions cannot be read: {describe(error)}") from None


def describe(error: Exception) -> str:
    """Return the first line of an error of onnx, whose errors have no class in common."""
    line = (str(error).splitlines() or [type(error).__name__])[0][:200]
    return line if line.isprintable() else shorten(line)


def _count_nodes(
    nodes: Sequence[Any],
    functions: Mapping[tuple[str, str], Sequence[Any]],
    counts: dict[tuple[str, str], int],
    depth: int = 0,
) -> int:
    """Count nodes, with those of graphs in attributes, once functions are written out.

    counts: of functions so far. InputError: too deep.
    """
    if depth > DEEPEST:
        raise InputError("its functions call each other in a circle, or too deeply")
    if len(nodes) > MOST_NODES or any(len(node.attribute) > MOST_NODES for node in nodes):
        raise InputError(f"more than {MOST_NODES:,} nodes, or attributes of one")
    total = len(nodes)
    for node in nodes:
        graphs = [graph for part in node.attribute for graph in (part.g, *part.graphs)]
        for graph in graphs:
            total += _count_nodes(graph.node, functions, counts, depth + 1)
        name = (node.domain, node.op_type)
        if name in functions and name not in counts:
            counts[name] = _count_nodes(functions[name], functions, counts, depth + 1)
        total += counts.get(name, 0)
    return total


FLOATS = (1, 10, 11, 16, 17, 18, 19, 20)  # of 32, 16, 64 bits, bfloat16, and four of 8 bits
# Numbers below are no parameters' but a mask's, which softmax makes 0.
MASKED = -1e4
MOST_VALUES = 100  # of a tensor that is computed
MOST_DIMENSIONS = 16
# What exporters write sizes with; each takes no longer than to make its output.
ARITHMETIC = {
    *("Shape", "Size", "Constant", "ConstantOfShape", "Identity", "Cast", "Gather", "Slice"),
    *("Split", "Concat", "Squeeze", "Unsqueeze", "Reshape", "Transpose", "Expand", "Range"),
    *("Where", "Equal", "Less", "Greater", "Not", "And", "Or", "Add", "Sub", "Mul", "Div", "Mod"),
    *("Neg", "Abs", "Min", "Max", "Floor", "Ceil", "Round", "Sqrt", "Pow"),
    *("ReduceProd", "ReduceSum", "ReduceMin", "ReduceMax"),
}


class GraphShapes:
    """Types and values of tensors by name: of weights, of the sample, and of the nodes added."""

    def __init__(self, onnx: Any, model: Any) -> None:
        self.onnx, self.opsets, self.ir_version = onnx, [*model.opset_import], model.ir_version
        self.versions = {opset.domain: opset.version for opset in self.opsets}
        graph = model.graph
        self.declared = {value.name: value.type for value in (*graph.value_info, *graph.output)}
        self.types: dict[str, Any] = {}
        self.values: dict[str, NDArray[Any]] = {}
        self.weights = {weight.name: weight for weight in graph.initializer}
        self.samples = 1
        for name, weight in self.weights.items():
            self.add_type(name, weight.data_type, weight.dims[: MOST_DIMENSIONS + 1])
            # Small ones may be sizes.
            if math.prod(weight.dims) <= MOST_VALUES and (value := self.load(name)) is not None:
                self.values[name] = value

    def load(self, name: str) -> NDArray[Any] | None:
        """Return the values of a weight; None: of a damaged one, or one in another file."""
        weight = self.weights.get(name)
        if weight is None or weight.data_location == weight.EXTERNAL:
            return None
        with suppress(ValueError, TypeError, KeyError):
            value: NDArray[Any] = self.onnx.numpy_helper.to_array(weight)
            return value
        return None

    def is_parameter(self, name: str) -> bool:
        """Return whether a tensor is of floats, and no mask."""
        kind = self.types[name].tensor_type
        if kind.elem_type not in FLOATS:
            return False
        sizes = [dim.dim_value for dim in kind.shape.dim][-2:]
        # Masks are added to scores: positions by positions.
        value = self.load(name) if len(sizes) == 2 and sizes[0] == sizes[1] else None
        return value is None or not value.size or float(value.min()) > MASKED

    def is_uniform(self, name: str) -> bool:
        """Return whether all items of a weight are the same, as those of an untrained norm."""
        value = self.load(name)
        return value is not None and value.size > 0 and bool((value == value.flat[0]).all())

    def find_equal(self, name: str, others: Iterable[str]) -> str:
        """Return which of others has the same values, maybe transposed; else the name itself."""
        if (value := self.load(name)) is None:
            return name
        for other in others:
            found = self.load(other)
            if found is not None and any(np.array_equal(value, one) for one in (found, found.T)):
                return other
        return name

    def find(self, name: str) -> Sizes | None:
        """Return the sizes of a tensor; None: not known. InputError: no tensor has them."""
        shape = self.types[name].tensor_type.shape
        sizes = tuple(dim.dim_value for dim in shape.dim if dim.HasField("dim_value"))
        if not self.types[name].tensor_type.HasField("shape") or len(sizes) < len(shape.dim):
            return None
        is_legal = len(sizes) <= MOST_DIMENSIONS and min(sizes, default=0) >= 0
        if not is_legal or math.prod(sizes) > MOST_COUNT:
            raise InputError(f"no tensor has the sizes {shorten([*sizes])} of {shorten(name)}")
        return sizes

    def add(self, node: Any) -> None:
        """Add the outputs of a node. InputError: it cannot have its inputs or attributes."""
        lost = next((name for name in node.input if name and name not in self.types), None)
        if lost is not None:
            raise InputError(f"it reads {shorten(lost)}, which no node before it makes")
        for attribute in node.attribute:
            if node.op_type == "Constant" and attribute.name == "value":
                self.weights |= dict.fromkeys(node.output, attribute.t)
        try:
            self.types |= self._infer(node)
            if node.op_type in ARITHMETIC and not node.domain:
                self.values |= self._compute(node)
        except InputError:
            raise
        except Exception as error:
            raise InputError(describe(error)) from None

    def add_type(self, name: str, kind: int, sizes: Sequence[int]) -> None:
        """Add a tensor. kind: type of its items, by ONNX's numbers. InputError: bad sizes."""
        self.types[name] = self.onnx.helper.make_tensor_type_proto(kind, sizes)
        self.find(name)

    def _infer(self, node: Any) -> dict[str, Any]:
        """Return the types of a node's outputs: of an unknown operator, those that the file has."""
        onnx, version = self.onnx, self.versions.get(node.domain, 0)
        made: dict[str, Any] = {}
        is_plain = not any(attribute.HasField("g") for attribute in node.attribute)
        if is_plain and onnx.defs.has(node.op_type, version, node.domain):
            schema = onnx.defs.get_schema(node.op_type, version, node.domain)
            known = {name: self.types[name] for name in node.input if name}
            values = {name: self.values[name] for name in known if name in self.values}
            tensors = {n: onnx.numpy_helper.from_array(v, n) for n, v in values.items()}
            made = onnx.shape_inference.infer_node_outputs(
                schema, node, known, tensors, opset_imports=self.opsets, ir_version=self.ir_version
            )
        outputs = [name for name in node.output if name]
        for name in outputs:
            if not made.get(name):
                # The type that the file states, of as many samples as the input.
                made[name] = stated = self.declared.get(name, onnx.TypeProto())
                dims = stated.tensor_type.shape.dim
                if dims and not dims[0].HasField("dim_value"):
                    dims[0].dim_value = self.samples
        return {name: made[name] for name in outputs}

    def _compute(self, node: Any) -> dict[str, NDArray[Any]]:
        """Return the values of a node's outputs, if they are few and those of its inputs known."""
        inputs = dict.fromkeys(name for name in node.input if name)
        outputs = [name for name in node.output if name]
        made = [self.find(name) for name in outputs]
        if any(sizes is None or math.prod(sizes) > MOST_VALUES for sizes in made):
            return {}
        known = self.values
        if node.op_type in ("Shape", "Size"):
            # Only the sizes of its input matter: an array of them that takes no memory.
            known = {n: np.broadcast_to(np.int8(0), s) for n in inputs if (s := self.find(n))}
        read = {name: known[name] for name in inputs if name in known}
        if len(read) < len(inputs):
            return {}
        function = self.onnx.helper.make_function(
            "paradl", "sizes", [*inputs], outputs, [node], self.opsets
        )
        with np.errstate(all="raise"):
            results = self.onnx.reference.ReferenceEvaluator(function).run(None, read, {})
        return dict(zip(outputs, results, strict=True))
