"""Contenders: data parallelism, and the hybrids that are held against it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from grids.entries.strategies import parse_strategy
from grids.reading.errors import InputError, shorten
from sweep.questions.hybrid.draws import MOST_CONTENDERS

# Joint draws of as many PE counts are 34 MB a contender; the largest machine of the catalogue has
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
# What is compared where no hybrid is named: pairs of PEs, the smallest groups there are.
PAIRS = (
    "data+pipeline:group=2,segments=best",
    "data+placement:group=2",
    "data+spatial:group=2",
    "data+filter:group=2",
    "data+channel:group=2",
)


def propose_pairs(placed: bool) -> tuple[str, ...]:
    """Hybrids of pairs; placed: whether the oracle has placements of two PEs."""
    return tuple(each for each in PAIRS if placed or "placement" not in each)


def list_contenders(
    strategies: Sequence[str], speedups: Mapping[int, float]
) -> tuple[Contender, ...]:
    """Data parallelism, then each hybrid; a speed-up that is given goes before the oracle's."""
    for group, speedup in speedups.items():
        _check_speedup(group, speedup)
    hybrids = [_read_hybrid(text, speedups) for text in strategies]
    if hybrids:
        _expect_groups(hybrids, speedups)
    else:
        hybrids = [_name_split(group, speedup) for group, speedup in sorted(speedups.items())]
    _check_number(hybrids)
    return (DATA, *hybrids)


def _name_split(group: int, speedup: float) -> Contender:
    """A split that only its speed-up is known of."""
    return Contender(f"{group}-way", group, speedup, None)


def _expect_groups(hybrids: Sequence[Contender], speedups: Mapping[int, float]) -> None:
    """InputError where a speed-up is of groups that no strategy has."""
    groups = {each.group for each in hybrids}
    stray = next((group for group in speedups if group not in groups), None)
    if stray is not None:
        raise InputError(
            f"no strategy has groups of {stray}",
            where="speedups",
            advice=f"groups are of {', '.join(map(str, sorted(groups)))}",
        )


def _check_number(hybrids: Sequence[Contender]) -> None:
    """InputError where there are more hybrids than there are draws for."""
    if len(hybrids) >= MOST_CONTENDERS:
        raise InputError(
            f"expected at most {MOST_CONTENDERS - 1} hybrids, got {len(hybrids)}",
            where="strategies",
        )


def _read_hybrid(text: str, speedups: Mapping[int, float]) -> Contender:
    """The contender of a strategy; InputError where its groups have no one size above 1."""
    strategy = parse_strategy(text, "strategies")
    if not strategy.hybrid:
        raise InputError(
            f"expected a hybrid, got {shorten(text)}",
            where="strategies",
            advice="such as data+spatial:group=2; data parallelism is always compared",
        )
    if not isinstance(strategy.group, int) or strategy.group < 2:
        raise InputError(
            f"expected the size of its groups, 2 or more, got {shorten(text)}",
            where="strategies",
            advice=f"write {strategy.base}:group=2",
        )
    group = strategy.group
    return Contender(strategy.label, group, speedups.get(group), strategy.label)


def _check_speedup(group: int, speedup: float) -> None:
    if group < 2:
        raise InputError(
            f"expected groups of 2 PEs or more, got {group}",
            where="speedups",
            advice="write it like 2=1.32",
        )
    if not 0 < speedup < float("inf"):
        raise InputError(f"expected a number above 0, got {speedup}", where="speedups")


def list_counts(pe: int | Sequence[int], contenders: Sequence[Contender]) -> tuple[int, ...]:
    """The PE counts to tell of: those given, or of one number the powers of two up to it."""
    counts = sorted(set(pe)) if isinstance(pe, Sequence) else _list_powers_of_two(pe)
    if not counts or counts[0] < 1 or counts[-1] > MOST_PES:
        raise InputError(
            f"expected PE counts from 1 to {MOST_PES:,}, got {shorten(pe)}", where="pe"
        )
    largest = max(contenders, key=lambda each: each.group)
    if counts[-1] < largest.group:
        raise InputError(
            f"expected {largest.group} or more, the PEs of a group of {largest.label}, "
            f"got {counts[-1]}",
            where="pe",
        )
    return tuple(counts)


def _list_powers_of_two(most: int) -> list[int]:
    """1, 2, 4 ... up to `most`, which is the last."""
    return sorted({*(2**n for n in range(most.bit_length() if most > 0 else 0)), most})
