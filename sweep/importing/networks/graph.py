"""Networks as importers see them: a graph of operators becomes the steps of a model's file.

An importer (torch_module.py, onnx_file.py) calls `TracedGraph` operator by operator: each call
names a step (grids/models/steps/step.py), what it reads, and the sizes (C, then extents) of what
it gives. Operators without a step become `free`, with counts. Then shape inference on the file must
reproduce the sizes and the parameters of the source; otherwise the import is refused.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from paradl.grids.entries.names import list_names
from paradl.grids.library import find
from paradl.grids.models.architecture import Architecture
from paradl.grids.models.layers import LayerTable
from paradl.grids.reading.errors import InputError, ShapeError, format_count, shorten
from paradl.grids.reading.yamlfile import validate, write_flow

Sizes = tuple[int, ...]
SAMPLE = "sample"
MOST_OPERATORS = 20_000
# Samples of a traced batch: two, so that a dimension of 1 is not the batch's.
BATCH = 2
VENDOR = "com.microsoft"  # domain of operators that onnxruntime writes
FUSED = "export it before onnxruntime fuses operators or quantises weights"


@dataclass(frozen=True)
class TracedTensor:
    """Output of an operator: the step that made it, and that step's sizes; None: no activation.

    shape: as the source has it, of BATCH samples in any place. channel: the dimension of its
    channels, which views move. weights: names and sizes of the parameters that it is made of, where
    no sample is in it.
    """

    shape: Sizes
    step: str | None = None
    sizes: Sizes = ()
    channel: int = 1
    weights: tuple[tuple[str, int], ...] = ()

    @property
    def items(self) -> int:
        """Items per sample."""
        return math.prod(self.shape) // BATCH

    @property
    def parameters(self) -> int:
        """Number of parameters that it is made of."""
        return sum(size for _, size in self.weights)

    @property
    def is_weight(self) -> bool:
        """True if it is the same for all samples."""
        return self.step is None


@dataclass
class TracedGraph:
    """Steps written so far. free, unknown: operators without a step, by number and by items.

    counted: parameters that a step has, and their sizes. made: items of each step's output per
    sample. last: the step that the next one would read. sources: what each step reads, by name.
    """

    sample: Sizes
    steps: list[dict[str, Any]] = field(default_factory=list)
    names: Counter[str] = field(default_factory=Counter)
    counted: dict[str, int] = field(default_factory=dict)
    free: Counter[str] = field(default_factory=Counter)
    unknown: Counter[str] = field(default_factory=Counter)
    made: dict[str, int] = field(default_factory=dict)
    last: str = SAMPLE
    sources: dict[str, str] = field(default_factory=dict)

    @property
    def rank(self) -> int:
        """Dimensions of a sample."""
        return len(self.sample) - 1

    def enter(self, shape: Sizes) -> TracedTensor:
        """Return the sample as the first tensor."""
        return TracedTensor(shape, SAMPLE, self.sample)

    def add(
        self,
        word: str,
        settings: Mapping[str, Any],
        name: str,
        reads: Sequence[TracedTensor],
        shape: Sizes,
        sizes: Sizes,
        channel: int = 1,
    ) -> TracedTensor:
        """Add a step that reads the first tensor, and return its output.

        Other tensors are named in `settings`.
        """
        unique = name
        # A source may have a name such as conv_2 besides two of conv.
        while unique in self.made or unique == SAMPLE:
            self.names[name] += 1
            unique = f"{name}_{self.names[name] + 1}"
        # A loop that is unrolled by tracing may have no end in sight.
        if len(self.steps) > MOST_OPERATORS:
            raise InputError(f"more than {MOST_OPERATORS:,} operators")
        # A step reads the one before it, or the one that a `read` in front of it names.
        self.read(reads[0])
        self.sources[unique] = str(reads[0].step)
        self.steps.append({word: {**settings, "name": unique}})
        self.last = unique
        self.made[unique] = math.prod(sizes)
        return TracedTensor(shape, unique, sizes, channel)

    def split(self, tensor: TracedTensor, parts: int) -> list[TracedTensor]:
        """Replace the last step, a linear one, by several narrower ones; return their outputs."""
        # Queries, keys and values of one matrix: attention reads them as three tensors.
        [(word, settings)] = self.steps[-1].items()
        if word != "linear" or tensor.step != self.last or settings["features"] % parts:
            return [tensor] * parts
        self.steps.pop()
        sizes = (settings["features"] // parts, *tensor.sizes[1:])
        source = TracedTensor((), self.sources[self.last])
        self.last = self.sources[self.last]
        if self.steps and "read" in self.steps[-1]:
            self.steps.pop()
            self.last = ""  # another step is the last now, so the first part reads by name
        changed = {key: value for key, value in settings.items() if key != "name"}
        changed["features"] = sizes[0]
        names = [f"{settings['name']}.{part}" for part in range(1, parts + 1)]
        return [self.add(word, changed, name, [source], tensor.shape, sizes) for name in names]

    def join(
        self, word: str, name: str, reads: Sequence[TracedTensor], shape: Sizes
    ) -> TracedTensor:
        """Add the sum, the product or the concatenation of tensors."""
        branches: list[list[Any]] = [[{"read": tensor.step}] for tensor in reads]
        # The larger of the sizes in each place.
        sizes = tuple(map(max, zip(*(tensor.sizes for tensor in reads), strict=True)))
        settings: dict[str, object] = {"branches": branches}
        if word == "concat":
            sizes = (sum(tensor.sizes[0] for tensor in reads), *reads[0].sizes[1:])
        elif word == "residual":
            settings = {"body": branches[0], "shortcut": branches[1]}
        else:
            settings = {"gate": branches[1], "body": branches[0]}
        # The branches read by name: the step itself may stand anywhere behind them.
        first = TracedTensor((), self.last)
        return self.add(word, settings, name, [first], shape, sizes, reads[0].channel)

    def count(
        self,
        name: str,
        reads: Sequence[TracedTensor],
        shape: Sizes,
        sizes: Sizes,
        *,
        flops: float = 0.0,
        weights: float = 0.0,
        channel: int = 1,
    ) -> TracedTensor:
        """Add a step of which only counts are known."""
        # Operations are always written: a step that only moves memory says so.
        settings: dict[str, object] = {"flops": float(flops)}
        if weights:
            settings["weights"] = float(weights)
        settings["inputs"] = float(sum(math.prod(tensor.sizes) for tensor in reads))
        settings["outputs"] = [*sizes]
        # The last part of a path that is no number: `layers.0.gelu_1` counts as gelu.
        words = (part.rstrip("_0123456789") for part in reversed(name.split(".")))
        self.free[next(filter(None, words), "operator")] += 1
        return self.add("free", settings, name, reads, shape, sizes, channel)

    def take_weights(self, tensors: Iterable[TracedTensor]) -> int:
        """Count the parameters of tensors that no step has yet, and mark them as counted."""
        # Tied weights share a name: they are one parameter.
        new = {name: size for t in tensors for name, size in t.weights if name not in self.counted}
        self.counted |= new
        return sum(new.values())

    def refuse_unknown(self) -> None:
        """Raise InputError if there are unknown operators, with their share of the items."""
        if self.unknown:
            made = max(sum(self.made.values()), 1)
            most = self.unknown.most_common(8)
            named = (f"{name} ({100 * items / made:.2g} % of the bytes)" for name, items in most)
            more = f" and {len(self.unknown) - 8} more" if len(self.unknown) > 8 else ""
            advice = "--allow-unknown counts them as memory traffic"
            advice = (
                f"{FUSED}; {advice}" if any(VENDOR in name for name in self.unknown) else advice
            )
            raise InputError(f"unknown operators: {', '.join(named)}{more}", advice=advice)

    def read(self, tensor: TracedTensor) -> None:
        """Go on from a tensor."""
        # Steps read the one before them, unless a `read` names another.
        if tensor.step != self.last:
            self.steps.append({"read": tensor.step})


@dataclass(frozen=True)
class ImportedNetwork:
    """A network's file, its layers for the sample of the import, and notes."""

    text: str
    architecture: Architecture
    table: LayerTable
    notes: tuple[str, ...]


def finish(
    graph: TracedGraph,
    name: str,
    title: str,
    source: str,
    parameters: int | None,
    allow: bool,
    notes: Sequence[str] = (),
) -> ImportedNetwork:
    """Return the model's file.

    parameters: those of the source, which the file has to have; None: not known. notes: the
    importer's own, before those on steps. InputError: unknown operators, unless `allow`; sizes or
    parameters that differ from the source.
    """
    if not allow:
        graph.refuse_unknown()
    data = {"name": name, "title": title, "source": source, "rank": graph.rank}
    # predict needs a data set; for these sizes the catalogue may have one.
    known = (n for n in list_names("dataset") if find("dataset", n, Path()).shape == graph.sample)
    is_text = graph.rank == 1 and "embedding" in graph.steps[0]
    usual = f"pile:length={graph.sample[1]}" if is_text else next(known, None)
    data |= {"customary": usual} if usual else {}
    architecture = validate(Architecture, {**data, "layers": graph.steps}, source)
    try:
        table = architecture.layers_for(graph.sample, None)
    except ShapeError as error:  # such as a window that is larger than the image
        raise InputError(str(error), where=source) from None
    # A wrong stride or padding shows in the sizes, a wrong kernel, group or bias in the parameters.
    for layer, items in zip(table.names, table.y.tolist(), strict=True):
        if items != graph.made.get(layer, items):
            made = format_count(graph.made[layer], "item")
            raise InputError(
                f"{layer}: {made} per sample in the source, but {items:,.0f} in its layer"
            )
    if parameters is not None and table.parameters != parameters:
        raise InputError(
            f"{parameters:,} parameters in the source, but {table.parameters:,} in its layers"
        )
    listed = (
        *notes,
        *(f"{count} x {kind}: no step of its own, so 'free'" for kind, count in graph.free.items()),
        *(f"{kind}: unknown, counted as memory traffic" for kind in graph.unknown),
    )
    return ImportedNetwork(_write(data, graph, table), architecture, table, listed)


def _write(data: Mapping[str, Any], graph: TracedGraph, table: LayerTable) -> str:
    shape = ", ".join(map(str, graph.sample))
    lines = [
        f"# Imported for samples of [{shape}]: {format_count(table.parameters, 'parameter')}, "
        f"{table.macs:,.0f} multiply-accumulates.",
        "# It takes other sizes as far as no step is 'free': those have counts of their own.",
        *(f"{key}: {write_flow(value)}" for key, value in data.items() if value != ""),
        "layers:",
        *(f"  - {write_flow(step)}" for step in graph.steps),
    ]
    return "\n".join(lines) + "\n"


def expect_sizes(sizes: Sequence[int], kind: str) -> Sizes:
    """Return the sizes of a sample; InputError if they are not C and one to three extents."""
    if not 2 <= len(sizes) <= 4 or min(sizes) < 1:
        what = f"expected C and one to three extents, such as 3,224,224, got {shorten([*sizes])}"
        raise InputError(what, where=kind)
    return tuple(sizes)
