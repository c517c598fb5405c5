"""Candidate layouts: every factorisation of the PEs with every combination of settings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import itemgetter

import numpy as np

from paradl.kernels.columns import Column
from paradl.kernels.divisors import factorise, list_divisors
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS, LAYOUT_DEGREES, RECOMPUTE
from paradl.kernels.parallelism.layout import OF_BLOCKS, find_repeated
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import list_chunks
from paradl.kernels.work.transformer import Transformer

# Chunks depend on the stages, and so are enumerated with them; data is what is left.
DEGREES = (*LAYOUT_DEGREES, "chunks")
# SETTINGS have an axis each in a product, since few formulas read them. Degrees and SHARED settings
# are flattened into the last axis: rules that relate them remove much of it, and numpy's inner loop
# runs over the longest axis.
SETTINGS = tuple(row.name for row in LAYOUT_COLUMNS.values() if row.search == "axis")
_SHARED = [row.name for row in LAYOUT_COLUMNS.values() if row.search == "shared"]
# Micro-batches are last, since a layout is kept at its best.
SHARED = ("degrees", *sorted(_SHARED, key=lambda name: name == "micro"))


@dataclass(frozen=True)
class LayoutProduct:
    """Layouts to choose from: a product of settings, or a list.

    sizes: number of values of each of SHARED. most: largest global batch [sequences]; None: every
    layout is a candidate. stated: settings with a single value, which never make duplicates.
    """

    layouts: Layouts
    sizes: tuple[int, ...]
    most: int | None = None
    stated: frozenset[str] = frozenset()

    @classmethod
    def from_list(cls, layouts: Layouts) -> "LayoutProduct":
        """Wrap a list of layouts."""
        return cls(layouts, (len(layouts), *(1 for _ in SHARED[1:])))

    @property
    def is_product(self) -> bool:
        """True for a product, which has an axis per setting."""
        return self.most is not None

    def find_candidates(self, layouts: Layouts) -> Column:
        """Mask of the layouts that are sensible and no duplicates."""
        if self.most is None:  # a list
            return np.ones(layouts.shape, bool)
        # A micro-batch is at most a replica's share of the batch, and experts are divided into at
        # most as many parts as there are ranks.
        sensible = layouts.micro * layouts.data <= self.most
        ranks = layouts.tensor * layouts.shards
        sensible = sensible & (ranks % (layouts.etp * layouts.expert) == 0)
        sensible = sensible & ~find_repeated(layouts, self.stated)
        return np.broadcast_to(sensible, layouts.shape)


def list_candidates(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> Layouts:
    """List the candidates of `make_space`."""
    space = make_space(net, pes, most, lists)
    return list_product(space.layouts, space.find_candidates(space.layouts))


def count_candidates(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> int:
    """Count the candidates of `make_space`, without a list of them."""
    space = make_space(net, pes, most, lists)
    return int(np.count_nonzero(space.find_candidates(space.layouts)))


def list_product(layouts: Layouts, mask: Column | None = None) -> Layouts:
    """List the (masked) layouts of a product, sorted by their columns."""
    numbers = np.arange(prod(layouts.shape)) if mask is None else np.flatnonzero(mask)
    listed = layouts.list_rows(numbers)
    return listed.select(np.lexsort(listed.to_rows().T[::-1]))


def make_space(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> LayoutProduct:
    """Product of all layouts on this many PEs, duplicates to be masked by `find_candidates`.

    most: largest global batch [sequences]. lists: values of some columns, in place of the usual.
    """
    values = {name: find for part in OF_BLOCKS for name, find in part.values.items()}
    usual = {name: [*find(net, pes, most)] for name, find in values.items()}
    # Recomputation belongs to no parallelism.
    space = multiply(net, pes, {"recompute": (0, RECOMPUTE["blocks"]), **usual, **lists})
    # Groups exist only with several chunks per stage.
    group = np.where(space.layouts.chunks > 1, space.layouts.group, 0)
    stated = frozenset(name for name, values in lists.items() if len(values) == 1)
    layouts = replace(space.layouts, group=group)
    return replace(space, layouts=layouts, most=most, stated=stated)


def multiply(net: Transformer, pes: int, lists: Mapping[str, Iterable[int]]) -> LayoutProduct:
    """Product of all degrees and settings on this many PEs, the usual ones of the rest."""
    values = {name: [*lists.get(name, (row.usual,))] for name, row in LAYOUT_COLUMNS.items()}
    degrees = np.array([*_list_degrees(net, pes, lists)], int).reshape(-1, len(DEGREES) + 1)
    sizes = (len(degrees), *(len(values[name]) for name in SHARED[1:]))
    *settings, number = np.ix_(
        *(np.array(values[name]) for name in SETTINGS), np.arange(prod(sizes))
    )
    row, *at = np.unravel_index(number, sizes)
    columns = dict(zip((*DEGREES, "data"), (degree[row] for degree in degrees.T), strict=True))
    columns |= {name: np.array(values[name])[n] for name, n in zip(SHARED[1:], at, strict=True)}
    return LayoutProduct(Layouts(**columns, **dict(zip(SETTINGS, settings, strict=True))), sizes)


def _list_degrees(
    net: Transformer, pes: int, lists: Mapping[str, Iterable[int]]
) -> Iterator[tuple[int, ...]]:
    """Yield all DEGREES and data, by stages: a block of the product then has few pipelines."""
    values = [{*lists.get(name, list_divisors(pes))} for name in LAYOUT_DEGREES]
    find_stages = itemgetter(LAYOUT_DEGREES.index("pipeline"))
    for *degrees, d in sorted(factorise(pes, len(values) + 1), key=find_stages):
        if all(n in allowed for n, allowed in zip(degrees, values, strict=True)):
            chunks = lists.get("chunks") or list_chunks(net, find_stages(degrees))
            yield from ((*degrees, v, d) for v in chunks)
