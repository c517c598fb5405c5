"""Seconds of collectives and messages among a layout's PEs, with the machine oracle's costs.

Ranks are numbered tensor first, then context, data and pipeline: the stride of a ring is the
product of the degrees before it. m: bytes, of an all-gather the gathered size.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

import jax
import numpy as np

from paradl.kernels.columns import Column, find_distinct
from paradl.kernels.machine.library_collectives import (
    Costs,
    reduce_costs,
    ring_costs,
    time_all_to_all,
    time_fastest,
)
from paradl.kernels.machine.network import Cost, Network, Ring, find_path
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.parallelism.alignment import count_level_pes
from paradl.kernels.work.layouts import Layouts

Collective = Literal["all_gather", "reduce_scatter", "all_reduce"]


@dataclass(frozen=True)
class Transfers:
    """Times of transfers [layouts]. pes: of the whole run.

    spans: PEs of each level that layouts use [level][layouts]; empty: all.
    """

    fabric: Fabric
    pes: Column
    spans: Sequence[Column] = ()

    @classmethod
    def from_layouts(cls, fabric: Fabric, layouts: Layouts) -> "Transfers":
        """Transfers of layouts whose groups lie aligned inside the network's levels."""
        spans = count_level_pes(fabric.stated, layouts)
        is_partial = any(span.ndim for span in spans)
        return cls(fabric, layouts.pes, spans if is_partial else ())

    def send(
        self, collective: Collective, degree: Column, stride: Column | int, m: Column
    ) -> Column:
        """Compute seconds of a collective by its fastest algorithm."""
        return self.time(self.cost(collective, degree, stride), m)

    def split_send(self, degree: Column, stride: Column, m: Column) -> tuple[Column, Column]:
        """Compute seconds of a message to the next PE of a ring: start-up, and bytes."""
        (path,) = self._cost(lambda *of: (find_path(*of),), self.fabric.messages, degree, stride)
        return np.asarray(path.alpha), np.asarray(m * path.beta)

    def send_to_all(
        self, degree: Column, stride: Column, m: Column, messages: int, alike: float = 1.0
    ) -> Column:
        """Compute seconds of all-to-alls of m bytes per PE: within nodes, then between them."""
        # What was measured is reached whole.
        is_measured = "all_to_all" in (self.fabric.stated.measured or {})
        network = self.fabric.stated if is_measured else self.fabric.layers
        network = _resize_levels(network, self.spans)
        ring = Ring(*(1.0 * number for number in (degree, stride, self.pes)))
        return np.asarray(time_all_to_all(network, ring, m, messages, alike))

    def cost(self, collective: Collective, degree: Column, stride: Column | int) -> Costs:
        """List the costs of a collective by each algorithm."""
        gathers = partial(ring_costs, collective=collective)
        reduces = partial(reduce_costs, algorithm="auto")
        find = reduces if collective == "all_reduce" else gathers
        return self._cost(find, self.fabric.layers, degree, stride)

    def time(self, costs: Costs, m: Column, messages: Column | float = 1.0) -> Column:
        """Compute seconds of collectives of m bytes in total, by the fastest of these."""
        return np.asarray(time_fastest(costs, m, messages))

    def _cost(
        self,
        find: Callable[[Network, Ring], Costs],
        network: Network,
        degree: Column,
        stride: Column | int,
    ) -> Costs:
        # Those of cells differ by machine, and their columns by axis: all broadcast.
        if np.ndim(network.latency) > 1:
            ring = Ring(*(1.0 * number for number in (degree, stride, self.pes)))
            return find(_resize_levels(network, self.spans), ring)
        # Once per distinct ring: nearly all layouts of a product share theirs.
        degrees, strides = np.asarray(degree, int), np.asarray(stride, int)
        sizes, place = find_distinct(degrees, strides, self.pes, *self.spans)
        ring = Ring(*(size.astype(float) for size in sizes[:3]))
        found = find(_resize_levels(network, sizes[3:]), ring)
        whole: Costs = jax.tree.map(
            lambda part: np.broadcast_to(part, sizes[0].shape)[place], found
        )
        return whole


@dataclass(frozen=True)
class Volumes(Transfers):
    """Transfers of one second per byte m, and of 0 s if they are of other kinds.

    Exchanges that nothing hides are linear in seconds: their formulas then count bytes.
    """

    kind: str = ""

    def cost(self, collective: Collective, degree: Column, stride: Column | int) -> Costs:
        return (Cost(0.0, 1.0 * (np.asarray(degree) > 1) * (collective == self.kind)),)

    def split_send(self, degree: Column, stride: Column, m: Column) -> tuple[Column, Column]:
        return np.zeros(1), m * (degree > 1) * (self.kind == "send")

    def send_to_all(
        self, degree: Column, stride: Column, m: Column, messages: int, alike: float = 1.0
    ) -> Column:
        return np.asarray(m * (degree > 1) * (self.kind == "all_to_all"))


def _resize_levels(network: Network, spans: Sequence[Column]) -> Network:
    """Return the network of levels with these PEs, and of the adapters that these have."""
    if not spans:
        return network
    span = 1.0 * np.stack(np.broadcast_arrays(*spans))
    links = np.ceil(network.links_per_node * span[0] / network.pes_per_node)
    return replace(network, span=span, pes_per_node=span[0], links_per_node=links)
