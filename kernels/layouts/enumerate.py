"""Candidate layouts: every product of degrees with every setting."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isqrt, prod
from typing import Self

import numpy as np

from kernels.layouts.columns import Column
from kernels.layouts.dimensions import DIMENSIONS, find_repeated
from kernels.layouts.transformer import RECOMPUTE, Layouts, Transformer

DEGREES = ("tensor", "context", "pipeline")
# Values of what a product is not given.
DEFAULTS: Mapping[str, Sequence[int]] = {
    **{"chunks": (1,), "micro": (1,), "recompute": (0,), "zero": (0,), "sequence": (0, 1)},
    **{"expert": (1,), "expert_tensor": (0,), "group": (0,), "shard": (0,)},
}


# Settings that have an axis of their own in a product: few formulas read these. All others, and
# degrees, share the last axis. Rules bind them to each other, so that much of it falls away, and it
# is long, as inner loops should be.
SETTINGS = ("zero", "recompute", "expert_tensor", "group", "shard")
SHARED = ("degrees", "chunks", "sequence", "expert", "micro")


@dataclass(frozen=True)
class LayoutProduct:
    """Layouts to choose from: a product of settings, or a list.

    sizes: how many values each of SHARED has. most: sequences that replicas share at most; None:
    all layouts are candidates. stated: settings of one value, which repeat nothing.
    """

    layouts: Layouts
    sizes: tuple[int, ...]
    most: int | None = None
    stated: frozenset[str] = frozenset()

    @classmethod
    def from_list(cls, layouts: Layouts) -> Self:
        """The space of the layouts of a list."""
        return cls(layouts, (len(layouts), 1, 1, 1, 1))

    @property
    def is_product(self) -> bool:
        """True if it has an axis for each setting."""
        return self.most is not None

    def find_candidates(self, layouts: Layouts) -> Column:
        """Which of some layouts make sense, and are none of the others again."""
        if self.most is None:  # a list
            return np.ones(layouts.shape, bool)
        # Nobody asks for a larger micro-batch than a replica's part of the batch, nor for more
        # parts of experts than there are ranks.
        sensible = layouts.micro * layouts.data <= self.most
        ranks = layouts.tensor * layouts.shards
        sensible = sensible & (ranks % (layouts.etp * layouts.expert) == 0)
        sensible = sensible & ~find_repeated(layouts, self.stated)
        return np.broadcast_to(sensible, layouts.shape)


def list_candidates(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> Layouts:
    """The candidates of `make_space` as a list."""
    space = make_space(net, pes, most, lists)
    return list_product(space.layouts, space.find_candidates(space.layouts))


def list_product(layouts: Layouts, mask: Column | None = None) -> Layouts:
    """The list of a product's layouts, as far as a mask has them, in the order of their columns."""
    numbers = np.arange(prod(layouts.shape)) if mask is None else np.flatnonzero(mask)
    listed = layouts.list_rows(numbers)
    return listed.select(np.lexsort(listed.to_rows().T[::-1]))


def make_space(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> LayoutProduct:
    """The layouts of so many PEs that make sense, none of which is another one again.

    most: sequences that replicas share at most. lists: the values of some columns, in the place of
    all that are usual.
    """
    usual = {
        "micro": [1 << bit for bit in range(most.bit_length())],
        "recompute": (0, RECOMPUTE["blocks"]),
    }
    values = {name: find for kind in DIMENSIONS for name, find in kind.values.items()}
    usual |= {name: [*find(net, pes)] for name, find in values.items()}
    space = multiply(pes, {**usual, **lists})
    # One chunk a stage has no groups.
    group = np.where(space.layouts.chunks > 1, space.layouts.group, 0)
    stated = frozenset(name for name, values in lists.items() if len(values) == 1)
    layouts = replace(space.layouts, group=group)
    return replace(space, layouts=layouts, most=most, stated=stated)


def multiply(pes: int, lists: Mapping[str, Iterable[int]]) -> LayoutProduct:
    """The product of degrees and settings on so many PEs; DEFAULTS: of what is not given."""
    values = {name: [*lists.get(name, default)] for name, default in DEFAULTS.items()}
    degrees = np.array([*factorise(pes, 4)])
    for column, name in enumerate(DEGREES):
        if name in lists:
            degrees = degrees[np.isin(degrees[:, column], [*lists[name]])]
    # Pipelines of as many stages are neighbours: a part of the product has few other stages.
    degrees = degrees[np.argsort(degrees[:, DEGREES.index("pipeline")], kind="stable")]
    sizes = (len(degrees), *(len(values[name]) for name in SHARED[1:]))
    *settings, number = np.ix_(
        *(np.array(values[name]) for name in SETTINGS), np.arange(prod(sizes))
    )
    row, *at = np.unravel_index(number, sizes)
    columns = dict(zip((*DEGREES, "data"), (degree[row] for degree in degrees.T), strict=True))
    columns |= {name: np.array(values[name])[n] for name, n in zip(SHARED[1:], at, strict=True)}
    return LayoutProduct(Layouts(**columns, **dict(zip(SETTINGS, settings, strict=True))), sizes)


def factorise(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ordered products of so many degrees."""
    if parts == 1:
        yield (number,)
        return
    for degree in list_divisors(number):
        for rest in factorise(number // degree, parts - 1):
            yield (degree, *rest)


def list_divisors(number: int) -> list[int]:
    """All divisors, in order."""
    small = [divisor for divisor in range(1, isqrt(number) + 1) if number % divisor == 0]
    return sorted({*small, *(number // divisor for divisor in small)})
