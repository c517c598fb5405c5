"""Answers of the oracle."""

from typing import Any

from paradl.kernels.arrays import Cells, Limits, pytree


@pytree
class Spread:
    """Standard deviations of the logarithms of compute, communication and total time."""

    compute: Cells
    communication: Cells
    total: Cells


@pytree
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
    def objective(self) -> Cells:
        """Time that choices minimise [s]: to the target, if there is a law of epochs."""
        return self.epoch_time if self.epochs is None else self.train_time

    @property
    def train_time(self) -> Cells:
        """Time to the target [s]; requires `epochs`."""
        assert self.epochs is not None  # a spec without a law has no such output
        return self.epoch_time * self.epochs
