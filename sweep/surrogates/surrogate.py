"""A surrogate: an encoding and learners, which answers for rows of features."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from pydantic import BaseModel, Field

from grids.models.layers import Floats
from grids.reading.errors import InputError
from kernels.blocks.labels import TARGETS
from sweep.samples.features import FEATURES
from sweep.surrogates.encoding import Encoding, Flags, Singles, read_values
from sweep.surrogates.extra import expect_extra
from sweep.surrogates.file import Arrays, Saved, read_file, write_file
from sweep.surrogates.rows import DEGREES, ROOM, read_kinds, read_room

if TYPE_CHECKING:
    import pandas as pd

Learner = Literal["network", "trees"]
# Logarithms are cut there: predictions far outside of the training range stay finite.
FAR = 80.0
NUMBERS = ("offset", "mean", "scale", "low", "high")


@dataclass(frozen=True, eq=False)
class Predictions:
    """Predictions for rows [row]: seconds an epoch, bytes a PE, the chance of being feasible.

    spread: standard deviation of the logarithm of an epoch's time between the members of an
    ensemble, NaN of one alone.
    """

    comp_time: Floats
    comm_time: Floats
    memory: Floats
    chance: Floats
    spread: Floats

    @property
    def epoch_time(self) -> Floats:
        """Seconds an epoch."""
        return self.comp_time + self.comm_time

    @property
    def feasible(self) -> Flags:
        """Whether it is rather so than not."""
        return np.asarray(self.chance >= 0.5)


@dataclass(frozen=True, eq=False)
class Surrogate:
    """learner: what its members are. facts: what it was trained on, and how."""

    learner: Learner
    encoding: Encoding
    members: tuple[Any, ...]
    facts: Mapping[str, Any]

    def apply(self, frame: "pd.DataFrame") -> Predictions:
        """Predictions for rows of features. InputError: a feature is missing or no number."""
        read_values(frame, (*DEGREES, ROOM))
        features = self.encoding.encode(read_values(frame, self.encoding.names))
        outputs = np.stack([self._apply_member(member, features, frame) for member in self.members])
        return read_outputs(outputs.astype(np.float64))

    def _apply_member(self, member: Any, features: Singles, frame: "pd.DataFrame") -> Singles:
        if self.learner == "trees":
            from sweep.surrogates.trees import apply_forests

            return apply_forests(member, features)
        from sweep.surrogates.fit import apply_network

        arrays = {"features": features, "kinds": read_kinds(frame), "room": read_room(frame)}
        return apply_network(member, arrays)


def read_outputs(outputs: Floats) -> Predictions:
    """Predictions from the members' outputs [member, row, 4]: means of logarithms and chances."""
    outputs = np.clip(outputs, -FAR, FAR)
    logs = outputs[..., : len(TARGETS)].mean(axis=0)
    epochs = np.logaddexp(outputs[..., 0], outputs[..., 1])
    spread = epochs.std(axis=0, ddof=1) if len(outputs) > 1 else np.full(len(logs), np.nan)
    chance = (1 / (1 + np.exp(-outputs[..., -1]))).mean(axis=0)
    comp, comm, memory = np.exp(logs.T)
    return Predictions(comp, comm, memory, chance, spread)


def save_surrogate(surrogate: Surrogate, path: Path, *, force: bool) -> None:
    """Write it to a file. InputError: one is there. RunError: the disk is full."""
    encoding = surrogate.encoding
    arrays: Arrays = {f"encoding.{name}": getattr(encoding, name) for name in NUMBERS}
    for number, member in enumerate(surrogate.members):
        arrays |= {f"{number}.{name}": array for name, array in _flatten(surrogate, member).items()}
    facts = {
        **surrogate.facts,
        "learner": surrogate.learner,
        "members": len(surrogate.members),
        "features": list(encoding.names),
        "constants": dict(encoding.constants),
    }
    write_file(path, Saved(facts, arrays), force=force)


def load_surrogate(path: str | Path) -> Surrogate:
    """The surrogate in a file that `train` wrote; nothing in it is run.

    InputError: no file, a damaged one, one of another version. RunError: a library is missing.
    """
    expect_extra()
    place = Path(path)
    saved = read_file(place)
    try:
        return _build(saved)
    # OverflowError: a number of a thousand digits.
    except (KeyError, ValueError, TypeError, AttributeError, IndexError, OverflowError) as error:
        raise InputError(
            f"a damaged surrogate ({type(error).__name__})",
            where=str(place),
            advice="train it again with 'paradl surrogate train'",
        ) from error


def _flatten(surrogate: Surrogate, member: Any) -> Arrays:
    if surrogate.learner == "trees":
        from sweep.surrogates.trees import flatten_forests

        return flatten_forests(member)
    from sweep.surrogates.network import flatten_network

    return {name: np.asarray(array) for name, array in flatten_network(member).items()}


class _Facts(BaseModel):
    """The facts that an answer rests on; others stand beside them."""

    learner: Learner
    members: int = Field(ge=1, le=1000)
    features: list[str] = Field(min_length=1)
    constants: dict[str, float]
    splits: list[str]
    splits_of_data: dict[str, dict[str, Any]]
    data_seed: int


def _build(saved: Saved) -> Surrogate:
    """ValueError and its like: facts and arrays that do not belong together."""
    facts = _Facts.model_validate(saved.facts)
    if not {*facts.features, *facts.constants} <= set(FEATURES):
        raise ValueError("features that this paradl does not know")
    if not set(facts.splits) <= set(facts.splits_of_data):
        raise ValueError("splits that it does not describe")
    numbers = {name: np.asarray(saved.arrays[f"encoding.{name}"], float) for name in NUMBERS}
    sizes = {array.shape for array in numbers.values()}
    if sizes != {(len(facts.features),)} or (numbers["scale"] <= 0).any():
        raise ValueError("another number of features")
    encoding = Encoding(names=tuple(facts.features), constants=facts.constants, **numbers)
    members = tuple(
        _build_member(facts.learner, _take(saved.arrays, number), len(facts.features))
        for number in range(facts.members)
    )
    return Surrogate(facts.learner, encoding, members, saved.facts)


def _take(arrays: Arrays, number: int) -> Arrays:
    """The arrays of one member."""
    start = f"{number}."
    return {name[len(start) :]: array for name, array in arrays.items() if name.startswith(start)}


def _build_member(learner: Learner, arrays: Arrays, features: int) -> Any:
    if learner == "trees":
        from sweep.surrogates.trees import build_forests

        return build_forests(arrays, features)
    from sweep.surrogates.network import build_network

    network = build_network(arrays)
    network.check(features, len(DEGREES))
    return network
