"""Factors along depth, height and width by which a spatial group divides its layers.

The choice falls on the factors that split the most layers; among these, on the least halo; then on
the most balanced. Such factors of 16 need not be multiples of those of 8: 8 PEs are 2 x 2 x 2 and
16 may be 1 x 4 x 4, where a layer of two rows is unsplit in one dimension again. Where memory is
what is alive at once, factors must not exceed the memory of a group whose size divides theirs.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal, NamedTuple

import numpy as np

from paradl.grids.entries.strategy_words import DIMENSIONS, Which
from paradl.grids.inputs.layers import split_layers, spread_layers
from paradl.grids.models.layers import LayerTable
from paradl.kernels.arrays import use_numpy
from paradl.kernels.divisors import list_divisors
from paradl.kernels.names.arrays import Flags, Floats
from paradl.kernels.options import Halos
from paradl.kernels.work.memory import hold_rows
from paradl.kernels.work.rows import layer_halo

# Halos, or bytes, that differ by less are equal up to rounding.
TIE = 1 + 1e-9
# Layers times factorisations judged at once, 2 MiB an array: 1,024 groups have 7,069 in two
# dimensions, which take a quarter of the time of one group after the other (2026-11).
AT_ONCE = 2**18
# Sizes of groups whose factors are kept, for the same layers.
KEPT = 65_536


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


class _Candidates(NamedTuple):
    """All n ways to divide a group.

    factors [3, n]; split, counted [G, n]: layers that are split, and those whose extents count. Of
    each way [n]: whole: number of layers that are too small; exists, fits: whether a layer that
    counts is split, and whether no required one is too small; held: bytes per sample on the fullest
    PE, 0 if memory is ignored; halo: items per sample that a PE sends.
    """

    factors: Floats
    split: Flags
    counted: Flags
    whole: Floats
    exists: Flags
    fits: Flags
    held: Floats
    halo: Floats

    def take(self, start: int, end: int) -> "_Candidates":
        """Return some of the ways."""
        return _Candidates._make(part[..., start:end] for part in self)


def find_factors(rows: DividedLayers, sizes: Sequence[int]) -> list[Factors]:
    """Return the factors for groups of these sizes."""
    known = _remember(rows)
    # From the smallest: the bound on a group's memory is that of groups whose sizes divide its own.
    missing = sorted({part for size in sizes for part in list_divisors(size)} - known.keys())
    for some in _take_some(missing, AT_ONCE // len(rows.table)):
        known |= _divide_sizes(rows, some, known)
    found = [known[size] for size in sizes]
    if len(known) > KEPT:
        _remember.cache_clear()  # other threads keep what they have in hand
    return found


# Every block asks again for its PE counts, of which an axis may have thousands.
@lru_cache(maxsize=64)
def _remember(rows: DividedLayers) -> dict[int, Factors]:
    """Return the factors that were found for these layers, by the size of the group."""
    return {}


def _take_some(sizes: list[int], most: int) -> Iterator[list[int]]:
    """Yield sizes, in order, that have about so many factorisations in two dimensions."""
    some, count = list[int](), 0
    for size in sizes:
        some.append(size)
        count += len(list_divisors(size))
        if count >= most:
            yield some
            some, count = [], 0
    if some:
        yield some


def _divide_sizes(
    rows: DividedLayers, sizes: list[int], known: Mapping[int, Factors]
) -> dict[int, Factors]:
    """Return the factors for groups of these sizes, whose divisors are among them or known."""
    dimensions = _find_dimensions(rows)
    ways = [_list_factorisations(size, dimensions) for size in sizes]
    candidates = _judge(rows, dimensions, np.concatenate(ways, axis=1))
    ends = np.cumsum([way.shape[1] for way in ways])
    found: dict[int, Factors] = {}
    for size, way, end in zip(sizes, ways, ends, strict=True):
        smaller = (found.get(part) or known[part] for part in list_divisors(size)[:-1])
        # Some factors of this group always reach it: those of a divisor with one of them
        # multiplied.
        least = min((factors.held for factors in smaller), default=np.inf)
        found[size] = _choose(rows, size, candidates.take(end - way.shape[1], end), least)
    return found


def _judge(rows: DividedLayers, dimensions: Flags, factors: Floats) -> _Candidates:
    """Return what the choice between factors [3, n] of some dimensions depends on."""
    table = rows.table
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
    wanted = split_layers(rows.layers, eligible)[:, None]
    # In the experiments, layers that are too small stay whole.
    free = rows.layers == "default" and not rows.verbatim
    split = wanted & allowed if free else np.broadcast_to(wanted, allowed.shape)
    any_split = (split & bounding[:, None]).any(axis=0)
    exists: Flags = np.logical_and(any_split, dimensions.any())
    layers, storage = spread_layers(table, 1), rows.storage
    halos: Halos = "overlapping" if rows.verbatim else "windows"
    with use_numpy():
        halo = np.asarray(layer_halo(layers, factors, halos))
        held = storage and hold_rows(layers, factors, storage.item, storage.recompute)
    return _Candidates(
        factors=factors,
        split=split,
        whole=(wanted & ~allowed).sum(axis=0, dtype=float),
        counted=split & bounding[:, None],
        exists=exists,
        fits=np.logical_and(exists, (allowed | ~split).all(axis=0)),
        held=np.zeros(factors.shape[1]) if storage is None else np.asarray(held),
        halo=np.where(split, halo, 0).sum(axis=0),
    )


def _choose(rows: DividedLayers, pes: int, ways: _Candidates, least: float) -> Factors:
    """Return the best of all ways to divide a group of this many PEs.

    least: memory of a PE in groups whose size divides this one's [B per sample].
    """
    # Splitting fewer layers means less halo but more compute: such factors lose first. In Table III
    # memory does not count.
    memory = () if rows.storage is None else (~ways.fits, np.maximum(ways.held, least))
    best = _find_first(*memory, ways.whole, ways.halo)
    factors, exists, counted = ways.factors[:, best], bool(ways.exists[best]), ways.counted[:, best]
    parts = np.concatenate([rows.table.extents_x[counted], rows.table.extents_y[counted]])
    return Factors(
        factors=(int(factors[0]), int(factors[1]), int(factors[2])),
        split=ways.split[:, best],
        fits=pes == 1 or bool(ways.fits[best]),
        even=not exists or bool((np.remainder(parts, factors) == 0).all()),
        defined=pes == 1 or exists,
        held=float(ways.held[best]),
    )


def _find_first(*values: Floats | Flags) -> int:
    """Return the position of the lexicographic minimum, up to ties in rounding."""
    kept = np.ones(values[0].shape, bool)
    for column in values:
        numbers = np.where(kept, column, np.inf)
        kept &= numbers <= numbers.min() * TIE
    return int(np.argmax(kept))  # the first, which is the most balanced


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
    free = [
        (depth, height, pes // (depth * height))
        for depth in (list_divisors(pes) if dimensions[0] else (1,))
        for height in (list_divisors(pes // depth) if dimensions[1] else (1,))
        if dimensions[2] or depth * height == pes
    ]
    free.sort(key=lambda t: (max(t), -t[2], -t[1]))
    return np.array(free or [(1, 1, pes)], float).T
