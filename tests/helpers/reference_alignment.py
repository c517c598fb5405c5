"""An independent reference of alignment: PEs of each level of a network that a layout occupies.

A scheduler hands out whole groups of a domain: of a rack of 72 PEs, 64 where groups have 16.
Degrees stand from inside out: tensor, context, data, stages; n is the product of all.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from reference_network import Network as Machine
from reference_transformers import Layout


def list_spans(layout: Layout) -> list[int]:
    """PEs that groups of the layout span."""
    t, c, d = layout.tensor, layout.context, layout.data
    spans = [t, t * c, t * c * d, layout.etp * layout.expert]
    if layout.zero and layout.node_shards:
        spans.append(t * layout.node_shards)
    return spans


def list_groups(layout: Layout) -> list[int]:
    """Numbers of PEs that are whole groups: the degrees so far, times a divisor of the next one."""
    groups, product = [], 1
    for degree in (layout.tensor, layout.context, layout.data, layout.pipeline):
        groups += [product * h for h in range(1, degree + 1) if degree % h == 0]
        product *= degree
    return groups


def is_cut(span: int, k: int, n: int) -> bool:
    """Whether groups of so many PEs lie across the borders of a level of k."""
    return n > k and n > span and max(span, k) % min(span, k) > 0


def use_pes(layout: Layout, k: int) -> int:
    """Of a level of k PEs."""
    if not any(is_cut(span, k, layout.pes) for span in list_spans(layout)):
        return k
    groups = [pes for pes in list_groups(layout) if pes <= k]
    sharded = layout.tensor * (layout.node_shards or 1) if layout.zero else 1
    every = math.lcm(layout.tensor * layout.context, layout.etp * layout.expert, sharded)
    u = max([pes for pes in groups if pes % every == 0] or groups)
    return u * (k // u)


def list_used(machine: Machine, layout: Layout, size: float = math.inf) -> list[int]:
    """PEs of each level that a layout occupies on a machine of `size` PEs.

    A machine with too few domains to leave PEs idle is filled, and groups are cut.
    """
    pes = [int(machine.level(j).pes) for j in range(len(machine.levels))]
    used: list[int] = []
    for j, all_of_it in enumerate(pes):
        k = used[-1] * all_of_it // pes[j - 1] if used else all_of_it
        some = use_pes(layout, k)
        domains = math.ceil(layout.pes / some)
        used.append(some if some == k or domains * all_of_it <= size else k)
    return used


def aligned(machine: Machine, layout: Layout, size: float = math.inf) -> Machine:
    """The network of the PEs that a layout occupies, with their nodes' share of the links."""
    used = list_used(machine, layout, size)

    def resize(levels: Sequence[tuple[float, ...]]) -> list[tuple[float, ...]]:
        return [(pes, *level[1:]) for pes, level in zip(used, levels, strict=True)]

    return replace(
        machine,
        pes_per_node=used[0],
        links_per_node=math.ceil(machine.links_per_node * used[0] / machine.pes_per_node),
        levels=resize(machine.levels),
        measured={name: [*map(resize, lines)] for name, lines in machine.measured.items()},
    )
