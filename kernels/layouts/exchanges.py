"""Exchanges of a transformer's layout, on the machine oracle's rings and by its collectives.

Narayanan et al. 2021 (SC21), section 3.2: tensor parallelism. Korthikanti et al. 2022: sequence
parallelism. Liu et al. 2023: the ring of a context. Lepikhin et al. 2020 (GShard): experts.
Rajbhandari et al. 2020 (ZeRO): gradients and weights. From the inside out a node has tensor,
context, data, pipeline; experts have etp, e and replicas of the same PEs. Seconds [layouts].
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from kernels.layouts.columns import Column, find_distinct
from kernels.layouts.parameters import Parameters
from kernels.layouts.transformer import RECOMPUTE, Block, Layouts, Training, Transformer
from kernels.machine.library_collectives import (
    Cost,
    Costs,
    gather_costs,
    reduce_costs,
    time_all_to_all,
    time_fastest,
)
from kernels.machine.network import Network
from kernels.machine.rings import Ring, find_path


class StateCosts(NamedTuple):
    """Costs of exchanges of the parameters that some ranks share.

    shards: how many of these ranks ZeRO divides over; gather, scatter: over these; beyond: a sum
    over ranks that have the same shard (HSDP); whole: over all ranks, without ZeRO.
    """

    shards: Column
    gather: Costs
    scatter: Costs
    beyond: Costs
    whole: Costs


@dataclass(frozen=True)
class Exchanges:
    """What the PEs of each layout send each other.

    rail: the share of a link that is reached. sends_once: whether a token crosses once to a node,
    however many of its experts are there.
    """

    net: Transformer
    layouts: Layouts
    training: Training
    network: Network
    rail: float
    sends_once: bool = False

    @cached_property
    def activations(self) -> Column:
        """Bytes of a micro-batch between two blocks, u h."""
        tokens = self.training.count_tokens(self.layouts)
        return tokens * self.net.hidden * self.training.recipe.item

    def count_tensor(self, block: Block) -> Column:
        """All-reduces of a block and micro-batch: forward behind each matrix divided by rows,
        backward before the columns in front of it; once more where whole blocks are recomputed."""
        rows = sum(
            bool(w.used and w.parts) and not w.by_columns and not w.is_routed for w in block.weights
        )
        whole = (self.layouts.recompute & (RECOMPUTE["blocks"] | RECOMPUTE["full"])) > 0
        return rows * (2 + whole)

    @cached_property
    def tensor(self) -> Column:
        """One all-reduce over tensor; with sequence parallelism a reduce-scatter and a gather."""
        t = self.layouts.tensor
        gathered = self.gather(t, 1, self.activations) + self.scatter(t, 1, self.activations)
        reduced = self.reduce(t, 1, self.activations)
        return np.where(self.layouts.sequence > 0, gathered, reduced)

    def exchange_tensor(self, block: Block) -> Column:
        """All of a block's and micro-batch's over tensor."""
        return self.count_tensor(block) * self.tensor

    def exchange_context(self, attention: Column) -> Column:
        """Keys and values of a micro-batch and block, forward and backward, as far as a ring's are
        not hidden behind `attention`."""
        c, t = self.layouts.context, self.layouts.tensor
        keys = 2 * max(self.net.kv_heads) / max(self.net.heads) * self.activations / t
        if self.training.context_by == "ring":
            # Of c - 1 steps each one hides behind the attention of the part that has arrived.
            exposed = np.maximum(3 * self.send(c, t, keys) - attention / c, 0)
            return (c - 1) * exposed
        if self.training.context_by == "all_gather":
            # Forward, again backward, and the gradients.
            return 2 * self.gather(c, t, c * keys) + self.scatter(c, t, c * keys)
        queries = 2 * self.activations / t
        return 2 * self.exchange_all(c, t, queries + keys, 2)

    def exchange_experts(self, block: Block) -> Column:
        """Dispatch and combine of a micro-batch, forward and backward."""
        used = next((weights.used for weights in block.weights if weights.is_routed), 0)
        if not used:
            return np.zeros(1)
        k = used * sum(self.net.experts)
        sent, alike = k * self.activations / self.layouts.tensor, k if self.sends_once else 1.0
        return 4 * self.exchange_all(self.layouts.expert, self.layouts.etp, sent, 1, alike)

    def exchange_stages(self) -> Column:
        """What fills and empties a pipeline in an iteration; computing hides the rest."""
        layouts = self.layouts
        stride = layouts.tensor * layouts.context * layouts.data
        sent = self.activations / layouts.sigma
        return 2 * (layouts.pipeline - 1) * self.send(layouts.pipeline, stride, sent)

    @cached_property
    def states(self) -> list[StateCosts]:
        """Costs of exchanges of what all ranks share, and of routed experts if there are any."""
        layouts = self.layouts
        inside = layouts.etp * layouts.expert
        ranks = layouts.context * layouts.data
        costs = [self._cost_states(ranks, layouts.tensor, layouts.shards)]
        if self.net.experts:
            # Whole numbers: a product of layouts has some whose experts do not divide their PEs.
            replicas = layouts.tensor * ranks // inside
            costs.append(self._cost_states(replicas, inside, layouts.expert_shards))
        return costs

    def _cost_states(self, degree: Column, stride: Column, shards: Column) -> StateCosts:
        shards = np.minimum(shards, degree)
        return StateCosts(
            shards,
            self._cost_gather(shards, stride),
            self._cost_scatter(shards, stride),
            self._cost_reduce(degree // shards, stride * shards),
            self._cost_reduce(degree, stride),
        )

    def exchange_states(self, held: Parameters) -> tuple[Column, Column]:
        """Gradients that are reduced in an iteration, and weights that are gathered."""
        layouts, recipe = self.layouts, self.training.recipe
        gradients, weights = np.zeros(1), np.zeros(1)
        for number, costs in zip(held, self.states, strict=False):
            beyond = recipe.gradients * number / costs.shards
            scattered = self._time(costs.scatter, recipe.gradients * number)
            scattered = scattered + self._time(costs.beyond, beyond)
            reduced = self._time(costs.whole, recipe.gradients * number)
            gradients = gradients + np.where(
                number > 0, np.where(layouts.zero > 0, scattered, reduced), 0
            )
            gathered = self._time(costs.gather, recipe.weights * number)
            weights = weights + np.where((number > 0) & (layouts.zero > 0), gathered, 0)
        # ZeRO 3: of each micro-batch, and weights both forward and backward.
        times = np.where(layouts.zero == 3, self.training.count_micro_batches(layouts), 1)
        return times * gradients, np.where(layouts.zero == 3, 2, 1) * times * weights

    def gather(self, degree: Column, stride: Column | int, m: Column) -> Column:
        """An all-gather of m bytes."""
        return self._time(self._cost_gather(degree, stride), m)

    def scatter(self, degree: Column, stride: Column | int, m: Column) -> Column:
        """A reduce-scatter of m bytes."""
        return self._time(self._cost_scatter(degree, stride), m)

    def reduce(self, degree: Column, stride: Column | int, m: Column) -> Column:
        """An all-reduce of m bytes."""
        return self._time(self._cost_reduce(degree, stride), m)

    def _cost_gather(self, degree: Column, stride: Column | int) -> Costs:
        network = self._find_network("all_gather", "reduce_scatter")
        return self._cost(lambda ring: gather_costs(network, ring, "auto"), degree, stride)

    def _cost_scatter(self, degree: Column, stride: Column | int) -> Costs:
        """As an all-gather, unless it was measured by itself."""
        if "reduce_scatter" not in (self.network.measured or {}):
            return self._cost_gather(degree, stride)
        return self._cost(
            lambda ring: gather_costs(self.network, ring, "auto", "reduce_scatter"), degree, stride
        )

    def _cost_reduce(self, degree: Column, stride: Column | int) -> Costs:
        network = self._find_network("all_reduce")
        return self._cost(lambda ring: reduce_costs(network, ring, "auto"), degree, stride)

    def send(self, degree: Column, stride: Column, m: Column) -> Column:
        """m bytes to the next PE of a ring."""
        network = self._find_network()
        (path,) = self._cost(lambda ring: (_cost_path(network, ring),), degree, stride)
        return np.asarray(path.startup + m * path.beta / self.rail)

    def exchange_all(
        self, degree: Column, stride: Column, m: Column, messages: int, alike: float = 1.0
    ) -> Column:
        """All-to-alls of m bytes a PE: inside nodes, and between them over all of their links."""
        network, ring = self._find_network("all_to_all"), self._ring(degree, stride)
        return np.asarray(time_all_to_all(network, ring, m, messages, self.rail, alike))

    def _find_network(self, *collectives: str) -> Network:
        """The network, whose measured lines of these collectives count; where a machine's others
        alone were measured, as its messages are."""
        measured = self.network.measured
        if not measured or any(name in measured for name in collectives):
            return self.network
        return self.network.list_lines("send")[0]

    def _time(self, costs: Costs, m: Column) -> Column:
        return np.asarray(time_fastest(costs, m / self.rail, 1.0))

    def _cost(self, find: Callable[[Ring], Costs], degree: Column, stride: Column | int) -> Costs:
        """Costs of rings, found once for all that are alike: of a product of layouts nearly all."""
        degrees, strides = (np.asarray(each, int) for each in (degree, stride))
        sizes, place = find_distinct(degrees, strides, self.layouts.pes)
        ring = Ring(*(size.astype(float) for size in sizes))
        costs = ((cost.startup, cost.beta) for cost in find(ring))
        return tuple(
            Cost(*(np.broadcast_to(part, sizes[0].shape)[place] for part in cost)) for cost in costs
        )

    def _ring(self, degree: Column, stride: Column | int) -> Ring:
        return Ring(*(np.asarray(each, float) for each in (degree, stride, self.layouts.pes)))


def _cost_path(network: Network, ring: Ring) -> Cost:
    path = find_path(network, ring)
    return Cost(path.alpha, path.beta)
