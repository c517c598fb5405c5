"""A PyTorch module as a model's file, by `torch.export` on the meta device: no weight is made.

Operators are ATen's before any decomposition, so a batch normalisation is a single one. Views cost
nothing: a tensor remembers the step that made it, and its present shape.
"""

import logging
import math
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from io import StringIO
from typing import Any

from paradl.grids.models.kinds import KIND_OF_STEP
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
from paradl.sweep.importing.networks.torch_operators import NORMS, TorchOperators

# Names of ATen, by what they do. Views move nothing: a framework may copy, but need not. Shapes
# take only the shape of a tensor. Parts are views of several. Scalars go item by item, by a number
# or alone, fused with what they follow. Traffic moves memory, and computes next to nothing.
NAMES = """
views: view reshape _unsafe_view view_as reshape_as transpose t contiguous flatten unflatten
squeeze unsqueeze expand expand_as broadcast_to clone alias detach to _to_copy movedim swapaxes
swapdims roll slice select narrow type_as lift_fresh_copy identity permute repeat
repeat_interleave float half bfloat16 int long bool flip index unfold diagonal view_as_complex
view_as_real real imag tril triu _assert_tensor_metadata

shapes: new_zeros new_ones new_full new_empty zeros_like ones_like full_like empty_like rand_like
randn_like

parts: chunk split split_with_sizes unbind tensor_split unsafe_chunk

scalars: add sub mul div rsub neg pow clamp clamp_min clamp_max sqrt rsqrt exp expm1 log log1p abs
reciprocal sin cos tan tanh erf floor ceil round sign square softplus selu celu logsigmoid
log_sigmoid hardshrink softshrink threshold bitwise_not logical_not eq ne lt le gt ge isnan isinf
remainder fmod floor_divide __and__ bitwise_and where masked_fill nan_to_num

traffic: upsample_bilinear2d upsample_nearest2d upsample_bicubic2d upsample_nearest1d
upsample_nearest3d upsample_trilinear3d upsample_linear1d _upsample_nearest_exact2d grid_sampler
grid_sampler_2d pixel_shuffle pixel_unshuffle channel_shuffle im2col col2im stack hstack vstack
sum prod amax amin max min maximum minimum argmax argmin logsumexp linalg_vector_norm norm cumsum
cumprod topk sort gather index_select take_along_dim index_put scatter scatter_add where
masked_fill addcmul addcdiv lerp prelu glu max_pool1d avg_pool1d adaptive_avg_pool1d
adaptive_max_pool2d max_pool2d_with_indices max_unpool2d one_hot outer atan2 logical_and
logical_or bitwise_and bitwise_or eq ne lt le gt ge pow tile
"""
KINDS = {
    kind.strip(): frozenset(names.split())
    for kind, _, names in (part.partition(":") for part in NAMES.split("\n\n"))
}
WORDS = {
    **{word: word for word in KIND_OF_STEP if KIND_OF_STEP[word].elementwise},
    "softmax": "softmax",
    "_softmax": "softmax",
    "log_softmax": "softmax",
}


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
        with _silence():
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
        target = str(node.target)
        if "getitem" in target:
            parts = self.tensors[node.args[0]]
            return parts[node.args[1]] if isinstance(parts, tuple) else parts
        # Operators of other libraries keep the name of theirs.
        kind = target.rpartition(".")[0].removeprefix("aten.") or target
        # In place (`add_`) or not is the same step; `__and__` is a name of its own.
        kind = kind.removesuffix("_") if not kind.startswith("_") else kind
        value = node.meta.get("val")
        if isinstance(value, list | tuple):
            shapes = [tuple(part.shape) for part in value if part is not None]
        else:
            shapes = [tuple(getattr(value, "shape", ()))]
        args = [self._look_up(arg) for arg in (*node.args, *node.kwargs.values())]
        reads = [arg for arg in _flatten(args) if isinstance(arg, TracedTensor)]
        live = [tensor for tensor in reads if not tensor.is_weight]
        # It depends on weights, constants or shapes alone: the same for all samples.
        if not live or kind in KINDS["shapes"] or (kind in ("copy", "fill") and reads[0].is_weight):
            merged = tuple(dict.fromkeys(pair for tensor in reads for pair in tensor.weights))
            made = tuple(TracedTensor(shape, weights=merged) for shape in shapes)
            return made if isinstance(value, list | tuple) else made[0]
        if kind in KINDS["parts"]:
            return tuple(view(live[0], shape) for shape in shapes)
        site = OperatorSite(kind, self._name(node, kind, reads), shapes[0], args, reads, live)
        made = self.take(site, shapes)
        return made if isinstance(made, tuple) else self.add_rest(site, made)

    def take(self, site: OperatorSite, shapes: Sequence[Any]) -> Any:
        """Return the output of an operator on activations, or several."""
        operator: Callable[..., Any] | None = getattr(self, f"take_{site.kind}", None)
        if operator is not None:
            return operator(site)
        if site.kind in NORMS:
            return self.normalise(site)
        if site.kind in WORDS:
            return self.word(site, WORDS[site.kind])
        if site.kind in KINDS["views"] or (site.kind in KINDS["scalars"] and len(site.reads) == 1):
            return view(site.live[0], site.shape)
        if site.kind not in KINDS["traffic"]:
            self.graph.unknown[site.kind] += math.prod(site.shape[1:])
        y = self.count(site)
        return y if len(shapes) == 1 else tuple(view(y, shape) for shape in shapes)

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


def _flatten(args: Sequence[Any]) -> list[Any]:
    flat: list[Any] = []
    for arg in args:
        flat += _flatten(arg) if isinstance(arg, list | tuple) else [arg]
    return flat
