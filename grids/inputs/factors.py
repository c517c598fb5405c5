"""Factors: along which dimensions a spatial group divides the rows of its layers.

Of those that split the most layers, the ones with the least halo; of these, the most balanced. Such
factors are no multiples of one another: 8 PEs are 2 x 2 x 2 and 16 may be 1 x 4 x 4, with which a
layer of two rows is whole in one dimension again. Where memory is what is alive at the same time,
only factors compete with which no PE holds more than in a group whose size divides its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grids.entries.strategies import DIMENSIONS, Which
from grids.inputs.divisors import divisors
from grids.inputs.layers import Mask, add_cells, kernel_layers, split_layers
from grids.models.layers import Floats, LayerTable
from kernels.namespace import use_numpy
from kernels.options import Halos
from kernels.work.layers import Layers
from kernels.work.memory import hold_rows
from kernels.work.rows import layer_halo

Flags = NDArray[np.bool_]

# Halos, and bytes, that differ by less are equal but for rounding.
TIE = 1 + 1e-9
# Factorisations whose memory is found at once, by one program for all groups: 1,024 PEs have 66 in
# three dimensions, and a network in two of them has 11.
AT_ONCE = 64


@dataclass(frozen=True)
class Storage:
    """How PEs hold tensors: bytes an `item`, and whether layers run forward twice."""

    item: float
    recompute: Literal["none", "full"]


@dataclass(frozen=True)
class Rows:
    """The part that a spatial group divides: rows of a table's layers, along `dims` if given.

    storage: None where memory has no say. verbatim: every layer with rows, each of which bounds the
    factors, as Table III has it; else the experiments' layers, those with enough of them.
    """

    table: LayerTable
    dims: str | None
    layers: Which
    mask: Mask
    storage: Storage | None
    verbatim: bool = False


@dataclass(frozen=True)
class Factors:
    """A group divided into factors along (depth, height, width), and the layers that take part.

    held: bytes a sample of the fullest PE, where memory has a say.
    """

    factors: tuple[int, int, int]
    split: Flags
    fits: bool
    even: bool
    defined: bool
    held: float


@dataclass(frozen=True)
class _Candidates:
    """All ways to divide a group, n of them.

    factors [3, n]; split, whole [G, n]: the layers that are divided, and those that are too small;
    bounding [G]: those whose extents count; exists, fits [n]: whether any of these is divided, and
    none that has to be is too small.
    """

    factors: Floats
    split: Flags
    whole: Flags
    bounding: Flags
    exists: Flags
    fits: Flags


# Every block asks for its PE counts' again, of which an axis may have thousands.
@lru_cache(maxsize=16_384)
def divide_rows(rows: Rows, pes: int) -> Factors:
    """The factors for a group of so many PEs."""
    candidates, table = _list_candidates(rows, pes), rows.table
    held = _find_held(rows, candidates.factors)
    best = _choose(
        *_judge_memory(rows, pes, candidates, held),
        # Whoever splits fewer layers has less halo, and more to compute: it does not compete.
        candidates.whole.sum(axis=0, dtype=float),
        _find_halo(rows, candidates),
    )
    factors, split = candidates.factors[:, best], candidates.split[:, best]
    exists = bool(candidates.exists[best])
    counted = split & candidates.bounding
    parts = np.concatenate([table.extents_x[counted], table.extents_y[counted]])
    return Factors(
        factors=(int(factors[0]), int(factors[1]), int(factors[2])),
        split=split,
        fits=pes == 1 or bool(candidates.fits[best]),
        even=not exists or bool((np.remainder(parts, factors) == 0).all()),
        defined=pes == 1 or exists,
        held=float(held[best]),
    )


def _list_candidates(rows: Rows, pes: int) -> _Candidates:
    table, dimensions = rows.table, _find_dimensions(rows)
    factors = _list_factorisations(pes, dimensions)
    # Every PE has an item of its own at least, in and out.
    extents = np.minimum(table.extents_x, table.extents_y)
    allowed = (extents[:, :, None] >= factors[None]).all(axis=1)
    # Table III: what has no rows, as fully connected layers, bounds no group, or VGG-16 had none.
    has_rows: Flags = np.asarray((extents[:, dimensions] > 1).any(axis=1))
    bounding = has_rows | table.sequence_products if rows.verbatim else np.ones_like(has_rows)
    allowed |= ~bounding[:, None]
    # The authors' own predictions divide all layers, their experiments' networks the first ones.
    windowed = table.windowed if rows.storage is None else table.split_in_space
    own = has_rows if rows.verbatim else windowed
    wanted = split_layers(rows.layers, rows.mask, own)[:, None]
    # The experiments' layers that do not fit stay whole.
    free = rows.mask is None and rows.layers == "default" and not rows.verbatim
    split = wanted & allowed if free else np.broadcast_to(wanted, allowed.shape)
    some = (split & bounding[:, None]).any(axis=0)
    exists: Flags = np.logical_and(some, dimensions.any())
    fits: Flags = np.logical_and(exists, (allowed | ~split).all(axis=0))
    return _Candidates(factors, split, wanted & ~allowed, bounding, exists, fits)


def _judge_memory(
    rows: Rows, pes: int, candidates: _Candidates, held: Floats
) -> tuple[Floats, ...]:
    """Candidates that fit in memory; all of them by Table III."""
    if rows.storage is None:
        return ()
    return (~candidates.fits).astype(float), np.maximum(held, _find_bound(rows, pes))


def _choose(*values: Floats) -> int:
    """The position of the least of the first values; of those, of the second, and so on."""
    kept = np.ones(values[0].shape, bool)
    for each in values:
        numbers = np.where(kept, each, np.inf)
        kept &= numbers <= numbers.min() * TIE
    return int(np.argmax(kept))  # the first, which is the most balanced


def _find_bound(rows: Rows, pes: int) -> float:
    """The least that a PE holds in groups whose size divides this one's [B a sample].

    Never less than some factors of it hold: those of a divisor, one of them multiplied.
    """
    return min((divide_rows(rows, size).held for size in divisors(pes)[:-1]), default=np.inf)


def _find_held(rows: Rows, factors: Floats) -> Floats:
    """Bytes a sample of the fullest PE for each of the factorisations [n]; 0 without a say."""
    count = factors.shape[1]
    if rows.storage is None:
        return np.zeros(count)
    layers = _make_columns(rows.table)
    parts = [
        hold_rows(layers, part, rows.storage.item, rows.storage.recompute)
        for part in _take_parts(factors)
    ]
    return np.concatenate([np.asarray(each) for each in parts])[:count]


def _take_parts(factors: Floats) -> Iterator[Floats]:
    """AT_ONCE of the factorisations after another; the last ones repeat."""
    count = factors.shape[1]
    for start in range(0, count, AT_ONCE):
        yield factors[:, np.minimum(np.arange(start, start + AT_ONCE), count - 1)]


def _find_halo(rows: Rows, candidates: _Candidates) -> Floats:
    """Items a sample that a PE sends [n]."""
    halos: Halos = "overlapping" if rows.verbatim else "windows"
    with use_numpy():
        items = np.asarray(layer_halo(_make_columns(rows.table), candidates.factors, halos))
    halo: Floats = np.where(candidates.split, items, 0).sum(axis=0)
    return halo


# Else half of the time for thousands of groups: 0.2 of 0.4 ms each of ResNet-50.
@lru_cache(maxsize=64)
def _make_columns(table: LayerTable) -> Layers:
    """The layers, with a dimension of factorisations."""
    return add_cells(kernel_layers(table), 1)


def _find_dimensions(rows: Rows) -> Flags:
    """Which of (depth, height, width) may be split."""
    if rows.dims is not None:
        return np.array([each in rows.dims for each in DIMENSIONS])
    return np.asarray((rows.table.extents_x > 1).any(axis=0))


def _list_factorisations(pes: int, dimensions: Flags) -> Floats:
    """All ordered (pd, ph, pw) with product `pes` and 1 in the other dimensions [3, n].

    Balanced ones come first. Where no dimension may be split, all PEs go to the width, and
    nothing fits.
    """
    # All of them are tried: of 1,024 PEs there are 66 in three dimensions, 11 in two.
    pairs = product(divisors(pes), repeat=2)
    triples = [(d, h, pes // (d * h)) for d, h in pairs if pes % (d * h) == 0]
    free = [t for t in triples if all(n == 1 or may for n, may in zip(t, dimensions, strict=True))]
    free.sort(key=lambda t: (max(t), -t[2], -t[1]))
    return np.array(free or [(1, 1, pes)], float).T
