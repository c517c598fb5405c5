"""How long a network takes, for one ring or message: the second opinion in plain float64 Python.

From docs/machine.md, section Network, alone. Rings have q neighbours at a stride of s PEs, of p in
all; a way has a start-up alpha [s] and takes beta [s/B]; K messages have m bytes together. PEs are
numbered node by node, and a group's are neighbours. `reached` is r_0, the part of B_0 that what is
sent has of it: it depends on who sends.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple, TypeVar

Algorithm = Literal["auto", "ring", "tree", "two-level"]
Seconds = dict[str, float]  # by algorithm


class Level(NamedTuple):
    """A level of the network: B_0 is a PE's inside its node, those above are a link's."""

    pes: float
    latency: float
    bandwidth: float
    oversubscription: float = 1.0


class Path(NamedTuple):
    """A way between two PEs: a message of m bytes takes alpha + m beta."""

    alpha: float
    beta: float

    def bound(self, other: "Path", phi: float = 1.0) -> "Path":
        """The slower of both in either regard, with phi flows on it."""
        return Path(max(self.alpha, other.alpha), phi * max(self.beta, other.beta))


FREE = Path(0.0, 0.0)
Some = TypeVar("Some", bound="Network")


@dataclass(frozen=True, kw_only=True)
class Network:
    """Nodes of PEs, their links, and the levels from the node upwards, as Level's fields."""

    pes_per_node: int
    links_per_node: int = 1
    levels: Sequence[tuple[float, ...]]
    rail: float = 1.0  # r, of a node's links: what all flows together reach
    flow: float = math.inf  # r_1, of a node's links: what one of them alone reaches
    startup: float = 1.0  # what start-ups beyond a node take of the levels' latencies
    switch_latency: float | None = None  # of a collective by a node's switches, if they can
    shared: float = math.inf  # bandwidth that all PEs of a node together have
    # Levels as each measured line has them, by collective: all_reduce, all_gather.
    measured: Mapping[str, Sequence[Sequence[tuple[float, ...]]]] = field(default_factory=dict)

    def level(self, j: int) -> Level:
        """The j-th, of which the last field may be left out."""
        return Level(*self.levels[j])

    def inside(self, p: int, reached: float) -> "Path":
        """The way between two PEs of a node, on which all PEs of a run in it send at once."""
        node = self.level(0)
        part = self.shared / min(p, node.pes)
        return Path(node.latency, 1 / min(reached * node.bandwidth, part))


# Ways.


def straddles(pes: float, span: int, p: int) -> bool:
    """Whether rings of `span` PEs lie across the borders of a level of so many PEs."""
    return p > pes and p > span and pes % span > 0 and span % pes > 0


def top_level(network: Network, span: int, p: int) -> int:
    """J: the narrowest level that holds a ring and cuts none, else the last."""
    for j in range(len(network.levels)):
        pes = network.level(j).pes
        if pes >= span and (p <= pes or pes % span == 0):
            return j
    return len(network.levels) - 1


def flows(pes: float, s: int, span: int, p: int) -> float:
    """f_j: what leaves a level at once, at both of its ends where rings lie across."""
    sides = 2 if straddles(pes, span, p) else 1
    return min(pes, sides * min(s, pes))


def path(network: Network, p: int, q: int, s: int, reached: float = 1.0) -> Path:
    """The way between neighbours of the rings, all of which are in use at once."""
    span = min(q * s, p)
    top = top_level(network, span, p)
    return crowded_path(network, p, top, lambda pes: flows(pes, s, span, p), reached)


def crowded_path(
    network: Network, p: int, top: int, leaving: Callable[[float], float], reached: float = 1.0
) -> Path:
    """The way through the levels up to `top`, where so many flows leave a level of so many PEs."""
    inside = network.inside(p, reached).beta
    bandwidths = [1 / inside if inside else math.inf]
    leaving_a_node = leaving(network.level(0).pes)
    for j in range(top):
        below = network.level(j)
        links = network.links_per_node * network.level(j + 1).bandwidth  # of one node, all of them
        shared = links * below.pes / (network.pes_per_node * below.oversubscription)
        bandwidths += [
            network.rail * links / leaving_a_node,
            network.rail * shared / leaving(below.pes),
            network.flow * links,
        ]
    startup = network.startup if top > 0 else 1.0
    return Path(startup * network.level(top).latency, 1 / min(bandwidths))


# Rings, and the collectives on them.


@dataclass(frozen=True)
class Ring:
    """q PEs, h of them in each of n nodes."""

    q: int
    h: int
    n: int
    way: Path  # between neighbours
    chain: int  # h_t: PEs of a tree's chain in a node
    chains: int  # n_t
    inside: Path  # of a node
    rail: Path  # between PEs of the same place in their nodes
    switches: float | None = None  # L, a node's switches' start-up
    # As each measured line has it, by collective.
    lines: Mapping[str, Sequence["Ring"]] = field(default_factory=dict)

    def bound(self, other: Path, phi: float = 1.0) -> "Ring":
        """With no way faster than another one, and phi flows on each."""
        return replace(
            self,
            way=self.way.bound(other, phi),
            inside=self.inside.bound(other, phi),
            rail=self.rail.bound(other, phi),
            lines={
                name: [line.bound(other, phi) for line in lines]
                for name, lines in self.lines.items()
            },
        )


def ring(network: Network, p: int, q: int, s: int, reached: float = 1.0) -> Ring:
    """ring(q, s) with what its collectives need; PEs of a torn ring share no node."""
    k, node = network.pes_per_node, network.level(0)
    torn = k % s > 0 or straddles(node.pes, min(q * s, p), p)
    h = 1 if torn else min(q, k // s)
    n = math.ceil(q / h)
    chain = min(q, max(1, k // s))
    chains = math.ceil(q / chain) + straddles(node.pes, min(q * s, p), p)
    way, rail = path(network, p, q, s, reached), path(network, p, n, s * h, reached)
    inside, switches = network.inside(p, reached), network.switch_latency
    lines = as_measured(network, lambda line: ring(line, p, q, s, reached))
    return Ring(q, h, n, way, chain, chains, inside, rail, switches, lines)


def as_measured(network: Some, make: Callable[[Some], Ring]) -> dict[str, list[Ring]]:
    """What is made of the network as each measured line has it, by collective."""
    return {
        name: [make(replace(network, levels=levels, measured={})) for levels in lines]
        for name, lines in network.measured.items()
    }


def all_gather_seconds(over: Ring, m: float, messages: float = 1.0) -> Seconds:
    """(q-1)(K alpha + m/q beta), or in a node first and then across them; reduce-scatter as well.

    A tree gathers as a ring does.
    """
    steps = over.q - 1
    around = steps * (messages * over.way.alpha + m / over.q * over.way.beta)
    within = (over.h - 1) * (messages * over.inside.alpha + m / over.h * over.inside.beta)
    part = m / (over.h * over.n)
    across = (over.n - 1) * (messages * over.rail.alpha + part * over.rail.beta)
    seconds = {"ring": around, "tree": around, "two-level": within + across}
    return seconds | by_switches(over, m, messages, 1)


def by_switches(over: Ring, m: float, messages: float, gathers: int) -> Seconds:
    """In a node m leaves each PE for the switch; of an all-reduce its part comes back summed, and
    leaves once more for all. Rings connect the nodes."""
    if over.switches is None:
        return {}
    sent = m + (m / over.h if gathers == 2 else 0)
    within = messages * over.switches + sent * over.inside.beta if over.h > 1 else 0.0
    part = m / (over.h * over.n)
    across = (over.n - 1) * (messages * over.rail.alpha + part * over.rail.beta)
    return {"switches": within + gathers * across}


def all_reduce_seconds(over: Ring, m: float, messages: float = 1.0) -> Seconds:
    """Twice a gather; the tree is a chain in each node and two pipelined trees of the nodes."""
    both = {name: 2 * seconds for name, seconds in all_gather_seconds(over, m, messages).items()}
    if over.q == 1:
        return both
    both |= by_switches(over, m, messages, 2)
    chain = (over.chain - 1) * over.inside.alpha
    start = chain + math.ceil(math.log2(over.chains)) * over.way.alpha
    return both | {"tree": 2 * (messages * start + m * over.way.beta)}


def choose(algorithm: Algorithm, seconds: Seconds) -> float:
    """The fastest, or the one that is asked for."""
    return min(seconds.values()) if algorithm == "auto" else seconds[algorithm]


def all_gather(algorithm: Algorithm, over: Ring, m: float, messages: float = 1.0) -> float:
    """AG(q, m) = RS(q, m); of measured lines the bytes of a ring, with start-ups by levels."""
    if algorithm == "auto" and (lines := over.lines.get("all_gather")):
        return min(
            messages * ((one.h - 1) * one.inside.alpha + (one.n - 1) * one.rail.alpha)
            + (one.q - 1) / one.q * m * one.way.beta
            for one in lines
        )
    return choose(algorithm, all_gather_seconds(over, m, messages))


def all_reduce(algorithm: Algorithm, over: Ring, m: float, messages: float = 1.0) -> float:
    """AR(q, m); of measured lines twice the bytes of a ring, with start-ups of a tree."""
    if algorithm == "auto" and (lines := over.lines.get("all_reduce")):
        return min(measured_reduction(one, m, messages) for one in lines)
    return choose(algorithm, all_reduce_seconds(over, m, messages))


def measured_reduction(over: Ring, m: float, messages: float) -> float:
    """An all-reduce by one measured line."""
    start = (over.chain - 1) * over.inside.alpha
    start += math.ceil(math.log2(over.chains)) * over.way.alpha
    several = 2 if over.q > 1 else 0
    return several * messages * start + 2 * (over.q - 1) / over.q * m * over.way.beta
