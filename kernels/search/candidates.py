"""Candidate layouts: every factorisation of the PEs with every combination of settings."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from operator import itemgetter

import numpy as np

from paradl.kernels.columns import Column, find_any
from paradl.kernels.divisors import factorise, list_divisors
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS, LAYOUT_DEGREES, RECOMPUTE
from paradl.kernels.parallelism.layout import OF_BLOCKS, find_repeated, list_rules
from paradl.kernels.search.ranking import Tally
from paradl.kernels.work.layouts import COLUMNS, Layouts
from paradl.kernels.work.schedules import list_chunks
from paradl.kernels.work.transformer import Training, Transformer

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
class Candidates:
    """Candidate layouts: a product of settings, and of degrees and SHARED along its last axis.

    allowed: mask of those that break no rule. cell: of each position of the last axis, the cell
    that they may be chosen for.
    """

    layouts: Layouts
    allowed: Column
    cell: Column

    def repeat(self, some: Column, cells: Column) -> "Candidates":
        """Return some positions of the last axis for each of several cells."""
        rows = np.tile(some, cells.size)
        cell = np.repeat(cells, some.size)
        return Candidates(self.layouts.take(rows), self.allowed[..., rows], cell)


def join_candidates(parts: Iterable[Candidates], most: int) -> Iterator[Candidates]:
    """Join consecutive products of equal settings as long as these are at most `most`.

    Of a thousand PE counts each has a few: one by one, a formula takes four times as long.
    """
    held, size = list[Candidates](), 0
    for part in parts:
        is_other = held and held[0].allowed.shape[:-1] != part.allowed.shape[:-1]
        if held and (is_other or size + part.allowed.size > most):
            yield _join(held)
            held, size = [], 0
        held.append(part)
        size += part.allowed.size
    yield _join(held)


def _join(parts: list[Candidates]) -> Candidates:
    if len(parts) == 1:
        return parts[0]
    columns = {}
    for name in COLUMNS:
        first, *others = (getattr(part.layouts, name) for part in parts)
        is_setting = first.shape[-1] == 1 and all(np.array_equal(first, of) for of in others)
        whole = (
            np.broadcast_to(of, (*of.shape[:-1], part.cell.size))
            for of, part in zip((first, *others), parts, strict=True)
        )
        columns[name] = first if is_setting else np.concatenate([*whole], axis=-1)
    allowed = np.concatenate([part.allowed for part in parts], axis=-1)
    return Candidates(Layouts(**columns), allowed, np.concatenate([part.cell for part in parts]))


def find_candidates(
    net: Transformer, training: Training, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> tuple[Candidates, Tally]:
    """Find the candidates on this many PEs for a first cell, and count those that break a rule.

    most: largest global batch [sequences]. lists: values of some columns, in place of the usual.
    Rules of the batch are not asked: each cell has its own. If all break a rule, the first of each
    list is a candidate, so that its flags say what forbids it.
    """
    layouts, sensible = _multiply_sensible(net, pes, most, lists)
    # No batch breaks no rule of batches, whatever the micro-batch (0: not settled yet).
    settled = replace(layouts, micro=np.maximum(layouts.micro, 1))
    rules = list_rules(net, settled, replace(training, batch=0))
    broken = find_any(rule.mask for rule in rules.values())
    tally = Tally(int(np.count_nonzero(sensible & broken)))
    tally.count_rules(rules, sensible)
    allowed = sensible & ~broken
    # A third of the last axis has none.
    has_any = np.flatnonzero(allowed.any(axis=tuple(range(allowed.ndim - 1))))
    layouts, allowed = layouts.take(has_any), allowed[..., has_any]
    if not has_any.size:
        first = Layouts.from_names([{name: values[0] for name, values in lists.items()}])
        shape, empty = (1,) * allowed.ndim, [n for n in COLUMNS if not getattr(layouts, n).size]
        layouts = replace(layouts, **{n: getattr(first, n).reshape(shape) for n in empty})
        allowed = np.zeros((*allowed.shape[:-1], 1), bool)
        allowed.flat[0] = True
    return Candidates(layouts, allowed, np.zeros(allowed.shape[-1], int)), tally


def count_candidates(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> int:
    """Count the candidates, without a list of them."""
    return int(np.count_nonzero(_multiply_sensible(net, pes, most, lists)[1]))


def _multiply_sensible(
    net: Transformer, pes: int, most: int, lists: Mapping[str, Sequence[int]]
) -> tuple[Layouts, Column]:
    """Return the product of all layouts, and the mask of those that are sensible, each once."""
    values = {name: find for part in OF_BLOCKS for name, find in part.values.items()}
    usual = {name: [*find(net, pes, most)] for name, find in values.items()}
    # Recomputation belongs to no parallelism.
    layouts = multiply(net, pes, {"recompute": (0, RECOMPUTE["blocks"]), **usual, **lists})
    # Groups exist only with several chunks per stage.
    layouts = replace(layouts, group=np.where(layouts.chunks > 1, layouts.group, 0))
    # Settings with a single value never make duplicates.
    stated = frozenset(name for name, values in lists.items() if len(values) == 1)
    # A micro-batch is at most a replica's share of the batch, and experts are divided into at most
    # as many parts as there are ranks.
    sensible = layouts.micro * layouts.data <= most
    ranks = layouts.tensor * layouts.shards
    sensible = sensible & (ranks % (layouts.etp * layouts.expert) == 0)
    return layouts, np.broadcast_to(sensible & ~find_repeated(layouts, stated), layouts.shape)


def multiply(net: Transformer, pes: int, lists: Mapping[str, Iterable[int]]) -> Layouts:
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
    return Layouts(**columns, **dict(zip(SETTINGS, settings, strict=True)))


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
