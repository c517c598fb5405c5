"""Entry of convergence: epochs that a model needs on a data set, by global batch.

It holds measured points and their fitted law (grids/convergence/fit.py), or a stated law. Its
definition restores the law without a fit. Between measured batches, straight lines between the
points predict a left-out point better than the law (docs/convergence.md).
"""

from collections.abc import Iterable
from typing import Annotated, Self

import numpy as np
from pydantic import BeforeValidator, Field, model_validator

from paradl.grids.entries.entry import Count, Entry, Name, Record, refuse_bool
from paradl.kernels.configuration.convergence import Curve, Law, count_epochs, follow_curve
from paradl.kernels.names.arrays import Floats

# Error of a stated law: runs at up to twice the largest batch of a fit deviate by this much (root
# mean square of 21, `python -m benchmarks convergence`).
STATED_ERROR = 0.1

Pair = tuple[str, str]  # labels of a model and a data set

Positive = Annotated[float, Field(gt=0, allow_inf_nan=False), BeforeValidator(refuse_bool)]
Variance = Annotated[float, Field(ge=0, le=100.0)]  # of a logarithm


class Point(Record):
    """Epochs to the target at a global batch.

    global_batch: samples of an iteration. epochs: until the target.
    """

    global_batch: Count
    epochs: Positive


class Convergence(Entry):
    """Epochs to a target accuracy as a law of the global batch.

    optimizer: its name. epochs_min: epochs of small batches. critical_batch: samples of the batch
    that doubles them; none if epochs do not depend on it. epochs_variance, covariance,
    batch_variance: of the logarithms of these two (kernels/configuration/convergence.py). error:
    spread of single runs' logarithms. points: measured ones. converges_to: the largest batch known
    to reach the target, if a larger one is known to fail. warnings: what to tell of it.

    >>> stated = Convergence(
    ...     name="mine", model="resnet50", dataset="imagenet", target="top1>=0.759",
    ...     epochs_min=35, critical_batch=47_000,
    ... )
    >>> paradl.kernels.configuration.convergence.count_epochs(stated.law, 47_000)
    70.0
    """

    model: Name
    dataset: Name
    target: Name
    optimizer: str = ""
    epochs_min: Positive
    critical_batch: Positive | None = None
    epochs_variance: Variance = 0.0
    covariance: Annotated[float, Field(ge=-100.0, le=100.0)] = 0.0
    batch_variance: Variance = 0.0
    error: Annotated[float, Field(ge=0, le=10.0)] = STATED_ERROR
    points: tuple[Point, ...] = ()
    converges_to: Count | None = None
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _check(self) -> Self:
        """Check that points rise in batch and the covariance is possible."""
        batches = [point.global_batch for point in self.points]
        if batches != sorted(set(batches)):
            raise ValueError("points: expected each global_batch once, in rising order")
        most = (self.epochs_variance * self.batch_variance) ** 0.5
        if abs(self.covariance) > most * 1.001:  # allows for rounding
            raise ValueError(
                f"covariance: expected at most {most:.3g} in size, the root of the product of both "
                f"variances, got {self.covariance:.3g}"
            )
        return self

    @property
    def law(self) -> Law:
        """The law for the kernels; the critical batch is infinite if there is none."""
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
        """The smallest measured batch; None without points."""
        return self.points[0].global_batch if self.points else None

    @property
    def largest(self) -> int | None:
        """The largest measured batch; None without points."""
        return self.points[-1].global_batch if self.points else None

    def is_extrapolated(self, global_batch: int) -> bool:
        """True if a batch is outside the measured range; False without points."""
        return bool(self.points) and not (
            self.points[0].global_batch <= global_batch <= self.points[-1].global_batch
        )

    def draw_laws(self, normals: Floats) -> Law:
        """Draw laws [draw] from uncorrelated standard normals [draw, 2], as draw_normals returns.

        All batches of a draw share its error, so ratios of epochs are more certain than epochs. The
        error of single runs is not included.
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


def state_epochs(epochs: float, pairs: Iterable[Pair]) -> dict[Pair, Convergence]:
    """Laws by which each model trains for the same epochs on its data set, whatever the batch."""
    stated = {"name": "stated", "target": f"{epochs:g} epochs", "epochs_min": epochs, "error": 0.0}
    return {
        (model, dataset): Convergence.model_validate(stated | {"model": model, "dataset": dataset})
        for model, dataset in pairs
    }


def find_epochs(convergence: Convergence, global_batch: Floats) -> Floats:
    """Epochs at batches [...], interpolated; NaN above the largest batch that converges."""
    epochs = interpolate_epochs(convergence, global_batch)
    never: Floats = np.where(global_batch > (convergence.converges_to or np.inf), np.nan, epochs)
    return never


def interpolate_epochs(convergence: Convergence, global_batch: Floats) -> Floats:
    """Epochs at batches [...], on lines through the points that never fall despite noise.

    Outside the measured batches they follow the law, scaled to the first or last point; without
    points they are the law.
    """
    epochs: Floats = np.asarray(follow_curve(draw_curve(convergence), global_batch), float)
    return epochs


def draw_curve(convergence: Convergence) -> Curve:
    """Return the same epochs as a curve of lines; the law is one: E_min + (E_min / B_c) B."""
    law, points = convergence.law, convergence.points
    rise = law.epochs_min / law.critical_batch
    if not points:
        return Curve(law.epochs_min, rise, np.empty(0), np.empty(0))
    from scipy.optimize import isotonic_regression  # 0.6 s to import

    batches = np.array([point.global_batch for point in points], float)
    epochs = isotonic_regression([point.epochs for point in points]).x
    # Outside, the law is scaled to meet the first and the last point.
    first, last = (
        epochs[end] / count_epochs(law, batches[end]) * np.array([law.epochs_min, rise])
        for end in (0, -1)
    )
    slopes = [first[1], *(np.diff(epochs) / np.diff(batches)), last[1]]
    return Curve(float(first[0]), float(first[1]), batches, np.diff(slopes))
