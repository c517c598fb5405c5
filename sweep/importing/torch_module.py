"""A PyTorch module as a model's file, by `torch.export` on the meta device: no weight is made.

Operators are those of ATen before any decomposition, so that a batch normalisation is one. Views
are free: a tensor remembers the step that made it, and what a view makes of its shape.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from grids.models.kinds import KIND_OF_STEP
from grids.reading.errors import InputError
from sweep.importing.graph import BATCH, Graph, ImportedNetwork, Tensor, expect_sizes, finish
from sweep.importing.operator_steps import Site, view
from sweep.importing.torch_operators import NORMS, Operators

VIEWS = {
    *("view", "reshape", "_unsafe_view", "transpose", "t", "contiguous", "flatten", "unflatten"),
    *("squeeze", "unsqueeze", "expand", "clone", "alias", "detach", "to", "_to_copy", "movedim"),
    *("roll", "slice", "select", "narrow", "type_as", "lift_fresh_copy", "identity", "expand_as"),
    *(
        "permute",
        "repeat",
        "repeat_interleave",
        "float",
        "_assert_tensor_metadata",
        "flip",
        "index",
    ),
}
# What takes the shape of a tensor alone.
MADE = {"new_zeros", "new_ones", "new_full", "zeros_like", "ones_like", "full_like", "empty_like"}
PARTS = {"chunk", "split", "split_with_sizes", "unbind", "tensor_split"}
# By a number, or of one tensor without a word of its own: fused with what they follow.
SCALAR = {"add", "sub", "mul", "div", "rsub", "neg", "pow", "clamp", "sqrt", "rsqrt", "exp", "abs"}
WORDS = {
    **{word: word for word in KIND_OF_STEP if KIND_OF_STEP[word].elementwise},
    "softmax": "softmax",
    "_softmax": "softmax",
}


def trace_torch(
    module: Any, shape: Sequence[int], *, name: str = "", allow_unknown: bool = False
) -> ImportedNetwork:
    """The network of a module for samples of `shape` (C, then extents; or a length of tokens).

    InputError: operators that are not known, data-dependent control flow.
    """
    torch = _import_torch()
    sizes = expect_sizes(shape, "shape") if len(shape) > 1 else (1, shape[0])
    # Before the module moves: on the meta device tied weights are apart.
    names: dict[int, str] = {}
    tied = {
        name: names.setdefault(id(value), name)
        for name, value in module.named_parameters(remove_duplicate=False)
    }
    sizes_of = {names[id(value)]: value.numel() for value in module.parameters()}
    module = module.eval().to("meta")
    kind = torch.float32 if len(shape) > 1 else torch.int64
    batch = torch.zeros(BATCH, *shape, device="meta", dtype=kind)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            exported = torch.export.export(module, (batch,))
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"torch.export cannot trace it: {reason[:200]}",
            where=type(module).__name__,
            advice="the forward pass must not depend on values",
        ) from None
    tracer = _Tracer(Graph(sizes), exported, tied)
    tracer.run()
    used = sum(size for name, size in sizes_of.items() if name in tracer.graph.counted)
    left = sum(sizes_of.values()) - used
    notes = (f"{left:,} parameters are not used in inference: not imported",) if left else ()
    label = name or type(module).__name__.lower()
    return finish(
        tracer.graph,
        label,
        f"{type(module).__name__}, imported from PyTorch",
        f"torch.export of {type(module).__module__}.{type(module).__qualname__}",
        used,
        allow_unknown,
        notes,
    )


def _import_torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise InputError("PyTorch is not installed", advice="pip install 'paradl[torch]'") from None


class _Tracer(Operators):
    """Walks an exported graph, operator by operator."""

    def __init__(self, graph: Graph, exported: Any, tied: Mapping[str, str]) -> None:
        super().__init__(graph)
        self.exported = exported
        signature = exported.graph_signature
        self.parameters: dict[str, str] = {
            name: tied.get(target, target)
            for name, target in signature.inputs_to_parameters.items()
        }
        self.constants = {
            **signature.inputs_to_buffers,
            **signature.inputs_to_lifted_tensor_constants,
        }
        self.tensors: dict[Any, Any] = {}

    def run(self) -> None:
        """Take all operators in their order."""
        for node in self.exported.graph.nodes:
            if node.op == "placeholder":
                self.tensors[node] = self.enter(node)
            elif node.op == "call_function":
                self.tensors[node] = self.call(node)

    def enter(self, node: Any) -> Tensor:
        """A parameter, a constant or the sample."""
        shape = tuple(node.meta["val"].shape)
        if node.name in self.parameters:
            target = self.parameters[node.name]
            return Tensor(shape, weights=((target, math.prod(shape)),))
        if node.name in self.constants:
            return Tensor(shape)
        return self.graph.enter(shape)

    def call(self, node: Any) -> Any:
        """The output of an operator."""
        target = str(node.target)
        if "getitem" in target:
            parts = self.tensors[node.args[0]]
            return parts[node.args[1]] if isinstance(parts, tuple) else parts
        kind = target.removeprefix("aten.").partition(".")[0].removesuffix("_")
        value = node.meta.get("val")
        if isinstance(value, list | tuple):
            shapes = [tuple(part.shape) for part in value if part is not None]
        else:
            shapes = [tuple(getattr(value, "shape", ()))]
        args = [self._look_up(arg) for arg in (*node.args, *node.kwargs.values())]
        reads = [arg for arg in _flatten(args) if isinstance(arg, Tensor)]
        live = [tensor for tensor in reads if not tensor.is_weight]
        if not live or kind in MADE or (kind in ("copy", "fill") and reads[0].is_weight):
            merged = tuple(dict.fromkeys(pair for tensor in reads for pair in tensor.weights))
            made = tuple(Tensor(shape, weights=merged) for shape in shapes)
            return made if isinstance(value, list | tuple) else made[0]
        if kind in PARTS:
            return tuple(view(live[0], shape) for shape in shapes)
        operator: Callable[..., Any] | None = getattr(self, f"take_{kind}", None)
        site = Site(kind, self._name(node, kind, reads), shapes[0], args, reads, live)
        if operator is not None:
            return operator(site)
        if kind in NORMS:
            return self._normalise(site)
        if kind in WORDS:
            return self.word(site, WORDS[kind])
        if kind in VIEWS or (kind in SCALAR and len(reads) == 1):
            return view(live[0], shapes[0])
        self.graph.unknown[kind] += math.prod(shapes[0][1:])
        return self.count(site)

    def _look_up(self, arg: Any) -> Any:
        """An argument, with nodes as the tensors that they gave."""
        if isinstance(arg, list | tuple):
            return [self._look_up(part) for part in arg]
        return self.tensors.get(arg) if hasattr(arg, "op") else arg

    def _name(self, node: Any, kind: str, reads: Sequence[Tensor]) -> str:
        """The path of the module that has the weights, or of the one that calls the operator."""
        for tensor in reads:
            if len(tensor.weights) == 1 and tensor.is_weight:
                return tensor.weights[0][0].rpartition(".")[0] or kind
        stack = [*(node.meta.get("nn_module_stack") or {}).values()]
        path = stack[-1][0].removeprefix("L['self'].") if stack else ""
        return f"{path}.{kind}" if path and "[" not in path else kind


def _flatten(args: Sequence[Any]) -> list[Any]:
    """Arguments, with those in lists."""
    flat: list[Any] = []
    for arg in args:
        flat += _flatten(arg) if isinstance(arg, list | tuple) else [arg]
    return flat
