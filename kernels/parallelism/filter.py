"""Filter parallelism: a layer's filters divided among the PEs of a group.

ParaDL, Table III, row Filter: y_l is gathered forward, dL/dx_l reduced backward. The last layer's
output is not exchanged.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce

import jax

from kernels.arrays import Cells, PerLayer, PerMessage
from kernels.configuration.case import Case
from kernels.configuration.hosts import count_staged, pack_gradients, reduce_staged, time_large
from kernels.machine.library_collectives import Cost, Costs, gather_costs, time_fastest, tree_costs
from kernels.machine.network import Network
from kernels.machine.rings import Ring
from kernels.namespace import xp
from kernels.parallelism.parallelism import Add, Exchange, Parallelism, Reach, open_logs
from kernels.work.division import Division
from kernels.work.group import mark_exchanged, share
from kernels.work.layers import Layers

# Of messages. Against a minimum for each layer, catalogue networks on three machines and 1 to 512
# samples take 0.2 % too long on average with two classes, 15 % at worst
# (tests/test_machine_classes.py); four cost a third of the rate.
CLASSES = 2
# What is a class' least size but for rounding is in it.
BORDER = 1e-9


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Gathered:
    """Exchanges of a filter or channel group, by classes of sizes.

    items [a sample], messages: of each class. reductions: how many of the two collectives of a
    layer are all-reduces, 0 by filter and 1 by channel; the others are gathers. undivided:
    weights that every PE of a group holds. logged: convolutions at each of which ChainerMNX opens
    its log files.
    """

    items: PerMessage
    messages: PerMessage
    reductions: Cells
    undivided: Cells
    logged: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class GatherPaths:
    """gathers, trees: all that a group gathers, or reduces by trees, of each class of sizes:
    seconds a pass, and seconds a sample.
    """

    gathers: tuple[Costs, ...]
    trees: tuple[Costs, ...]


class Filter(Parallelism):
    """Filters, or columns of matrices, divided: AG forward and RS backward."""

    name = sends_as = "filter"
    feeds_all = True

    def find_share(self, division: Division) -> PerLayer:
        """The part of each layer that a PE has."""
        return share(division.placement.find_split(self.name), division.degrees[self.sends_as])

    def share_planes(self, division: Division) -> tuple[PerLayer, PerLayer] | None:
        """All channels, or those of its filters' groups; its filters."""
        part, groups = self.find_share(division), division.layers.groups
        return xp.ones_like(part) if groups is None else xp.maximum(part, 1 / groups), part

    def take_part(self, division: Division) -> Layers:
        """It reads all that comes in and makes its part of what goes out."""
        layers, part = division.layers, self.find_share(division)
        own = replace(layers, flops=layers.flops * part, w=layers.w * part, y=layers.y * part)
        if layers.groups is None:
            return own
        # Of a grouped convolution it reads the channels of its filters' groups alone.
        return replace(own, x=layers.x * xp.maximum(part, 1 / layers.groups))

    def reduce_sent(self, division: Division, own: Layers, add: Add) -> Gathered:
        """Outputs of split layers, each gathered whole."""
        layers, split = division.layers, division.placement.find_split(self.name)
        messages = mark_exchanged(split)
        items = messages * layers.y
        logged = add(messages * layers.convolution)
        if division.options.algorithm == "auto":
            messages, items = _sort_by_size(messages, items, add)
        else:  # costs are linear in the size: the layers' sum is enough
            messages, items = (xp.expand_dims(add(each), 0) for each in (messages, items))
        undivided = add(layers.w * (1 - split))
        return Gathered(items, messages, xp.zeros(()), undivided, logged)

    def count_items(self, division: Division) -> Mapping[str, PerLayer]:
        """Outputs of split layers."""
        split = division.placement.find_split(self.name)
        return {"gathered_items": mark_exchanged(split) * division.layers.y}

    def find_paths(self, sent: Gathered, case: Case, reach: Reach) -> GatherPaths:
        """The group's ring, and its tree."""
        inside, algorithm = case.find_ring(self.name), case.options.algorithm
        return GatherPaths(
            gathers=_add_messages(gather_costs(reach.layers, inside, algorithm), sent, case),
            trees=_add_messages(tree_costs(reach.layers, inside, algorithm), sent, case),
        )

    def list_exchanges(
        self, sent: Gathered, case: Case, paths: GatherPaths, batch: Cells
    ) -> tuple[Exchange, ...]:
        """Collectives of each layer, which the next one waits for."""
        return (
            Exchange("layer_collectives", _time_layers(sent, case, paths, batch)),
            open_logs(sent.logged, case, self.find_degree(case)),
        )

    def time_step(self, sent: Gathered, case: Case, batch: Cells) -> Mapping[str, Cells]:
        """The cost to a PE of dividing layers."""
        return {"split_overhead": self._assemble(sent, case, batch)}

    def time_once(self, sent: Gathered, case: Case) -> Mapping[str, Cells]:
        """Copies of whole weights' gradients to hosts and back.

        By channel what of them is large is slow here, too: one series of runs shows it, and no
        mechanism is known. It does not depend on where peers are: compute does not.
        """
        m, network, software = self.count_gradients(sent, case), case.network, case.software
        slow = sent.reductions * 2 * time_large(m, network, software)
        return {"gradient_packing": pack_gradients(m, network, software) + slow}

    def _assemble(self, sent: Gathered, case: Case, batch: Cells) -> Cells:
        """u b a sum(y) (1-1/q) / (assembly BW) + 2 n (q-1) part_overhead.

        Gathered outputs are put together, u times; of each peer's part there is a time, too.
        """
        run, software = case.run, case.software
        gathered = batch * run.delta * xp.sum(sent.items, axis=0) * (1 - 1 / self.find_degree(case))
        copies = (2 - sent.reductions) * gathered / case.pe.memory_bandwidth / software.assembly
        # By channel no time of parts was seen.
        parts = 2 * (1 - sent.reductions) * xp.sum(sent.messages, axis=0)
        return copies + parts * (self.find_degree(case) - 1) * software.part_overhead

    def count_gradients(self, sent: Gathered, case: Case) -> Cells:
        """m_s [B], gradients that pass through host memory; hybrids reduce between PEs directly."""
        run = case.run
        alone = xp.greater(self.find_degree(case), 1) & xp.equal(run.replicas, 1)
        alike = case.find_alike()
        if alike is not None:  # those that divide rows send all weights' gradients
            alone = alone & xp.equal(alike.degree, 1)
        m = count_staged(case.machine_work, sent.undivided, run, case.network)
        return xp.where(alone, m, 0.0)

    def reduce_through_hosts(
        self, sent: Gathered, case: Case, network: Network, slowest: Cells, replicas: Ring
    ) -> Cells:
        """Exchange of a single group's undivided weights, whose gradients every PE has.

        Each PE's own path through its host is as slow on one node as on many.
        """
        m, peers = self.count_gradients(sent, case), case.find_ring(self.sends_as)
        slow = (1 - 1 / peers.degree) * time_large(m, network, case.software)
        return reduce_staged(m, peers, network, case.run.phi, slow)


PARALLELISM = Filter()


def _time_layers(sent: Gathered, case: Case, paths: GatherPaths, batch: Cells) -> Cells:
    """By filter AG forward, and RS backward; by channel AR forward, and AG backward.

    Each class of sizes takes its fastest algorithm.
    """
    algorithm = case.options.algorithm
    seconds = xp.zeros(())
    for of_class, by_tree in zip(paths.gathers, paths.trees, strict=True):
        gather = time_fastest(of_class, batch, 1.0)
        # An all-reduce is a reduce-scatter and a gather, or a tree.
        rings = () if algorithm == "tree" else (2 * gather,)
        trees = (cost.time(batch, 1.0) for cost in by_tree)
        reduction = reduce(xp.minimum, (*rings, *trees))
        seconds = seconds + (2 - sent.reductions) * gather + sent.reductions * reduction
    return seconds


def _add_messages(costs: Costs, sent: Gathered, case: Case) -> tuple[Costs, ...]:
    """Seconds a pass, and a sample, of all messages of each class of sizes."""
    # A tuple: slices of an array with a dimension of classes are a tenth as fast in the cells.
    return tuple(
        tuple(Cost(messages * cost.startup, case.run.delta * items * cost.beta) for cost in costs)
        for messages, items in zip(sent.messages, sent.items, strict=True)
    )


def _sort_by_size(gathers: PerLayer, gathered: PerLayer, add: Add) -> tuple[PerMessage, PerMessage]:
    """Messages and items by class of size, of equal width between the logarithms' extremes.

    A class takes one algorithm. Against the best for each message by itself: docs/machine.md.
    """
    there = gathered > 0
    sizes = xp.log(xp.where(there, gathered, 1.0))
    least = xp.min(xp.where(there, sizes, xp.inf), axis=0)
    most = xp.max(xp.where(there, sizes, -xp.inf), axis=0)
    # All of one size are the first class.
    width = xp.where(most > least, (most - least) / CLASSES, xp.inf)
    number = xp.clip(xp.floor((sizes - least) / width + BORDER), 0, CLASSES - 1)
    of_class = [xp.where(there & (number == each), 1.0, 0.0) for each in range(CLASSES)]
    return (
        xp.stack([add(each * gathers) for each in of_class]),
        xp.stack([add(each * gathered) for each in of_class]),
    )
