"""The ParaDL authors' files: networks (.net), for one data set each, and layers to split (.lc).

    Dataset|ImageNet
    Input|1280000x3x226x226                     samples x C x extents
    Model|VGG16
    CONV1_1|3x226x226|3x64x3x3|64x226x226|0.008245589
    RELU|64x226x226|64x64x0x0|64x226x226|0      NAME|x|w|y|seconds per sample; '#' starts a comment

x and y are C x extents, w is C x F x kernel. A time on the first layer alone is that of the whole
network, forward and backward, and is spread over the layers by their FLOPs. Sizes that do not match
give a warning with the line; a line that cannot be parsed is refused.

A .lc file has a line for each layer, `NAME|1` or `INDEX NAME |1`: 1 splits it, 0 leaves it whole.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

import numpy as np

from paradl.grids.entries.datasets import Dataset
from paradl.grids.entries.entry import MOST_NAME, Name, Record
from paradl.grids.entries.precision import PrecisionName
from paradl.grids.entries.quantity import SECONDS
from paradl.grids.models.kinds import KIND_OF_PREFIX, LayerKind, Sizes
from paradl.grids.models.layers import MOST_LAYERS, Layer, LayerTable, pad_dimensions
from paradl.grids.models.profiles import Profile
from paradl.grids.models.tensors import format_sizes
from paradl.grids.reading.errors import (
    InputError,
    ShapeError,
    add_place,
    format_count,
    format_text,
    shorten,
    suggest_name,
)
from paradl.grids.reading.textfile import digest_text, read_text
from paradl.grids.reading.yamlfile import validate
from paradl.kernels.names.arrays import Floats

HEADERS = ("Dataset", "Input", "Model")
FIELDS = 5  # NAME|x|w|y|seconds
MOST_ROWS = MOST_LAYERS + len(HEADERS)
# At most nine digits: a larger extent is a typo.
SIZES = re.compile(r" *[0-9]{1,9} *(?:x *[0-9]{1,9} *)*")
# The authors write "CONV1|1" (AlexNet, CosmoFlow) and "0 CONV_1 |1" (VGG16, ResNet-50).
SPLIT = re.compile(r"(?:(?P<index>[0-9]{1,9})\s+)?(?P<name>[^|\s]+)\s*\|\s*(?P<flag>[01])\s*\|?")


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
        """Return the model of a `definition`. InputError: unknown key, a mask of other length."""
        where = f"model {format_text(definition.get('name', 'net'))}"
        form = validate(_Definition, definition, where)
        model = parse_net(form.net, form.name, form.name)
        if form.mask is not None and len(form.mask) != len(model.layers):
            raise InputError(
                f"mask: expected {format_count(len(model.layers), 'flag')}, one per layer, "
                f"got {len(form.mask)}",
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


def read_layers(path: Path, names: Sequence[str]) -> tuple[bool, ...]:
    """Read from a .lc file which layers are split; names: the network's layers."""
    lines = [*_list_lines(read_text(path), str(path))]
    if len(lines) != len(names):
        raise InputError(
            f"expected {format_count(len(names), 'layer')}, as many as the model has, "
            f"got {len(lines)}",
            where=str(path),
            advice="write one line per layer of the model",
        )
    flags = []
    for index, ((where, content), name) in enumerate(zip(lines, names, strict=True)):
        match = SPLIT.fullmatch(content)
        # Indices count from 0, unlike lines. Names repeat (RELU): a missing line shows at the next.
        ours = match and match["name"].casefold() == name.casefold()
        if not match or not ours or int(match["index"] or index) != index:
            raise InputError(
                f"expected {shorten(name)}|1 or {shorten(name)}|0 of layer {index}, "
                f"got {shorten(content)}",
                where=where,
                advice="1 splits the layer; list them in the order of the model",
            )
        flags.append(match["flag"] == "1")
    return tuple(flags)


def parse_net(text: str, name: str, where: str) -> NetModel:
    """Return the model that a file's text describes; `where` names the file in messages."""
    if not name.isprintable() or len(name) > MOST_NAME:
        raise InputError(f"not usable as a model name: {shorten(name)}", advice="rename the file")
    # Reading stops early: a file of a million short lines would take 700 MB. Anything beyond the
    # last field stays in one piece: a line may have a million bars.
    rows = [
        (at, [part.strip() for part in line.split("|", FIELDS)])
        for at, line in islice(_list_lines(text, where), MOST_ROWS + 1)
    ]
    if len(rows) > MOST_ROWS:
        raise InputError(f"expected at most {MOST_LAYERS:,} layers", where=where)
    title, samples, shape = _read_header(rows, where)
    layer_rows = [(at, fields) for at, fields in rows if fields[0] not in HEADERS]
    written = [_read_line(at, fields, rank=len(shape) - 1) for at, fields in layer_rows]
    if not written:
        raise InputError("no layers", where=where, advice="write lines NAME|x|w|y|seconds")
    # Every layer reads the output before it, whatever the file says: line 8 of the authors'
    # COSMOFLOW.net_256 says 32x2128x128x128 instead of 128x....
    inputs = [shape, *(line.y for line in written[:-1])]
    lines = [replace(line, x=x) for line, x in zip(written, inputs, strict=True)]
    facts = {"samples": samples, "shape": shape, "targets": math.prod(lines[-1].y)}
    source = f"the model file {Path(where).name}"
    dataset = validate(Dataset, {"name": title or name, "source": source, **facts}, where)
    warnings = tuple(_list_warnings(written, lines))
    return NetModel(name, text, dataset, _make_table(lines, where), warnings)


def _list_lines(text: str, where: str) -> Iterator[tuple[str, str]]:
    """Yield non-empty lines without comments, each with its place."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()  # comments also follow fields: "|0# FC|0"
        if content:
            yield f"{where}:{number}", content


def _read_header(rows: list[tuple[str, list[str]]], where: str) -> tuple[str, int, Sizes]:
    """Return the data set's name (may be empty), its number of samples, and a sample's shape."""
    header: dict[str, tuple[str, str]] = {}
    for at, (word, *fields) in rows:
        if word in header:
            raise InputError(f"repeated line {word!r}", where=at, advice="keep one")
        if word in HEADERS:
            header[word] = at, "|".join(fields)  # names may contain bars
    if "Input" not in header:
        raise InputError(
            "no 'Input' line", where=where, advice="write one like Input|1280000x3x226x226"
        )
    at, text = header["Input"]
    samples, *shape = _read_sizes(at, "Input", text, least=1)
    if len(shape) not in (3, 4):
        raise InputError(f"expected samples x C x 2 or 3 extents, got {shorten(text)}", where=at)
    # "Model" is ignored: the label is the file's name.
    return header.get("Dataset", ("", ""))[1], samples, tuple(shape)


@dataclass(frozen=True)
class _LayerLine:
    """A parsed line of a layer."""

    where: str
    name: str
    kind: LayerKind
    x: Sizes
    w: Sizes
    y: Sizes
    seconds: float

    @property
    def weights(self) -> int:
        """|w|, the product of the line's sizes."""
        return math.prod(self.w)


def _read_line(where: str, fields: list[str], rank: int) -> _LayerLine:
    """Parse the fields of a layer; `rank` is the number of spatial dimensions."""
    if len(fields) < FIELDS or any(field.strip("| ") for field in fields[FIELDS:]):
        raise InputError(
            f"expected NAME|x|w|y|seconds, got {shorten('|'.join(fields))}",
            where=where,
            advice="separate five fields by '|'",
        )
    name, x, w, y, time = fields[:FIELDS]
    # No prefix is the beginning of another, so at most one matches.
    kinds = (kind for prefix, kind in KIND_OF_PREFIX.items() if name.upper().startswith(prefix))
    kind = next(kinds, None)
    if kind is None or len(name) > MOST_NAME:
        raise InputError(
            f"unknown kind of layer {shorten(name)}",
            where=where,
            advice=f"start the name with its kind; {suggest_name(name.upper(), KIND_OF_PREFIX)}",
        )
    return _LayerLine(
        where,
        name,
        kind,
        x=_read_sizes(where, "x", x, least=1, count=1 + rank),
        # Poolings have 0x0xK, and a ReLU has zero extents.
        w=_read_sizes(where, "w", w, least=0, count=2 + rank),
        y=_read_sizes(where, "y", y, least=1, count=1 + rank),
        seconds=_read_seconds(where, time),
    )


def _read_seconds(where: str, text: str) -> float:
    """Parse seconds per sample; 0 means not measured."""
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    # NaN, inf and 1e308 fail the comparison.
    if not (seconds == 0 or SECONDS.low <= seconds <= SECONDS.high):
        raise InputError(f"expected seconds per sample, got {shorten(text)}", where=where)
    return seconds


def _read_sizes(where: str, what: str, text: str, *, least: int, count: int | None = None) -> Sizes:
    """Parse sizes such as `3x226x226`: `count` numbers, none below `least`."""
    sizes = tuple(int(part) for part in text.split("x")) if SIZES.fullmatch(text) else ()
    if not sizes or min(sizes) < least or count not in (None, len(sizes)):
        numbers = "whole numbers" if count is None else format_count(count, "whole number")
        raise InputError(
            f"{what}: expected {numbers} joined by 'x', got {shorten(text)}", where=where
        )
    return sizes


def _list_warnings(written: list[_LayerLine], lines: list[_LayerLine]) -> Iterator[str]:
    """Yield warnings, line by line."""
    for before, line in zip(written, lines, strict=True):
        if before.x != line.x:
            yield (
                f"{line.where}: {line.name}: the input {format_sizes(before.x)} is not the output "
                f"before it, {format_sizes(line.x)}; going on with the latter"
            )
        yield from (f"{line.where}: {line.name}: {oddity}" for oddity in _list_oddities(line))


def _list_oddities(line: _LayerLine) -> Iterator[str]:
    """Yield mismatches of a parsed line."""
    kind = line.kind
    # Element-wise layers have w = CxF with zero extents, as in 64x64x0x0: no weights, not even for
    # batch normalisation. Poolings have 0x0xK; their C and F are ignored.
    pools = kind.windowed and not kind.multiplies
    if not pools and line.w[0] != line.x[0]:
        yield f"weights for {format_count(line.w[0], 'channel')}, input of {line.x[0]}"
    if not pools and line.w[1] != line.y[0]:
        yield f"weights for {format_count(line.w[1], 'filter')}, output of {line.y[0]}"
    if kind.flattens and line.w[2:] != line.x[1:]:
        weights, inputs = format_sizes(line.w[2:]), format_sizes(line.x[1:])
        yield f"weights for extents {weights}, input of {inputs}"
    if kind.multiplies and line.weights == 0:
        yield "no weights"


def _make_table(lines: list[_LayerLine], where: str) -> LayerTable:
    """Build the table of the layers and their times."""
    layers = [_make_layer(line) for line in lines]
    seconds = _spread_seconds(lines, [layer.flops for layer in layers])
    with add_place(where):
        return LayerTable.from_layers(layers, seconds)


def _make_layer(line: _LayerLine) -> Layer:
    """Build a row of the table."""
    # A file is a chain, so an addition's second input is missing whatever its x says, and the
    # authors' ResNet-50 lacks the four projections on shortcuts (2,768,896 weights). Kept memory
    # misses only those: a shortcut's ReLU is kept for itself.
    flat = line.kind.flattens
    ones = tuple(1 for _ in line.x[1:])
    kernel = line.w[2:] if line.kind.windowed else ones
    # Files have no strides; they follow from the numbers of windows.
    strides = tuple(max(1, round(a / b)) for a, b in zip(line.x[1:], line.y[1:], strict=True))
    return Layer(
        name=line.name,
        kind=line.kind.name,
        x=math.prod(line.x),
        y=math.prod(line.y),
        w=line.weights,
        bias=0,  # not in the files
        flops=line.kind.count_operations(line.weights, line.y, kernel),
        # FC6|512x8x8|512x4096x8x8 reads 512 x 8 x 8 items: w is C x F x the input's extents.
        channels=line.w[0] * math.prod(line.w[2:]) if flat else line.x[0],
        filters=line.y[0],
        extents_x=pad_dimensions(ones if flat else line.x[1:]),
        extents_y=pad_dimensions(ones if flat else line.y[1:]),
        kernel=pad_dimensions(kernel),
        stride=pad_dimensions(ones if flat else strides),
    )


def _spread_seconds(lines: list[_LayerLine], flops: list[float]) -> Floats | None:
    """Return seconds per layer; None if the file has no times."""
    seconds = np.array([line.seconds for line in lines])
    if not seconds.any():
        return None
    if seconds[1:].any():  # per layer; the authors' files have one time, on the first line
        return seconds
    if not sum(flops):
        raise InputError("a time, but no layer with operations", where=lines[0].where)
    return np.asarray(seconds[0] * np.array(flops, float) / sum(flops))
