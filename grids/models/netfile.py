"""ParaDL's own model files (.net): a layer a line, for one data set.

    Dataset|ImageNet
    Input|1280000x3x226x226                     samples x C x extents
    Model|VGG16
    CONV1_1|3x226x226|3x64x3x3|64x226x226|0.008245589
    RELU|64x226x226|64x64x0x0|64x226x226|0      NAME|x|w|y|seconds a sample; '#' starts a comment

x and y are C x extents, w is C x F x kernel. A time on the first layer alone is that of the whole
network, forward and backward, and is spread over the layers by their FLOPs. What does not fit is
warned about by line; what cannot be read is refused.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from grids.datasets import Dataset
from grids.errors import InputError, ShapeError
from grids.models.layers import DIMENSIONS, Floats, Layer, LayerTable
from grids.textfile import read_text
from grids.yamlfile import explain

HEADERS = ("Dataset", "Input", "Model")
FIELDS = 5  # NAME|x|w|y|seconds

# The kind of a layer, by how its name begins.
KINDS = {
    "CONV": "conv",
    "FC": "fc",
    "MPOOL": "pool",
    "APOOL": "pool",
    "POOL": "pool",
    "BNORM": "norm",
    "RELU": "relu",
    "ADD": "add",
    "CONCAT": "concat",
    "DROPOUT": "dropout",
}

# Nine digits a size: an extent beyond that is a slip of the pen, not a tensor.
SIZES = re.compile(r"\s*[0-9]{1,9}\s*(?:x\s*[0-9]{1,9}\s*)*")

Sizes = tuple[int, ...]


@dataclass(frozen=True)
class NetModel:
    """A network from a file of ParaDL's: a layer table for the samples of its own data set."""

    name: str
    text: str
    own_dataset: Dataset = field(compare=False)
    layers: LayerTable = field(compare=False, repr=False)
    warnings: tuple[str, ...] = field(compare=False)
    mask: tuple[bool, ...] | None = None  # the layers to split, where a .lc file says so

    def table(self, dataset: Dataset) -> LayerTable:
        """The layers; ShapeError for samples of another shape than the file's."""
        if dataset.shape != self.own_dataset.shape:
            raise ShapeError(
                f"{self.name} is written for samples of {_product(self.own_dataset.shape)}, "
                f"got {_product(dataset.shape)}"
            )
        return self.layers

    @property
    def source(self) -> tuple[str, ...]:
        """Where the model comes from."""
        return (f"the model file {self.name}",)

    def seconds(self, dataset: Dataset, device: str) -> Floats | None:
        """FW_l + BW_l a sample [G] as the file has them, whatever the device."""
        return self.layers.seconds

    def definition(self) -> dict[str, object]:
        """The file, from which `from_definition` makes the same model."""
        plain: dict[str, object] = {"name": self.name, "net": self.text}
        return plain if self.mask is None else plain | {"mask": list(self.mask)}

    @classmethod
    def from_definition(cls, definition: dict[str, object]) -> "NetModel":
        name, mask = str(definition.get("name", "net")), definition.get("mask")
        model = parse_net(str(definition["net"]), name, name)
        return replace(model, mask=tuple(map(bool, mask))) if isinstance(mask, list) else model


@dataclass(frozen=True)
class _Line:
    """A line of a layer, read but not yet judged."""

    where: str
    name: str
    x: Sizes
    w: Sizes
    y: Sizes
    seconds: float

    @property
    def kind(self) -> str:
        name = self.name.upper()
        return next((kind for start, kind in KINDS.items() if name.startswith(start)), "other")

    @property
    def weights(self) -> int:
        return math.prod(self.w)

    @property
    def kernel(self) -> Sizes:
        return self.w[2:] if self.kind in ("conv", "pool") else tuple(1 for _ in self.w[2:])


def read_net(path: Path) -> NetModel:
    """Read a model file of ParaDL's."""
    return parse_net(read_text(path), path.name, str(path))


def parse_net(text: str, name: str, where: str) -> NetModel:
    """The model that a file's text describes; `where` is how messages call the file."""
    rows = list(_rows(text, where))
    title, samples, shape = _header(rows, where)
    layer_rows = [(at, fields) for at, fields in rows if fields[0] not in HEADERS]
    found = [_line(at, fields, rank=len(shape) - 1) for at, fields in layer_rows]
    if not found:
        raise InputError("no layers", where=where, advice="write lines of NAME|x|w|y|seconds")
    lines = _chained(found, shape)
    return NetModel(
        name=name,
        text=text,
        own_dataset=_dataset(title, samples, shape, math.prod(lines[-1].y), where),
        layers=_table(lines),
        warnings=tuple(_warnings(found, lines)),
    )


def _dataset(name: str, samples: int, shape: Sizes, targets: int, where: str) -> Dataset:
    source = (f"the model file {Path(where).name}",)
    try:
        return Dataset(name=name, samples=samples, shape=shape, targets=targets, source=source)
    except ValidationError as error:
        raise explain(error, where, Dataset) from None


def _rows(text: str, where: str) -> Iterator[tuple[str, list[str]]]:
    """The fields of every line that has some, with its place."""
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.partition("#")[0].strip()
        if content:
            yield f"{where}:{number}", [each.strip() for each in content.split("|")]


def _header(rows: list[tuple[str, list[str]]], where: str) -> tuple[str, int, Sizes]:
    """The data set's name, its number of samples, and the shape of one."""
    header = {fields[0]: (at, fields[1:]) for at, fields in rows if fields[0] in HEADERS}
    if "Input" not in header:
        raise InputError(
            "no 'Input' line", where=where, advice="write one like Input|1280000x3x226x226"
        )
    at, fields = header["Input"]
    samples, *shape = _sizes(at, "Input", "|".join(fields), least=1)
    if len(shape) not in (3, 4):
        raise InputError(
            f"expected samples x C x 2 or 3 extents, got {'|'.join(fields)!r}", where=at
        )
    _, names = header.get("Dataset", (where, []))
    return "|".join(names) or where, samples, tuple(shape)


def _line(where: str, fields: list[str], rank: int) -> _Line:
    if len(fields) < FIELDS or any(fields[FIELDS:]):
        raise InputError(
            f"expected NAME|x|w|y|seconds, got {'|'.join(fields)!r}",
            where=where,
            advice="separate five fields by '|'",
        )
    name, x, w, y, seconds = fields[:FIELDS]
    return _Line(
        where=where,
        name=name,
        x=_sizes(where, "x", x, least=1, count=1 + rank),
        w=_sizes(where, "w", w, least=0, count=2 + rank),
        y=_sizes(where, "y", y, least=1, count=1 + rank),
        seconds=_seconds(where, seconds),
    )


def _sizes(where: str, what: str, text: str, *, least: int, count: int | None = None) -> Sizes:
    sizes = tuple(int(part) for part in text.split("x")) if SIZES.fullmatch(text) else ()
    if not sizes or min(sizes) < least or count not in (None, len(sizes)):
        numbers = "whole numbers" if count is None else f"{count} whole numbers"
        raise InputError(f"{what}: expected {numbers} joined by 'x', got {text!r}", where=where)
    return sizes


def _seconds(where: str, text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0.0 <= seconds < math.inf:
        raise InputError(f"expected seconds a sample, got {text!r}", where=where)
    return seconds


def _chained(lines: list[_Line], shape: Sizes) -> list[_Line]:
    """The lines, each with its predecessor's output as input, whatever the file says."""
    inputs = [shape, *(line.y for line in lines[:-1])]
    return [
        _Line(line.where, line.name, x, line.w, line.y, line.seconds)
        for line, x in zip(lines, inputs, strict=True)
    ]


def _warnings(found: list[_Line], lines: list[_Line]) -> Iterator[str]:
    for written, line in zip(found, lines, strict=True):
        if written.x != line.x:
            yield (
                f"{line.where}: {line.name}: the input {_product(written.x)} is not the output "
                f"before it, {_product(line.x)}; going on with the latter"
            )
        yield from (f"{line.where}: {line.name}: {oddity}" for oddity in _oddities(line))


def _oddities(line: _Line) -> Iterator[str]:
    """What is strange about a line that can be read."""
    if line.kind == "other":
        yield "a kind of layer that is not known; counted as element-wise"
    if line.kind != "pool" and line.w[0] != line.x[0]:
        yield f"weights for {line.w[0]} channels, input of {line.x[0]}"
    if line.kind != "pool" and line.w[1] != line.y[0]:
        yield f"weights for {line.w[1]} filters, output of {line.y[0]}"
    if line.kind == "fc" and line.w[2:] != line.x[1:]:
        yield f"weights for extents {_product(line.w[2:])}, input of {_product(line.x[1:])}"
    if line.kind in ("conv", "fc") and line.weights == 0:
        yield "no weights"


def _table(lines: list[_Line]) -> LayerTable:
    layers = [_layer(line) for line in lines]
    return LayerTable.from_layers(layers, _spread(lines, [layer.flops for layer in layers]))


def _layer(line: _Line) -> Layer:
    fc = line.kind == "fc"
    ones = tuple(1 for _ in line.x[1:])
    return Layer(
        name=line.name,
        kind=line.kind,
        x=math.prod(line.x),
        y=math.prod(line.y),
        w=line.weights,
        bias=0,  # the files have none
        flops=_flops(line),
        channels=line.w[0] * math.prod(line.w[2:]) if fc else line.x[0],
        filters=line.y[0],
        extents_x=_three(ones if fc else line.x[1:]),
        extents_y=_three(ones if fc else line.y[1:]),
        kernel=_three(line.kernel),
    )


def _flops(line: _Line) -> int:
    """Forward operations a sample, counted as shape inference does."""
    match line.kind:
        case "conv":
            return 2 * line.weights * math.prod(line.y[1:])
        case "fc":
            return 2 * line.weights
    return math.prod(line.y) * math.prod(line.kernel)


def _three(sizes: Sizes) -> tuple[float, float, float]:
    d, h, w = (1,) * (DIMENSIONS - len(sizes)) + sizes
    return d, h, w


def _spread(lines: list[_Line], flops: list[float]) -> Floats | None:
    """Seconds a layer; None where the file has no times."""
    seconds = np.array([line.seconds for line in lines])
    if not seconds.any():
        return None
    if seconds[1:].any():
        return seconds
    return np.asarray(seconds[0] * np.array(flops) / sum(flops))


def _product(sizes: Sizes) -> str:
    return "x".join(str(each) for each in sizes)
