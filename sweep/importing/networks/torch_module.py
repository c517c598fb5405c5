"""A PyTorch module as a model's file, by `torch.export` on the meta device: no weight is made.

Operators are ATen's before any decomposition, so a batch normalisation is a single one. Views cost
nothing: a tensor remembers the step that made it, and its present shape.
"""

import logging
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

from paradl.grids.reading.errors import InputError, format_count
from paradl.sweep.importing.networks.graph import (
    BATCH,
    ImportedNetwork,
    TracedGraph,
    TracedTensor,
    expect_sizes,
    finish,
)
from paradl.sweep.importing.networks.operator_steps import OperatorSite, view
from paradl.sweep.importing.networks.torch_operators import KINDS, TorchOperators
from paradl.sweep.importing.networks.torch_scans import replace_scans


def trace_torch(
    module: Any, shape: Sequence[int], *, name: str = "", allow_unknown: bool = False
) -> ImportedNetwork:
    """Return a module's network for samples of `shape` (C, then extents; or a length of tokens).

    InputError: operators that are not known, data-dependent control flow.

    >>> import paradl
    >>> from torch import nn
    >>> module = nn.Sequential(nn.Conv2d(3, 64, 7), nn.ReLU(), nn.Flatten(), nn.Linear(64, 10))
    >>> network = paradl.trace_torch(module, (3, 7, 7))
    >>> network.table.kinds, int(network.table.w.sum())
    (('conv', 'relu', 'fc'), 10048)
    """
    try:
        torch: Any = import_module("torch")
    except ImportError:
        raise InputError("PyTorch is not installed", advice="pip install 'paradl[torch]'") from None
    sizes = expect_sizes(shape, "shape") if len(shape) > 1 else (1, shape[0])
    # Before the module moves: on the meta device tied weights are apart.
    names: dict[int, str] = {}
    tied = {
        name: names.setdefault(id(value), name)
        for name, value in module.named_parameters(remove_duplicate=False)
    }
    sizes_of = {names[id(value)]: value.numel() for value in module.parameters()}
    # Inference: dropout and statistics of batches are none of its operators.
    module = module.eval().to("meta")
    dtype = torch.float32 if len(shape) > 1 else torch.int64
    batch = torch.zeros(BATCH, *shape, device="meta", dtype=dtype)
    # Keys and values of earlier tokens are for generation; export does not know their type.
    if getattr(getattr(module, "config", None), "use_cache", False):
        module.config.use_cache = False
    try:
        with _silence(), replace_scans():
            exported = torch.export.export(module, (batch,))
    # The module's own code runs, and may fail in any way.
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise InputError(
            f"torch.export cannot trace it: {reason[:200]}",
            where=type(module).__name__,
            advice="the forward pass must not depend on values",
        ) from None
    tracer = _ExportTracer(TracedGraph(sizes), exported, tied)
    tracer.run()
    used = sum(size for name, size in sizes_of.items() if name in tracer.graph.counted)
    left = sum(sizes_of.values()) - used
    note = f"not imported, as inference does not use them: {format_count(left, 'parameter')}"
    notes = (note,) if left else ()
    kind = type(module)
    label, title = name or kind.__name__.lower(), f"{kind.__name__}, imported from PyTorch"
    source = f"torch.export of {kind.__module__}.{kind.__qualname__}"
    return finish(tracer.graph, label, title, source, used, allow_unknown, notes)


@contextmanager
def _silence() -> Iterator[None]:
    """Keep PyTorch's warnings and half-traced graphs from the terminal."""
    logging.disable()
    try:
        with warnings.catch_warnings(), redirect_stderr(StringIO()), redirect_stdout(StringIO()):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(logging.NOTSET)


class _ExportTracer(TorchOperators):
    """Walks an exported graph, operator by operator."""

    def __init__(self, graph: TracedGraph, exported: Any, tied: Mapping[str, str]) -> None:
        super().__init__(graph)
        self.exported = exported
        signature = exported.graph_signature
        self.parameters: dict[str, str] = {
            name: tied.get(target, target)
            for name, target in signature.inputs_to_parameters.items()
        }
        constants = signature.inputs_to_lifted_tensor_constants
        self.constants = {**signature.inputs_to_buffers, **constants}
        self.tensors: dict[Any, Any] = {}

    def run(self) -> None:
        """Take all operators in their order."""
        for node in self.exported.graph.nodes:
            if node.op == "placeholder":
                self.tensors[node] = self.enter(node)
            elif node.op == "call_function":
                self.tensors[node] = self.call(node)

    def enter(self, node: Any) -> TracedTensor:
        """Return the tensor of a parameter, of a constant or of the sample."""
        shape = tuple(node.meta["val"].shape)
        if node.name in self.parameters:
            target = self.parameters[node.name]
            return TracedTensor(shape, weights=((target, math.prod(shape)),))
        if node.name in self.constants:
            return TracedTensor(shape)
        return self.graph.enter(shape)

    def call(self, node: Any) -> Any:
        """Return the output of an operator."""
        kind = _read_kind(node)
        if kind == "getitem":
            parts = self.tensors[node.args[0]]
            return parts[node.args[1]] if isinstance(parts, tuple) else parts
        value = node.meta.get("val")
        if isinstance(value, list | tuple):
            shapes = [tuple(part.shape) for part in value if part is not None]
        else:
            shapes = [tuple(getattr(value, "shape", ()))]
        args = [self._look_up(arg) for arg in (*node.args, *node.kwargs.values())]
        reads = [arg for arg in _flatten(args) if isinstance(arg, TracedTensor)]
        live = [tensor for tensor in reads if not tensor.is_weight]
        if kind == "copy" and live:
            return self._fill(node.args[0], reads[0], live[-1])
        # It depends on weights, constants or shapes alone: the same for all samples.
        if not live or kind in KINDS["shapes"] or (kind == "fill" and reads[0].is_weight):
            merged = tuple(dict.fromkeys(pair for tensor in reads for pair in tensor.weights))
            made = tuple(TracedTensor(shape, weights=merged) for shape in shapes)
            return made if isinstance(value, list | tuple) else made[0]
        if kind in KINDS["parts"]:
            return tuple(view(live[0], shape) for shape in shapes)
        site = OperatorSite(kind, self._name(node, kind, reads), shapes[0], args, reads, live)
        made = self.take(site, shapes)
        return made if isinstance(made, tuple) else self.add_rest(site, made)

    def _fill(self, node: Any, part: TracedTensor, x: TracedTensor) -> TracedTensor:
        """Return a part of a tensor that x is written into."""
        if part.is_weight:
            part = view(x, part.shape)
            # What the part is a view of depends on the sample from here on.
            while node.args and _read_kind(node) in KINDS["views"] | KINDS["parts"]:
                node = node.args[0]
            self.tensors[node] = view(x, tuple(node.meta["val"].shape))
        return part

    def _look_up(self, arg: Any) -> Any:
        if isinstance(arg, list | tuple):
            return [self._look_up(part) for part in arg]
        return self.tensors.get(arg) if hasattr(arg, "op") else arg

    def _name(self, node: Any, kind: str, reads: Sequence[TracedTensor]) -> str:
        """Return the path of the module that has the weights, or that calls the operator."""
        for tensor in reads:
            if len(tensor.weights) == 1 and tensor.is_weight:
                return tensor.weights[0][0].rpartition(".")[0] or kind
        stack = [*(node.meta.get("nn_module_stack") or {}).values()]
        path = stack[-1][0].removeprefix("L['self'].") if stack else ""
        return f"{path}.{kind}" if path and "[" not in path else kind


def _read_kind(node: Any) -> str:
    """Return the name of an operator."""
    target = str(node.target)  # of Python itself: <built-in function getitem>
    # Operators of other libraries keep the name of theirs.
    kind = target.rpartition(".")[0].removeprefix("aten.") or target.strip("<>").split()[-1]
    # In place (`add_`) or not is the same step; `__and__` is a name of its own.
    return kind.removesuffix("_") if not kind.startswith("_") else kind


def _flatten(args: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for arg in args:
        flat += _flatten(arg) if isinstance(arg, list | tuple) else [arg]
    return flat
