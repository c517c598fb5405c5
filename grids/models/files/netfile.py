"""The ParaDL authors' model files (.net): one layer per line, for one data set.

    Dataset|ImageNet
    Input|1280000x3x226x226                     samples x C x extents
    Model|VGG16
    CONV1_1|3x226x226|3x64x3x3|64x226x226|0.008245589
    RELU|64x226x226|64x64x0x0|64x226x226|0      NAME|x|w|y|seconds per sample; '#' starts a comment

x and y are C x extents, w is C x F x kernel. A time on the first layer alone is that of the whole
network, forward and backward, and is spread over the layers by their FLOPs. Sizes that do not match
give a warning with the line; a line that cannot be parsed is refused.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from grids.entries.datasets import Dataset
from grids.entries.entry import MOST_NAME, Name, Record
from grids.entries.precision import PrecisionName
from grids.models.files.netlines import (
    HEADERS,
    LayerLine,
    list_lines,
    read_header,
    read_line,
    split_fields,
)
from grids.models.kinds import Sizes
from grids.models.layers import MOST_LAYERS, Layer, LayerTable, pad_dimensions
from grids.models.profiles import Profile
from grids.models.tensors import format_sizes
from grids.reading.errors import InputError, ShapeError, format_text, shorten
from grids.reading.textfile import digest_text, read_text
from grids.reading.yamlfile import explain_error
from kernels.names.arrays import Floats

MOST_ROWS = MOST_LAYERS + len(HEADERS)


@dataclass(frozen=True)
class NetModel:
    """A network from a .net file: a layer table for the samples of the file's data set."""

    name: str
    text: str  # kept, since stores write it into their spec
    # The rest follows from the text: models are equal if name, text and mask are.
    own_dataset: Dataset = field(compare=False)
    layers: LayerTable = field(compare=False, repr=False)
    warnings: tuple[str, ...] = field(compare=False)
    mask: tuple[bool, ...] | None = None  # layers to split, if a .lc file lists them

    def table(self, dataset: Dataset) -> LayerTable:
        """Return the layers; ShapeError for samples of another shape than the file's."""
        if dataset.shape != self.own_dataset.shape:
            raise ShapeError(
                f"{self.name} is written for samples of {format_sizes(self.own_dataset.shape)}, "
                f"got {format_sizes(dataset.shape)}"
            )
        return self.layers

    @property
    def source(self) -> tuple[str, ...]:
        """The model file as a source."""
        return (f"the model file {self.name}",)

    @property
    def fingerprint(self) -> str:
        """Digest of the file and of the layers to split."""
        return digest_text(f"{self.text}{self.mask}")

    def profile(self, dataset: Dataset, device: str, precision: PrecisionName) -> None:
        """Return None: a file does not state the batch or precision of its times."""

    def profiles_on(self, device: str) -> tuple[Profile, ...]:
        """Return none: a file does not state the batch or precision of its times."""
        return ()

    def seconds(
        self, dataset: Dataset, device: str, precision: PrecisionName | None = None
    ) -> Floats | None:
        """Return the file's FW_l + BW_l per sample [G], for any device; None for a precision."""
        # The file names no device; the authors measured on a V100.
        return self.layers.seconds if precision is None else None

    def definition(self) -> dict[str, object]:
        """Return the file as plain data, from which `from_definition` makes the same model."""
        text: dict[str, object] = {"name": self.name, "net": self.text}
        return text if self.mask is None else text | {"mask": list(self.mask)}

    @classmethod
    def from_definition(cls, definition: dict[str, object]) -> "NetModel":
        where = f"model {format_text(definition.get('name', 'net'))}"
        try:
            form = _Definition.model_validate(definition)
        except ValidationError as error:
            raise explain_error(error, where, _Definition) from None
        model = parse_net(form.net, form.name, form.name)
        if form.mask is not None and len(form.mask) != len(model.layers):
            raise InputError(
                f"mask: expected {len(model.layers)} flags, one per layer, got {len(form.mask)}",
                where=where,
            )
        return replace(model, mask=form.mask)


class _Definition(Record):
    """A file and its mask as plain data."""

    name: Name = "net"
    net: str
    mask: tuple[bool, ...] | None = None


def read_net(path: Path) -> NetModel:
    """Read the model in a .net file."""
    return parse_net(read_text(path), path.name, str(path))


def parse_net(text: str, name: str, where: str) -> NetModel:
    """Return the model that a file's text describes; `where` names the file in messages."""
    if not name.isprintable() or len(name) > MOST_NAME:
        raise InputError(f"not usable as a model name: {shorten(name)}", advice="rename the file")
    # Reading stops early: a file of a million short lines would take 700 MB.
    lines_read = islice(list_lines(text, where), MOST_ROWS + 1)
    rows = [(at, split_fields(line)) for at, line in lines_read]
    if len(rows) > MOST_ROWS:
        raise InputError(f"expected at most {MOST_LAYERS:,} layers", where=where)
    title, samples, shape = read_header(rows, where)
    layer_rows = [(at, fields) for at, fields in rows if fields[0] not in HEADERS]
    written = [read_line(at, fields, rank=len(shape) - 1) for at, fields in layer_rows]
    if not written:
        raise InputError("no layers", where=where, advice="write lines NAME|x|w|y|seconds")
    lines = _chain_inputs(written, shape)
    return NetModel(
        name=name,
        text=text,
        own_dataset=_make_dataset(title or name, samples, shape, math.prod(lines[-1].y), where),
        layers=_make_table(lines, where),
        warnings=tuple(_list_warnings(written, lines)),
    )


def _make_dataset(name: str, samples: int, shape: Sizes, targets: int, where: str) -> Dataset:
    """Return the data set of the header; targets: outputs of the last layer."""
    source = (f"the model file {Path(where).name}",)
    try:
        return Dataset(name=name, samples=samples, shape=shape, targets=targets, source=source)
    except ValidationError as error:
        raise explain_error(error, where, Dataset) from None


def _chain_inputs(lines: list[LayerLine], shape: Sizes) -> list[LayerLine]:
    """Replace every layer's input by the output before it, whatever the file says."""
    # Line 8 of the authors' COSMOFLOW.net_256 says 32x2128x128x128 instead of 128x....
    inputs = [shape, *(line.y for line in lines[:-1])]
    return [replace(line, x=x) for line, x in zip(lines, inputs, strict=True)]


def _list_warnings(written: list[LayerLine], lines: list[LayerLine]) -> Iterator[str]:
    """Yield warnings, line by line."""
    for before, line in zip(written, lines, strict=True):
        if before.x != line.x:
            yield (
                f"{line.where}: {line.name}: the input {format_sizes(before.x)} is not the output "
                f"before it, {format_sizes(line.x)}; going on with the latter"
            )
        yield from (f"{line.where}: {line.name}: {oddity}" for oddity in _list_oddities(line))


def _list_oddities(line: LayerLine) -> Iterator[str]:
    """Yield mismatches of a parsed line."""
    kind = line.kind
    # Element-wise layers have w = CxF with zero extents, as in 64x64x0x0: no weights, not even for
    # batch normalisation. Poolings have 0x0xK; their C and F are ignored.
    pools = kind.windowed and not kind.multiplies
    if not pools and line.w[0] != line.x[0]:
        yield f"weights for {line.w[0]} channels, input of {line.x[0]}"
    if not pools and line.w[1] != line.y[0]:
        yield f"weights for {line.w[1]} filters, output of {line.y[0]}"
    if kind.flattens and line.w[2:] != line.x[1:]:
        weights, inputs = format_sizes(line.w[2:]), format_sizes(line.x[1:])
        yield f"weights for extents {weights}, input of {inputs}"
    if kind.multiplies and line.weights == 0:
        yield "no weights"


def _make_table(lines: list[LayerLine], where: str) -> LayerTable:
    """Build the table of the layers and their times."""
    layers = [_make_layer(line) for line in lines]
    seconds = _spread_seconds(lines, [layer.flops for layer in layers])
    try:
        return LayerTable.from_layers(layers, seconds)
    except InputError as error:
        raise InputError(str(error), where=where) from None


def _make_layer(line: LayerLine) -> Layer:
    """Build a row of the table."""
    # A file is a chain, so an addition's second input is missing whatever its x says, and the
    # authors' ResNet-50 lacks the four projections on shortcuts (2,768,896 weights). Kept memory
    # misses only those: a shortcut's ReLU is kept for itself.
    flat = line.kind.flattens
    ones = tuple(1 for _ in line.x[1:])
    # Files have no strides; they follow from the numbers of windows.
    strides = tuple(max(1, round(a / b)) for a, b in zip(line.x[1:], line.y[1:], strict=True))
    return Layer(
        name=line.name,
        kind=line.kind.name,
        x=math.prod(line.x),
        y=math.prod(line.y),
        w=line.weights,
        bias=0,  # not in the files
        flops=line.kind.count_operations(line.weights, line.y, line.kernel),
        # FC6|512x8x8|512x4096x8x8 reads 512 x 8 x 8 items: w is C x F x the input's extents.
        channels=line.w[0] * math.prod(line.w[2:]) if flat else line.x[0],
        filters=line.y[0],
        extents_x=pad_dimensions(ones if flat else line.x[1:]),
        extents_y=pad_dimensions(ones if flat else line.y[1:]),
        kernel=pad_dimensions(line.kernel),
        stride=pad_dimensions(ones if flat else strides),
    )


def _spread_seconds(lines: list[LayerLine], flops: list[float]) -> Floats | None:
    """Return seconds per layer; None if the file has no times."""
    seconds = np.array([line.seconds for line in lines])
    if not seconds.any():
        return None
    if seconds[1:].any():  # per layer; the authors' files have one time, on the first line
        return seconds
    if not sum(flops):
        raise InputError("a time, but no layer with operations", where=lines[0].where)
    return np.asarray(seconds[0] * np.array(flops, float) / sum(flops))
