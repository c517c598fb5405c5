"""An entry of convergence: how many epochs a model needs on a data set, by global batch.

Measured points and the law fitted to them (grids/convergence/fit.py), or a law that somebody
states. Its definition makes the same law again, without a fit.
"""

from typing import Annotated, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from grids.entries.entry import Count, Entry, Name, Record, refuse_bool
from grids.models.layers import Floats
from kernels.configuration.convergence import Law

# Error of a stated law: runs at up to twice the largest batch of a fit are as far from it (root
# mean square of 21, `python -m benchmarks convergence`).
STATED_ERROR = 0.1

Pair = tuple[str, str]  # labels of a model and a data set

Positive = Annotated[float, BeforeValidator(refuse_bool), Field(gt=0, allow_inf_nan=False)]
Variance = Annotated[float, Field(ge=0, le=100.0)]  # of a logarithm


class Point(Record):
    """Epochs to the target at a global batch."""

    global_batch: Count
    epochs: Positive


class Convergence(Entry):
    """Epochs to a target accuracy as a law of the global batch.

    critical_batch: None where the epochs are the same whatever the batch. converges_to: the
    largest batch known to reach the target, where a larger one is known not to.

    >>> stated = Convergence(
    ...     name="mine", model="resnet50", dataset="imagenet", target="top1>=0.759",
    ...     epochs_min=35, critical_batch=47_000,
    ... )
    >>> kernels.configuration.convergence.count_epochs(stated.law, 47_000)
    70.0
    """

    model: Name
    dataset: Name
    target: Name
    optimizer: str = ""
    epochs_min: Positive
    critical_batch: Positive | None = None  # [samples]
    # As kernels/configuration/convergence.py has them.
    epochs_variance: Variance = 0.0
    covariance: Annotated[float, Field(ge=-100.0, le=100.0)] = 0.0
    batch_variance: Variance = 0.0
    error: Annotated[float, Field(ge=0, le=10.0)] = STATED_ERROR
    points: tuple[Point, ...] = ()
    converges_to: Count | None = None
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        """The entry, if its points rise in batch and its covariance is possible."""
        batches = [point.global_batch for point in self.points]
        if batches != sorted(set(batches)):
            raise ValueError("points: expected each global_batch once, in rising order")
        most = (self.epochs_variance * self.batch_variance) ** 0.5
        if abs(self.covariance) > most * 1.001:  # by rounding
            raise ValueError(
                f"covariance: expected at most {most:.3g} in size, the root of both variances' "
                f"product, got {self.covariance:.3g}"
            )
        return self

    @property
    def law(self) -> Law:
        """The law as the kernels take it, with an infinite critical batch where it has none."""
        return Law(
            epochs_min=self.epochs_min,
            critical_batch=self.critical_batch or np.inf,
            epochs_variance=self.epochs_variance,
            covariance=self.covariance,
            batch_variance=self.batch_variance,
            error=self.error,
        )

    @property
    def smallest(self) -> int | None:
        """The smallest measured batch, None of a law without points."""
        return self.points[0].global_batch if self.points else None

    @property
    def largest(self) -> int | None:
        """The largest measured batch, None of a law without points."""
        return self.points[-1].global_batch if self.points else None

    def is_extrapolated(self, global_batch: int) -> bool:
        """True if a batch lies outside the measured ones; false without points."""
        return bool(self.points) and not (
            self.points[0].global_batch <= global_batch <= self.points[-1].global_batch
        )

    def draw_laws(self, normals: Floats) -> Law:
        """Laws [draw] from uncorrelated normal numbers [draw, 2], such as draw_normals gives.

        Batches of one draw err together: ratios of epochs are known better than epochs. The
        error of single runs is left to whoever compares with some.
        """
        matrix = [[self.epochs_variance, self.covariance], [self.covariance, self.batch_variance]]
        variances, axes = np.linalg.eigh(np.array(matrix))
        # Rounding may take the least variance below 0.
        logs = normals @ (axes * np.sqrt(np.maximum(variances, 0))).T
        law = self.law
        return Law(
            epochs_min=law.epochs_min * np.exp(logs[:, 0]),
            critical_batch=law.critical_batch * np.exp(logs[:, 1]),
            error=law.error,
        )
