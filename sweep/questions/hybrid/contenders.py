"""Contenders: data parallelism and the hybrids to compare with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from paradl.grids.entries.strategies import Strategy, parse_strategy
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.units import parse_count
from paradl.kernels.names.parallelisms import LAYOUT_DEGREES
from paradl.sweep.questions.hybrid.epochs import MOST_CONTENDERS

if TYPE_CHECKING:
    from paradl.grids.grid import Grid

# Draws for this many PE counts take 67 MB per contender; the catalogue's largest machine has 4,480
# PEs.
MOST_PES = 2**14


@dataclass(frozen=True)
class Contender:
    """A way to train. group: M. split: SU^M if the user gave it, else None: the oracle computes it.

    strategy: for the oracle; None if only the speed-up is known.

    >>> Contender("2-way", 2, 1.32, None)  # Pal et al.'s Inception-v3
    """

    label: str
    group: int
    split: float | None
    strategy: str | None


DATA = Contender("data", 1, 1.0, "data")
# Compared if the user names no hybrid: pairs of PEs, the smallest groups. Placements run the step
# whole or in two segments, since finding the best of 1 to 16 segments takes 6 to 20 s.
PAIRS = (
    "data+pipeline:group=2,segments=best",
    "data+placement:group=2",
    "data+placement:group=2,segments=2",
    "data+spatial:group=2",
    "data+filter:group=2",
    "data+channel:group=2",
)
# The same for networks with blocks.
LAYOUT_PAIRS = (
    "data+tensor:tensor=2",
    "data+context:context=2",
    "data+pipeline:pipeline=2,micro=best",
)


def propose_pairs(grid: "Grid") -> tuple[str, ...]:
    """Return hybrids of pairs for the network and the system of a design space of `data`.

    Placements need the machine oracle, no recomputing, and an even number of PEs per node.
    """
    if grid.transformers[0]:
        return LAYOUT_PAIRS
    even = grid.systems[0].pes_per_node % 2 == 0
    may_place = even and (grid.spec.oracle, grid.spec.recompute) == ("machine", "none")
    return tuple(pair for pair in PAIRS if may_place or not parse_strategy(pair).placed)


def list_contenders(
    strategies: Sequence[str], speedups: Mapping[int, float]
) -> tuple[Contender, ...]:
    """Return data parallelism, then the hybrids; a given speed-up replaces that of the oracle."""
    for group, speedup in speedups.items():
        _check_speedup(group, speedup)
    hybrids = [_read_hybrid(text, speedups) for text in strategies] or [
        Contender(f"{group}-way", group, speedup, None)
        for group, speedup in sorted(speedups.items())
    ]
    # A speed-up that no hybrid uses is a typing error.
    groups = sorted({hybrid.group for hybrid in hybrids})
    stray = next((group for group in speedups if group not in groups), None)
    if stray is not None:
        raise InputError(
            f"no strategy has groups of {stray}",
            where="speedups",
            advice=f"groups are of {', '.join(map(str, groups))}",
        )
    # Draws are made for this many, data parallelism included.
    if len(hybrids) >= MOST_CONTENDERS:
        raise InputError(
            f"expected at most {MOST_CONTENDERS - 1} hybrids, got {len(hybrids)}",
            where="strategies",
        )
    return (DATA, *hybrids)


def _check_speedup(group: int, speedup: float) -> None:
    if group < 2:
        raise InputError(
            f"expected groups of 2 PEs or more, got {group}",
            where="speedups",
            advice="write it like 2=1.32",
        )
    if not 0 < speedup < float("inf"):
        raise InputError(f"expected a number above 0, got {speedup}", where="speedups")


def _read_hybrid(text: str, speedups: Mapping[int, float]) -> Contender:
    """Return the contender of a strategy. InputError: its groups do not have one size above 1."""
    strategy = parse_strategy(text, "strategies")
    # Experts divide the same PEs again, so they form no groups.
    grouped = bool(strategy.parts) and {*strategy.parts} <= {*LAYOUT_DEGREES}
    if not (strategy.hybrid or (strategy.replicated and grouped)):
        raise InputError(
            f"expected a hybrid, got {shorten(text)}",
            where="strategies",
            advice="such as data+spatial:group=2, or data+tensor:tensor=2 for a transformer; data "
            "parallelism is always compared",
        )
    group = _find_group(strategy)
    if group is None or group < 2:
        sizes = "group=2" if strategy.hybrid else ",".join(f"{n}=2" for n in strategy.parts)
        raise InputError(
            f"expected the size of its groups, 2 or more, got {shorten(text)}",
            where="strategies",
            advice=f"write {strategy.base}:{sizes}",
        )
    return Contender(strategy.label, group, speedups.get(group), strategy.label)


def _find_group(strategy: Strategy) -> int | None:
    """Return the PEs of a hybrid's groups; None if the strategy leaves them open."""
    degrees = dict(strategy.degrees)
    sizes = [strategy.group] if strategy.hybrid else [degrees.get(n) for n in strategy.parts]
    known = [size for size in sizes if isinstance(size, int)]
    return prod(known) if len(known) == len(sizes) else None


def list_counts(
    pe: int | str | Sequence[int | str], contenders: Sequence[Contender]
) -> tuple[int, ...]:
    """Return PE counts of the rows: those given, or one number and all powers of two below."""
    listed = [pe] if isinstance(pe, int | str) else pe
    counts = sorted({parse_count(count, "pe") for count in listed})
    if listed is not pe:
        counts = sorted({*counts, *(2**n for n in range(max(counts[0], 0).bit_length()))})
    if not counts or counts[0] < 1 or counts[-1] > MOST_PES:
        raise InputError(
            f"expected PE counts from 1 to {MOST_PES:,}, got {shorten(pe)}", where="pe"
        )
    largest = max(contenders, key=lambda contender: contender.group)
    if counts[-1] < largest.group:
        raise InputError(
            f"expected {largest.group} or more, the PEs per group of {largest.label}, "
            f"got {counts[-1]}",
            where="pe",
        )
    return tuple(counts)
