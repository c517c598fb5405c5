"""Answers of the oracle, and cases that come with theirs."""

from collections.abc import Mapping
from dataclasses import dataclass, field, make_dataclass
from typing import Any

import jax

from paradl.kernels.arrays import Cells, Limits
from paradl.kernels.configuration.case import Case, EpochLaw
from paradl.kernels.configuration.run import Run
from paradl.kernels.names.layout_terms import LAYOUT_TERMS

# A field for each of LAYOUT_TERMS. Before Python 3.12 its module must be stated: programs that are
# kept on disk name it.
LayoutTerms: Any = jax.tree_util.register_dataclass(
    make_dataclass(
        "LayoutTerms", list(LAYOUT_TERMS), namespace={"__module__": __name__}, frozen=True
    )
)


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Spread:
    """Standard deviations of the logarithms of compute, communication and total time."""

    compute: Cells
    communication: Cells
    total: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Answer:
    """The oracle's answer in every cell.

    terms, compute, communication [s per epoch], memory [B per PE], limit: flags. replicas: p1;
    group: p2; segments: S, 1 without segments; batch: b; global_batch: B; iterations: I per epoch.
    spread: of times; None if not requested. epochs: to the target; None without a law of epochs.
    epochs_spread, train_spread: of the logarithms of epochs and of the time to the target.
    """

    terms: Any
    compute: Cells
    communication: Cells
    memory: Cells
    limit: Limits
    replicas: Cells
    group: Cells
    segments: Cells
    batch: Cells
    global_batch: Cells
    iterations: Cells
    spread: Spread | None = None
    epochs: Cells | None = None
    epochs_spread: Cells | None = None
    train_spread: Cells | None = None

    @property
    def epoch_time(self) -> Cells:
        """Time of an epoch [s]."""
        return self.compute + self.communication

    @property
    def train_time(self) -> Cells:
        """Time to the target [s]; requires `epochs`."""
        assert self.epochs is not None  # a spec without a law has no such output
        return self.epoch_time * self.epochs


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayoutErrors:
    """Spreads of the logarithm of a layout's time: of any, and beside another of the same net."""

    spread: Cells
    rival: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class LayoutCase:
    """The case of layouts, with its answer: numpy has computed it, and nothing is compiled.

    columns: numbers of the layout of each cell, by the names of `kernels.layouts.transformer`.
    uncertainty: None where no spreads are asked for. slopes: elasticities by output.
    """

    answer: Answer
    run: Run
    columns: Mapping[str, Cells]
    uncertainty: LayoutErrors | None = None
    training: EpochLaw | None = None
    slopes: Mapping[str, Cells] = field(default_factory=dict)
    # What `best` leaves open has been chosen.
    choices: tuple[str, ...] = field(default=(), metadata={"static": True})


AnyCase = Case | LayoutCase
