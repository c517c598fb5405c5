"""Filter parallelism: the PEs of a group divide a layer's filters.

ParaDL, Table III, row Filter: y_l is gathered forward, dL/dx_l reduced backward. The last layer's
output is not exchanged.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import reduce

from paradl.kernels.arrays import Cells, PerLayer, PerMessage, empty_last, pytree, xp
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.hosts import (
    count_staged,
    pack_gradients,
    reduce_staged,
    time_large,
)
from paradl.kernels.machine.library_collectives import (
    Costs,
    gather_costs,
    joins_gathers,
    time_fastest,
    whole_costs,
)
from paradl.kernels.machine.network import Cost, Network, Ring
from paradl.kernels.machine.speeds import Fabric
from paradl.kernels.parallelism.parallelism import Add, Exchange, Exchanges, Parallelism, open_logs
from paradl.kernels.work.division import Division
from paradl.kernels.work.group import share
from paradl.kernels.work.layers import Layers

# Classes of message sizes. Compared with a minimum for each layer, two classes overestimate times
# of the catalogue's networks on three machines with 1 to 512 samples by 0.2 % on average and 15 %
# at worst (tests/test_machine_classes.py); four cost a third of the rate.
CLASSES = 2
# Tolerance, since rounding must not move a class's least size out of it.
BORDER = 1e-9


@pytree
class Gathered:
    """Exchanges of a filter or channel group, by class of sizes.

    items [per sample], messages: by class. reductions: how many of a layer's two collectives are
    all-reduces, 0 for filter and 1 for channel; the others are gathers. undivided: weights that
    every PE of a group holds. logged: convolutions at which ChainerMNX opens log files.
    """

    items: PerMessage
    messages: PerMessage
    reductions: Cells
    undivided: Cells
    logged: Cells


@pytree
class GatherPaths:
    """Costs by class of sizes of a group's gathers, and of reductions that are no two gathers."""

    gathers: tuple[Costs, ...]
    reductions: tuple[Costs, ...]


class Filter(Parallelism):
    """Divides filters, or columns of matrices: AG forward and RS backward."""

    name = sends_as = "filter"
    feeds_all = True

    def find_share(self, division: Division) -> PerLayer:
        """Return a PE's share of each layer."""
        return share(division.placement.find_split(self.name), division.degrees[self.sends_as])

    def share_planes(self, division: Division) -> tuple[PerLayer, PerLayer] | None:
        """Return all channels, or those of its filters' groups, and its share of filters."""
        part, groups = self.find_share(division), division.layers.groups
        return xp.ones_like(part) if groups is None else xp.maximum(part, 1 / groups), part

    def take_part(self, division: Division) -> Layers:
        """Return layers that read the whole input and compute a share of the output."""
        layers, part = division.layers, self.find_share(division)
        shares = replace(layers, flops=layers.flops * part, w=layers.w * part, y=layers.y * part)
        if layers.groups is None:
            return shares
        # In a grouped convolution it reads only the channels of its filters' groups.
        return replace(shares, x=layers.x * xp.maximum(part, 1 / layers.groups))

    def reduce_sent(self, division: Division, shares: Layers, add: Add) -> Gathered:
        """Sum the outputs of split layers but the network's last, which are gathered whole."""
        layers, split = division.layers, division.placement.find_split(self.name)
        messages = empty_last(split)
        items = messages * layers.y
        logged = add(messages * layers.convolution)
        if division.options.algorithm == "auto":
            messages, items = _sort_by_size(messages, items, add)
        else:  # costs are linear in the size, so the sum of layers suffices
            messages, items = (xp.expand_dims(add(count), 0) for count in (messages, items))
        undivided = add(layers.w * (1 - split))
        return Gathered(items, messages, xp.zeros(()), undivided, logged)

    def count_items(self, division: Division) -> Mapping[str, PerLayer]:
        split = division.placement.find_split(self.name)
        return {"gathered_items": empty_last(split) * division.layers.y}

    def find_paths(self, sent: Gathered, case: Case, fabric: Fabric) -> GatherPaths:
        inside, algorithm = case.find_ring(self.name), case.options.algorithm
        return GatherPaths(
            gathers=_add_messages(gather_costs(fabric.layers, inside, algorithm), sent, case),
            reductions=_add_messages(whole_costs(fabric.layers, inside, algorithm), sent, case),
        )

    def list_exchanges(
        self, sent: Gathered, case: Case, paths: GatherPaths, batch: Cells
    ) -> Exchanges:
        """List the layers' collectives, which cannot overlap: the next layer waits for them."""
        return (
            Exchange("layer_collectives", _time_layers(sent, case, paths, batch)),
            open_logs(sent.logged, case, self.find_degree(case)),
        )

    def time_step(self, sent: Gathered, case: Case, batch: Cells) -> Mapping[str, Cells]:
        """Compute u b a sum(y) (1-1/q) / (assembly BW) + 2 n (q-1) part_overhead.

        Gathered outputs are assembled u times, with an overhead for each peer's part.
        """
        run, software, degree = case.run, case.software, self.find_degree(case)
        gathered = batch * run.delta * xp.sum(sent.items, axis=0) * (1 - 1 / degree)
        copies = (2 - sent.reductions) * gathered / case.pe.memory_bandwidth / software.assembly
        # Runs show no overhead of parts with channel.
        parts = 2 * (1 - sent.reductions) * xp.sum(sent.messages, axis=0)
        return {"split_overhead": copies + parts * (degree - 1) * software.part_overhead}

    def time_once(self, sent: Gathered, case: Case) -> Mapping[str, Cells]:
        """Compute the time to copy gradients of undivided weights to hosts and back.

        With channel, the part above LARGE_MESSAGE is slow, too: one series of runs shows it, for no
        known reason. It does not depend on where peers are.
        """
        m, network, software = self.count_gradients(sent, case), case.network, case.software
        slow = sent.reductions * 2 * time_large(m, network, software)
        return {"gradient_packing": pack_gradients(m, network, software) + slow}

    def count_gradients(self, sent: Gathered, case: Case) -> Cells:
        """Count m_s [B], gradients that pass through host memory; none in hybrids."""
        run = case.run
        alone = xp.greater(self.find_degree(case), 1) & xp.equal(run.replicas, 1)
        alike = case.find_alike()
        if alike is not None:  # spatial parallelism already sends all weights' gradients
            alone = alone & xp.equal(alike.degree, 1)
        m = count_staged(case.machine_work, sent.undivided, run, case.network)
        return xp.where(alone, m, 0.0)

    def reduce_through_hosts(
        self, sent: Gathered, case: Case, network: Network, replicas: Ring
    ) -> Cells:
        """Compute the exchange of gradients of a single group's undivided weights.

        A PE's path through its host is equally slow on one node and on many.
        """
        m, peers = self.count_gradients(sent, case), case.find_ring(self.sends_as)
        slow = (1 - 1 / peers.degree) * time_large(m, network, case.software)
        return reduce_staged(m, peers, network, case.run.phi, slow)


PARALLELISM = Filter()


def _time_layers(sent: Gathered, case: Case, paths: GatherPaths, batch: Cells) -> Cells:
    """Compute AG forward and RS backward for filter, AR forward and AG backward for channel.

    Each class of sizes uses its fastest algorithm.
    """
    joined = joins_gathers(case.network, case.options.algorithm)
    seconds = xp.zeros(())
    for of_class, whole in zip(paths.gathers, paths.reductions, strict=True):
        gather = time_fastest(of_class, batch, 1.0)
        both = (2 * gather,) if joined else ()
        reduction = reduce(xp.minimum, (*both, *(cost.time(batch, 1.0) for cost in whole)))
        seconds = seconds + (2 - sent.reductions) * gather + sent.reductions * reduction
    return seconds


def _add_messages(costs: Costs, sent: Gathered, case: Case) -> tuple[Costs, ...]:
    """Return the costs of all messages of each class, per pass and per sample."""
    # A tuple, since slicing an array along classes made cells ten times slower.
    return tuple(
        tuple(Cost(messages * cost.alpha, case.run.delta * items * cost.beta) for cost in costs)
        for messages, items in zip(sent.messages, sent.items, strict=True)
    )


def _sort_by_size(gathers: PerLayer, gathered: PerLayer, add: Add) -> tuple[PerMessage, PerMessage]:
    """Sum messages and items by class of size, of equal width in the logarithm of the size.

    A class uses one algorithm; docs/machine.md compares with the best for each message.
    """
    is_sent = gathered > 0
    sizes = xp.log(xp.where(is_sent, gathered, 1.0))
    least = xp.min(xp.where(is_sent, sizes, xp.inf), axis=0)
    most = xp.max(xp.where(is_sent, sizes, -xp.inf), axis=0)
    # If all have one size, they are in the first class.
    width = xp.where(most > least, (most - least) / CLASSES, xp.inf)
    number = xp.clip(xp.floor((sizes - least) / width + BORDER), 0, CLASSES - 1)
    members = [xp.where(is_sent & (number == index), 1.0, 0.0) for index in range(CLASSES)]
    return (
        xp.stack([add(mask * gathers) for mask in members]),
        xp.stack([add(mask * gathered) for mask in members]),
    )
