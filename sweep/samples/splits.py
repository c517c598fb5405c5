"""Splits: which rows a learner trains on, and which it is tested on, by construction.

`random` divides problems, and not rows: a hash of all that matters but the strategy and the batch
decides, so that rows that differ in nothing else lie on one side. `model`, `system` and `strategy`
hold out whole values, `scale` and `size` the largest PE counts and batches.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from grids.grid import Grid
from grids.models.layers import Floats
from grids.ranges import Range
from grids.reading.errors import InputError, shorten, suggest_name
from kernels.configuration.places import PLACES
from sweep.samples.features import FACTS, INPUTS, MODEL, OUTER_LINKS, SYSTEM
from sweep.samples.space import Space

Split = Literal["random", "model", "system", "strategy", "scale", "size"]
SPLITS: tuple[Split, ...] = ("random", "model", "system", "strategy", "scale", "size")
# By the name of a split: the axis whose largest values are tested.
AXES = {"scale": "pe", "size": "batch"}
# By the name of a split: its column, where SQL reserves the name.
LABELS = {"system": "system_name"}
TRAIN, TEST = "train", "test"
# Share of the values, or problems, that a split tests; one at least.
TESTED = 0.2

# Parameters that an epoch on one PE, or on the PEs of one node, does not depend on.
BEYOND_ONE = tuple(
    name
    for name, place in PLACES.items()
    if name in INPUTS
    and (place.part in ("network", "software") or name == "phi")
    and name != "input_rate"
)
BEYOND_NODE = ("inter_bandwidth", "inter_latency", "startup", "rail", "flow")
# All that a problem is, but for the batch.
HASHED = (*FACTS, *(name for name in INPUTS if name != "batch"), *OUTER_LINKS, *SYSTEM, *MODEL)


@dataclass(frozen=True)
class Splits:
    """tested: values that are held out, by split and so by column. most: the largest value of an
    axis that is trained on, by split. missing: why a split cannot be, by name.
    """

    seed: int
    tested: Mapping[str, frozenset[str]] = field(default_factory=dict)
    most: Mapping[str, float] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """The splits that there are."""
        return tuple(name for name in SPLITS if name not in self.missing)

    def divide(self, columns: Mapping[str, NDArray[np.generic]]) -> dict[str, NDArray[np.str_]]:
        """The side [row] of each row, `train` or `test`, by split."""
        return {name: np.where(self._is_tested(name, columns), TEST, TRAIN) for name in self.names}

    def _is_tested(
        self, name: str, columns: Mapping[str, NDArray[np.generic]]
    ) -> NDArray[np.bool_]:
        if name == "random":
            return hash_problems(columns, self.seed) < TESTED
        if name in AXES:
            return np.asarray(columns[AXES[name]], float) > self.most[name]
        return np.isin(columns[LABELS.get(name, name)], list(self.tested[name]))


def choose_splits(space: Space, seed: int, required: Sequence[str] = ()) -> Splits:
    """The splits of a space, by the seed. InputError: a required one tests nothing."""
    for name in required:
        if name not in SPLITS:
            raise InputError(
                f"unknown split {shorten(name)}", where="splits", advice=suggest_name(name, SPLITS)
            )
    rng, families = np.random.default_rng([seed, 3]), _list_families(space.grid)
    tested: dict[str, frozenset[str]] = {}
    most: dict[str, float] = {}
    missing: dict[str, str] = {}
    for name in SPLITS[1:]:
        if name in AXES:
            bound = _find_most(space.drawn.get(AXES[name], space.tabled[AXES[name]]))
            most |= {} if bound is None else {name: bound}
        else:
            held = _hold_out(families[name], rng)
            tested |= {name: held} if held else {}
        if name not in most and name not in tested:
            missing[name] = f"{AXES.get(name, name)} has one value, and nothing is left to test"
    for name in required:
        if name in missing:
            raise InputError(
                missing[name],
                where=f"splits {name}",
                advice="give the spec another, or leave the split out",
            )
    others = {name: "not asked for" for name in SPLITS if required and name not in required}
    return Splits(seed, tested, most, missing | others)


def hash_problems(columns: Mapping[str, NDArray[np.generic]], seed: int) -> Floats:
    """A number in [0, 1) of each row [row]: the same where all that matters but strategy and batch
    is the same.
    """
    with np.errstate(over="ignore"):
        state = np.full(len(columns["pe"]), np.uint64(seed) * GOLDEN + GOLDEN, np.uint64)
        for values in keep_what_matters(columns).values():
            # Minus zero is zero.
            bits = (np.asarray(values, float) + 0.0).view(np.uint64)
            state = _mix(state ^ _mix(bits + GOLDEN))
    return np.asarray(state >> np.uint64(11), float) / 2.0**53


def keep_what_matters(columns: Mapping[str, NDArray[np.generic]]) -> dict[str, Floats]:
    """The features that make a problem [row]; 0 where nothing depends on one at its PE count."""
    pe = np.asarray(columns["pe"], float)
    alone, inside = pe == 1, pe <= np.asarray(columns["pes_per_node"], float)
    kept = {}
    for name in HASHED:
        values = np.asarray(columns[name], float)
        if name in BEYOND_ONE or name in OUTER_LINKS:
            values = np.where(alone, 0.0, values)
        if name in BEYOND_NODE or name in OUTER_LINKS:
            values = np.where(inside, 0.0, values)
        kept[name] = values
    return kept


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """splitmix64 (Steele, Lea, Flood 2014, "Fast splittable pseudorandom number generators")."""
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _list_families(grid: Grid) -> dict[str, dict[str, str]]:
    """The family of each label: settings of one machine, groups of one strategy go together."""
    return {
        "model": {model.name: model.name for model in grid.models},
        "system": {system.name: system.machine for system in grid.systems},
        "strategy": {strategy.label: strategy.base for strategy in grid.strategies},
    }


def _hold_out(families: Mapping[str, str], rng: np.random.Generator) -> frozenset[str]:
    """The labels of some families, none where there is but one."""
    names = sorted(set(families.values()))
    if len(names) < 2:
        return frozenset()
    count = max(1, round(TESTED * len(names)))
    held = set(rng.permutation(names)[:count])
    return frozenset(label for label, family in families.items() if family in held)


def _find_most(drawn: Range | Floats) -> float | None:
    """The value from which on values are tested; None where there is but one."""
    if isinstance(drawn, Range):
        bound = float(drawn.read_quantiles(np.array([1 - TESTED]))[0])
        return min(bound, drawn.high - 1) if drawn.whole else bound
    if drawn.size < 2:
        return None
    return float(drawn[min(drawn.size - 2, int((1 - TESTED) * drawn.size) - 1)])
