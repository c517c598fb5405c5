"""Groups of PEs that lie aligned inside a domain of the network, such as a node or a rack.

A scheduler hands out whole groups: of a rack of 72 PEs, 64 where groups of 16, 32 or 64 matter and
the machine has racks enough. One number of used PEs for each level and layout serves all of its
rings (docs/transformers.md, Aligned groups).
"""

from collections.abc import Iterator
from functools import reduce
from math import gcd

import numpy as np

from paradl.kernels.columns import Column, find_any, find_distinct
from paradl.kernels.divisors import find_largest_divisor
from paradl.kernels.machine.network import Network
from paradl.kernels.work.layouts import Layouts


def count_level_pes(network: Network, layouts: Layouts) -> list[Column]:
    """Count PEs of each level that layouts use [level][layouts]; a scalar serves all."""
    counts: list[Column] = []
    inside, inner = np.array(1), 1
    for span in np.asarray(network.span, int).tolist():
        # What partly used domains inside this level leave.
        room = np.asarray(inside * span // inner)
        aligned = _align(room, layouts)
        # Idle PEs take further domains; a machine without these is filled, and groups are cut.
        has_domains = -(-layouts.pes // aligned) <= np.floor(network.size / span)
        inside = room if aligned is room else np.where(has_domains, aligned, room)
        inner = span
        counts.append(inside)
    return counts


def count_ranks_in_node(ranks: Column, inside: Column, pes_per_node: int) -> Column:
    """Count the most of `ranks` PEs with the same weights that a node holds, as a divisor of them.

    inside: PEs from one to the next, which take a node's PEs first.
    """
    distinct, place = find_distinct(ranks, np.maximum(pes_per_node // inside, 1))
    found = [find_largest_divisor(*row) for row in np.stack(distinct, axis=1).tolist()]
    most: Column = np.array(found, int)[place]
    return most


def _align(room: Column, layouts: Layouts) -> Column:
    """PEs that layouts use of a level with `room` PEs: whole groups, where any would be cut."""
    is_cut = find_any(_is_cut(span, room, layouts.pes) for span in _list_spans(layouts))
    if not is_cut.any():
        return room
    degrees = layouts.tensor, layouts.context, layouts.data, layouts.pipeline
    distinct, place = find_distinct(room, *degrees, reduce(np.lcm, _list_spans_inside(layouts)))
    unit = np.array([_find_unit(*row) for row in np.stack(distinct, axis=1).tolist()])
    whole = unit * (distinct[0] // unit)
    return np.where(is_cut, whole[place], room)


def _list_spans(layouts: Layouts) -> Iterator[Column]:
    """Yield the PEs that each kind of group spans."""
    yield layouts.tensor
    yield layouts.tensor * layouts.context * layouts.data
    yield from _list_spans_inside(layouts)


def _list_spans_inside(layouts: Layouts) -> Iterator[Column]:
    """Yield the PEs of the groups that a level should hold whole."""
    yield layouts.tensor * layouts.context
    yield layouts.etp * layouts.expert
    if layouts.shard.any():
        yield layouts.tensor * np.where((layouts.zero > 0) & (layouts.shard > 0), layouts.shard, 1)


def _is_cut(span: Column, room: Column, pes: Column) -> Column:
    """Whether groups lie across the border of a level."""
    small, large = np.minimum(span, room), np.maximum(span, room)
    cut: Column = (pes > room) & (pes > span) & (large % small > 0)
    return cut


def _find_unit(room: int, t: int, c: int, d: int, p: int, multiple: int) -> int:
    """Find the largest group of whole inner groups in a level, of a multiple of `multiple` if any.

    It has all PEs of the inner degrees, and of the next degree a divisor.
    """
    inside, degree = 1, 1
    for degree in (t, c, d, p):
        if inside * degree > room:
            break
        inside *= degree
    step = multiple // gcd(multiple, inside)
    if degree % step == 0 and inside * step <= room:
        inside, degree = inside * step, degree // step
    return inside * find_largest_divisor(degree, room // inside)
