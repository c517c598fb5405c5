"""Factors along depth, height and width by which a spatial group divides its layers.

The choice falls on the factors that split the most layers; among these, on the least halo; then on
the most balanced. Such factors of 16 need not be multiples of those of 8: 8 PEs are 2 x 2 x 2 and
16 may be 1 x 4 x 4, where a layer of two rows is unsplit in one dimension again. Where memory is
what is alive at once, factors must not exceed the memory of a group whose size divides theirs.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from typing import Literal

import numpy as np

from grids.entries.strategies import DIMENSIONS, Which
from grids.inputs.layers import Mask, split_layers, spread_layers
from grids.models.layers import LayerTable
from kernels.arrays import use_numpy
from kernels.names.arrays import Flags, Floats
from kernels.options import Halos
from kernels.work.memory import hold_rows
from kernels.work.rows import layer_halo

# Halos, or bytes, that differ by less are equal up to rounding.
TIE = 1 + 1e-9
# Factorisations per program for memory, so that one program serves all groups: 1,024 PEs have 66 in
# three dimensions, and 11 in two.
AT_ONCE = 64


@dataclass(frozen=True)
class Storage:
    """Bytes per item, and whether layers run forward twice."""

    item: float
    recompute: Literal["none", "full"]


@dataclass(frozen=True)
class DividedLayers:
    """Layers that a spatial group divides, along `dims` if given.

    storage: None if memory does not influence the choice. verbatim: as in Table III, every layer
    with rows is split and bounds the factors; otherwise only layers that are large enough are.
    """

    table: LayerTable
    dims: str | None
    layers: Which
    mask: Mask
    storage: Storage | None
    verbatim: bool = False


@dataclass(frozen=True)
class Factors:
    """A group's factors along (depth, height, width), and the layers that are split.

    held: bytes per sample on the fullest PE, where memory matters.
    """

    factors: tuple[int, int, int]
    split: Flags
    fits: bool
    even: bool
    defined: bool
    held: float


@dataclass(frozen=True)
class _Candidates:
    """All n ways to divide a group.

    factors [3, n]; split, whole [G, n]: layers that are split, and those too small to be; bounding
    [G]: layers whose extents count; exists, fits [n]: whether a bounding layer is split, and
    whether no required one is too small.
    """

    factors: Floats
    split: Flags
    whole: Flags
    bounding: Flags
    exists: Flags
    fits: Flags


@lru_cache(maxsize=65_536)
def divisors(count: int) -> tuple[int, ...]:
    """All numbers that divide `count`, ascending."""
    # By trial, up to the root: 2**20 of them for the largest PE count, 2**40.
    small = [n for n in range(1, math.isqrt(count) + 1) if count % n == 0]
    return (*small, *(count // n for n in reversed(small) if n * n != count))


# Every block asks again for its PE counts, of which an axis may have thousands.
@lru_cache(maxsize=16_384)
def divide_rows(rows: DividedLayers, pes: int) -> Factors:
    """Return the factors for a group of this many PEs."""
    candidates, table = _list_candidates(rows, pes), rows.table
    held = _find_held(rows, candidates.factors)
    best = _choose(
        *_judge_memory(rows, pes, candidates, held),
        # Splitting fewer layers means less halo but more compute: such factors lose first.
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


def _list_candidates(rows: DividedLayers, pes: int) -> _Candidates:
    table, dimensions = rows.table, _find_dimensions(rows)
    factors = _list_factorisations(pes, dimensions)
    # Every PE needs at least one item of its own, in and out.
    extents = np.minimum(table.extents_x, table.extents_y)
    allowed = (extents[:, :, None] >= factors[None]).all(axis=1)
    # Table III: layers without rows (fully connected) bound no group, or VGG-16 could have none.
    has_rows: Flags = np.asarray((extents[:, dimensions] > 1).any(axis=1))
    bounding = has_rows | table.sequence_products if rows.verbatim else np.ones_like(has_rows)
    allowed |= ~bounding[:, None]
    # The authors' predictions split all layers; their experiments split the first ones.
    windowed = table.windowed if rows.storage is None else table.split_in_space
    eligible = has_rows if rows.verbatim else windowed
    wanted = split_layers(rows.layers, rows.mask, eligible)[:, None]
    # In the experiments, layers that are too small stay whole.
    free = rows.mask is None and rows.layers == "default" and not rows.verbatim
    split = wanted & allowed if free else np.broadcast_to(wanted, allowed.shape)
    any_split = (split & bounding[:, None]).any(axis=0)
    exists: Flags = np.logical_and(any_split, dimensions.any())
    fits: Flags = np.logical_and(exists, (allowed | ~split).all(axis=0))
    return _Candidates(factors, split, wanted & ~allowed, bounding, exists, fits)


def _judge_memory(
    rows: DividedLayers, pes: int, candidates: _Candidates, held: Floats
) -> tuple[Floats, ...]:
    """Rank by memory first, except in Table III."""
    if rows.storage is None:
        return ()
    return (~candidates.fits).astype(float), np.maximum(held, _find_bound(rows, pes))


def _choose(*values: Floats) -> int:
    """Return the position of the lexicographic minimum, up to ties in rounding."""
    kept = np.ones(values[0].shape, bool)
    for column in values:
        numbers = np.where(kept, column, np.inf)
        kept &= numbers <= numbers.min() * TIE
    return int(np.argmax(kept))  # the first, which is the most balanced


def _find_bound(rows: DividedLayers, pes: int) -> float:
    """Least memory of a PE in groups whose size divides this one's [B per sample].

    Some factors of this group always reach it: those of a divisor with one of them multiplied.
    """
    return min((divide_rows(rows, size).held for size in divisors(pes)[:-1]), default=np.inf)


def _find_held(rows: DividedLayers, factors: Floats) -> Floats:
    """Bytes per sample on the fullest PE for each factorisation [n]; 0 if memory is ignored."""
    count = factors.shape[1]
    if rows.storage is None:
        return np.zeros(count)
    layers = spread_layers(rows.table, 1)
    parts = [
        hold_rows(layers, part, rows.storage.item, rows.storage.recompute)
        for part in _take_parts(factors)
    ]
    return np.concatenate([np.asarray(part) for part in parts])[:count]


def _take_parts(factors: Floats) -> Iterator[Floats]:
    """Yield AT_ONCE factorisations at a time, the last padded by repeating the final one."""
    count = factors.shape[1]
    for start in range(0, count, AT_ONCE):
        yield factors[:, np.minimum(np.arange(start, start + AT_ONCE), count - 1)]


def _find_halo(rows: DividedLayers, candidates: _Candidates) -> Floats:
    """Items per sample that a PE sends [n]."""
    halos: Halos = "overlapping" if rows.verbatim else "windows"
    with use_numpy():
        items = np.asarray(layer_halo(spread_layers(rows.table, 1), candidates.factors, halos))
    halo: Floats = np.where(candidates.split, items, 0).sum(axis=0)
    return halo


def _find_dimensions(rows: DividedLayers) -> Flags:
    """Tell which of (depth, height, width) may be split."""
    if rows.dims is not None:
        return np.array([dimension in rows.dims for dimension in DIMENSIONS])
    return np.asarray((rows.table.extents_x > 1).any(axis=0))


def _list_factorisations(pes: int, dimensions: Flags) -> Floats:
    """List the ordered (pd, ph, pw) with product `pes`, and 1 in other dimensions [3, n].

    Balanced ones come first. If no dimension may be split, all PEs go to the width, where nothing
    fits.
    """
    pairs = product(divisors(pes), repeat=2)
    triples = [(d, h, pes // (d * h)) for d, h in pairs if pes % (d * h) == 0]
    free = [t for t in triples if all(n == 1 or may for n, may in zip(t, dimensions, strict=True))]
    free.sort(key=lambda t: (max(t), -t[2], -t[1]))
    return np.array(free or [(1, 1, pes)], float).T
