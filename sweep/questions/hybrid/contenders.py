"""Contenders: data parallelism, and the hybrids that are compared with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from grids.entries.strategies import parse_strategy
from grids.library import find
from grids.reading.errors import InputError, shorten
from sweep.questions.hybrid.draws import MOST_CONTENDERS

# Joint draws of as many PE counts are 67 MB a contender; the largest machine of the catalogue has
# 4,480 PEs.
MOST_PES = 2**14


@dataclass(frozen=True)
class Contender:
    """A way to train. group: M; split: SU^M where it is given, None where the oracle is asked.

    strategy: as the oracle knows it, None of a split that only its speed-up is known of.

    >>> Contender("2-way", 2, 1.32, None)  # Pal et al.'s Inception-v3
    """

    label: str
    group: int
    split: float | None
    strategy: str | None


DATA = Contender("data", 1, 1.0, "data")
# What is compared where no hybrid is named: pairs of PEs, the smallest groups there are. Placements
# with the step at once, and cut in two: the best of 1 to 16 segments takes a search of 6 to 20 s.
PAIRS = (
    "data+pipeline:group=2,segments=best",
    "data+placement:group=2",
    "data+placement:group=2,segments=2",
    "data+spatial:group=2",
    "data+filter:group=2",
    "data+channel:group=2",
)


def propose_pairs(system: str, settings: Mapping[str, object]) -> tuple[str, ...]:
    """Hybrids of pairs that the oracle knows, for a system and the keys of a spec beside its axes.

    Placements divide a node, without recomputing, for the machine oracle alone.
    """
    even = find("system", system, Path()).pes_per_node % 2 == 0
    usual = {"oracle": "machine", "recompute": "none"}
    placed = even and all(settings.get(key, value) == value for key, value in usual.items())
    return tuple(pair for pair in PAIRS if placed or not parse_strategy(pair).placed)


def list_contenders(
    strategies: Sequence[str], speedups: Mapping[int, float]
) -> tuple[Contender, ...]:
    """Data parallelism, then each hybrid; a speed-up that is given goes before the oracle's."""
    for group, speedup in speedups.items():
        _check_speedup(group, speedup)
    hybrids = [_read_hybrid(text, speedups) for text in strategies] or [
        Contender(f"{group}-way", group, speedup, None)
        for group, speedup in sorted(speedups.items())
    ]
    groups = sorted({hybrid.group for hybrid in hybrids})
    stray = next((group for group in speedups if group not in groups), None)
    if stray is not None:
        raise InputError(
            f"no strategy has groups of {stray}",
            where="speedups",
            advice=f"groups are of {', '.join(map(str, groups))}",
        )
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
    """The contender of a strategy; InputError where its groups have no one size above 1."""
    strategy = parse_strategy(text, "strategies")
    if not strategy.hybrid:
        raise InputError(
            f"expected a hybrid, got {shorten(text)}",
            where="strategies",
            advice="such as data+spatial:group=2; data parallelism is always compared",
        )
    group = strategy.group
    if not isinstance(group, int) or group < 2:
        raise InputError(
            f"expected the size of its groups, 2 or more, got {shorten(text)}",
            where="strategies",
            advice=f"write {strategy.base}:group=2",
        )
    return Contender(strategy.label, group, speedups.get(group), strategy.label)


def list_counts(pe: int | Sequence[int], contenders: Sequence[Contender]) -> tuple[int, ...]:
    """The PE counts of an answer's rows: those given, or of one number the powers of two up to it,
    and the number.
    """
    powers = () if isinstance(pe, Sequence) else (2**n for n in range(max(pe, 0).bit_length()))
    counts = sorted({*pe} if isinstance(pe, Sequence) else {*powers, pe})
    if not counts or counts[0] < 1 or counts[-1] > MOST_PES:
        raise InputError(
            f"expected PE counts from 1 to {MOST_PES:,}, got {shorten(pe)}", where="pe"
        )
    largest = max(contenders, key=lambda contender: contender.group)
    if counts[-1] < largest.group:
        raise InputError(
            f"expected {largest.group} or more, the PEs of a group of {largest.label}, "
            f"got {counts[-1]}",
            where="pe",
        )
    return tuple(counts)
