"""Split rows into training and test sides that leak nothing, by construction.

`random` divides problems, not rows: it hashes all that matters except strategy and batch, so rows
that differ in nothing else are on the same side. `model`, `system` and `strategy` hold out whole
values, `scale` and `size` the largest PE counts and batches.

To add one: a row of `SPLITS` and how it divides rows, here; how to check that, in
`sweep.samples.leakage`. Test: tests/sweep/samples/test_splits.py.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from paradl.grids.axes import Range
from paradl.grids.reading.errors import InputError
from paradl.kernels.configuration.places import PLACES
from paradl.kernels.names.arrays import Flags, Floats
from paradl.sweep.samples.features import FACTS, INPUTS, OUTER_LINKS, SYSTEM
from paradl.sweep.samples.model_features import MODEL

if TYPE_CHECKING:
    from paradl.sweep.samples.space import SampleSpace

# How each split divides rows.
SPLITS = {
    "random": "by a hash of the problem (everything but strategy and batch)",
    **{axis: f"by whole values of {axis}" for axis in ("model", "system", "strategy")},
    "scale": "the largest values of pe are tested",
    "size": "the largest values of batch are tested",
}
# Axes whose largest values are tested, by split.
AXES = {"scale": "pe", "size": "batch"}
TRAIN, TEST = "train", "test"
# Share of the values, or problems, that a split tests; at least one.
TESTED = 0.2

# Parameters that do not matter on one PE, or inside one node.
BEYOND_ONE = {
    name
    for name, place in PLACES.items()
    if name in INPUTS
    and (place.part in ("network", "software") or name == "phi")
    and name != "input_rate"
}.union(OUTER_LINKS)
BEYOND_NODE = {"inter_bandwidth", "inter_latency", "startup", "rail", "flow"}.union(OUTER_LINKS)
# All features of a problem except for the batch.
HASHED = (*FACTS, *(name for name in INPUTS if name != "batch"), *OUTER_LINKS, *SYSTEM, *MODEL)

Rows = Mapping[str, NDArray[Any]]


def name_label(dim: str) -> str:
    """Name the column of a labelled dimension; SYSTEM is a reserved word of SQL."""
    return "system_name" if dim == "system" else dim


def name_split(split: str) -> str:
    """Name the column of a split."""
    return f"split_{split}"


@dataclass(frozen=True)
class Splits:
    """The division of rows by each split.

    tested: held-out labels by split. most: largest training value of the axis by split. missing:
    why a split is impossible, or that it was not requested, by split.
    """

    seed: int
    tested: Mapping[str, frozenset[str]]
    most: Mapping[str, float]
    missing: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the splits."""
        return tuple(name for name in SPLITS if name not in self.missing)

    def divide(self, rows: Rows) -> dict[str, NDArray[np.str_]]:
        """Return a column per split: the side of each row, `train` or `test`."""
        return {
            name_split(name): np.where(self._is_tested(name, rows), TEST, TRAIN)
            for name in self.names
        }

    def _is_tested(self, name: str, rows: Rows) -> Flags:
        if name == "random":
            return hash_problems(rows, self.seed) < TESTED
        if name in AXES:
            return np.asarray(rows[AXES[name]], float) > self.most[name]
        return np.isin(rows[name_label(name)], list(self.tested[name]))


def choose_splits(space: "SampleSpace", seed: int, required: Sequence[str] = ()) -> Splits:
    """Choose what each split tests, by the seed. InputError: a required split tests nothing."""
    for name in required:
        if name not in SPLITS:
            raise InputError.unknown("split", name, SPLITS, where="splits")
    grid, rng = space.grid, np.random.default_rng([seed, 3])
    # Settings of one machine are held out together, and so are groups of one strategy.
    families = {
        "model": {model.name: model.name for model in grid.models},
        "system": {system.name: system.machine for system in grid.systems},
        "strategy": {strategy.label: strategy.base for strategy in grid.strategies},
    }
    tested = {name: _hold_out(labels, rng) for name, labels in families.items()}
    laws = space.tabled | space.drawn
    most = {name: _choose_bound(laws[axis]) for name, axis in AXES.items()}
    missing = {
        name: f"{AXES.get(name, name)} has only one value, so nothing is left to test"
        for name, chosen in {**tested, **most}.items()
        if chosen in (None, frozenset())
    }
    for name in required:
        if name in missing:
            raise InputError(
                missing[name],
                where=f"splits {name}",
                advice="add a value to the spec, or omit the split",
            )
    missing |= {name: "not requested" for name in SPLITS if required and name not in required}
    bounds = {name: bound for name, bound in most.items() if bound is not None}
    return Splits(seed, {name: held for name, held in tested.items() if held}, bounds, missing)


def hash_problems(rows: Rows, seed: int) -> Floats:
    """Hash rows to [0, 1) [row]; rows that differ only in strategy and batch are equal."""
    with np.errstate(over="ignore"):
        state = np.full(len(rows["pe"]), np.uint64(seed) * GOLDEN + GOLDEN, np.uint64)
        for name in HASHED:
            values = np.asarray(rows[name], float)
            # A feature that does not matter at the PE count is 0.
            if name in BEYOND_ONE:
                values = np.where(rows["pe"] == 1, 0.0, values)
            if name in BEYOND_NODE:
                values = np.where(rows["pe"] <= rows["pes_per_node"], 0.0, values)
            # Adding 0 turns minus zero into zero, which has other bits.
            bits = (values + 0.0).view(np.uint64)
            state = _mix(state ^ _mix(bits + GOLDEN))
    return np.asarray(state >> np.uint64(11), float) / 2.0**53


GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mix(bits: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Mix bits by splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
    2014).
    """
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(bits ^ (bits >> np.uint64(31)))


def _hold_out(families: Mapping[str, str], rng: np.random.Generator) -> frozenset[str]:
    """Choose families to hold out and return their labels; none if there is only one family."""
    names = sorted(set(families.values()))
    if len(names) < 2:
        return frozenset()
    count = max(1, round(TESTED * len(names)))
    held = set(rng.permutation(names)[:count])
    return frozenset(label for label, family in families.items() if family in held)


def _choose_bound(law: Range | Floats) -> float | None:
    """Return the largest value to train on; None if there is only one value."""
    if isinstance(law, Range):
        bound = float(law.read_quantiles(np.array([1 - TESTED]))[0])
        return min(bound, law.high - 1) if law.whole else bound
    if law.size < 2:
        return None
    return float(law[min(law.size - 2, int((1 - TESTED) * law.size) - 1)])
