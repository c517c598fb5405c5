"""Calibrations: what measured runs of a machine tell, in the catalogue or a user's file.

Parameters are factors on what the system states, or times [s], with the spread of their logarithm;
they enter the terms of `kernels.calibrated`. `paradl calibrate` writes such files.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Self

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from grids.entries.entry import Count, Entry, Name, Record
from grids.entries.oracles import OracleName
from grids.reading.errors import shorten, suggest_name

if TYPE_CHECKING:
    from kernels.calibration import Calibration

# Of a logarithm: 0.1 is about 10 %, and 10, a factor of 22,000, says nothing at all.
Spread = Annotated[float, Field(ge=0.0, le=10.0)]
# Far beyond the bounds of every prior, and products of all of them are still numbers.
Above0 = Annotated[float, Field(ge=1e-15, le=1e15)]
# A fit's own may be beyond 1 by rounding.
Correlation = Annotated[float, Field(ge=-1.001, le=1.001)]
Figure = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True)
class Prior:
    """A parameter before any run: log-normal, cut off at its bounds."""

    median: float  # [unit], and so are the bounds
    spread: float  # of the logarithm: 0.7 is a factor of two either way
    low: float
    high: float
    unit: str
    meaning: str


# In the order of `kernels.calibration.Calibration`. Medians are the system's own figures where it
# states one (a factor of 1), and otherwise round numbers of the size that such things have.
PRIORS = {
    "elementwise_passes": Prior(3, 0.2, 0.5, 12, "1", "memory passes of an elementwise layer"),
    "layer_overhead": Prior(1e-4, 0.7, 1e-6, 2e-3, "s", "fixed time of a layer"),
    "assembly": Prior(1 / 30, 1.0, 1e-3, 1.2, "1", "assembling activations, of memory bandwidth"),
    "chunk_overhead": Prior(3e-5, 1.0, 1e-7, 2e-3, "s", "one peer's part of a collective"),
    "packing": Prior(0.75, 0.7, 0.03, 60, "1", "copying gradients, of the staging bandwidth"),
    "large_message": Prior(1 / 16, 1.0, 3e-3, 1.25, "1", "large messages, of staging bandwidth"),
    "node_reduce": Prior(0.6, 1.0, 0.02, 6, "1", "gradient all-reduce in a node, of bandwidth"),
    "reduce": Prior(0.64, 0.7, 0.04, 8, "1", "gradient all-reduce between nodes, of bandwidth"),
    "reduce_latency": Prior(1.0, 0.25, 0.12, 25, "1", "start-up between nodes, of latency"),
    "node_collective": Prior(1.0, 1.0, 0.02, 6, "1", "layer collectives in a node, of bandwidth"),
    "collective": Prior(1.0, 1.0, 0.04, 16, "1", "layer collectives between nodes, of bandwidth"),
    "halo_latency": Prior(1.0, 0.7, 3e-3, 7, "1", "start-up of a halo message, of staging's"),
    "contention": Prior(1.0, 0.12, 0.5, 4, "1", "contention of a hybrid's rings, of phi"),
    "congestion": Prior(0.3, 0.3, 1e-3, 3, "1", "growth of communication by peers elsewhere"),
}


class Parameter(Record):
    """A fitted value, the spread of its logarithm, and whether the runs say more than the prior."""

    value: Above0
    spread: Spread
    determined: bool = True


class SerialTime(Record):
    """Time on one PE: of what the model's profile, or the roofline, says."""

    factor: Above0
    spread: Spread


class ModelError(Record):
    """Spread of the logarithm of what remains unexplained, of runs like those that were fitted.

    serial, group: compute of whole and of divided models. reduce, exchange: gradients, and what
    goes on inside groups. unseen, distance: how much wider for a series that was not fitted, and
    for each factor of two from its nearest PE count.
    """

    serial: Spread
    group: Spread
    reduce: Spread
    exchange: Spread
    unseen: Spread
    distance: Spread


class Series(Record):
    """Runs that were fitted: one model and strategy at several scales."""

    model: Name
    dataset: Name
    strategy: Name
    pe: tuple[Count, ...]
    batch: tuple[Count, ...]


class CalibrationFile(Entry):
    """A machine, calibrated."""

    system: Name
    # Files that name no oracle were made when there was one alone.
    oracle: OracleName = "paper"
    parameters: Mapping[str, Parameter]
    # The lower triangle, which a person can read, rows in the order of PRIORS; none: independent.
    correlation: tuple[tuple[Correlation, ...], ...] = ()
    serial: Mapping[str, SerialTime] = Field(default_factory=dict)
    # Of a model that no run tells of: a profile was measured with other software, on another day,
    # and a roofline knows no layer's efficiency.
    profile_spread: Spread = 0.15
    roofline_spread: Spread = 0.5
    error: ModelError
    series: tuple[Series, ...] = ()
    accuracy: Mapping[str, dict[str, Figure]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        """The calibration, if it has all parameters and no others."""
        for name in self.parameters:
            if name not in PRIORS:
                raise ValueError(f"unknown parameter {shorten(name)}; {suggest_name(name, PRIORS)}")
        # No default stands in: a factor of 1 would be a claim that nobody measured.
        missing = [name for name in PRIORS if name not in self.parameters]
        if missing:
            raise ValueError(f"parameters: expected {missing[0]!r}, which is missing")
        rows = [len(row) for row in self.correlation]
        if rows not in ([], list(range(1, len(PRIORS) + 1))):
            raise ValueError(
                f"correlation: expected a lower triangle of {len(PRIORS)} rows, "
                f"got rows of {shorten(rows)}"
            )
        return self

    @property
    def covariance(self) -> NDArray[np.float64]:
        """Covariance of the parameters' logarithms [n, n], in the order of PRIORS."""
        size = len(PRIORS)
        correlations = np.eye(size)
        for row, values in enumerate(self.correlation):
            correlations[row, : row + 1] = correlations[: row + 1, row] = values
        spreads = np.array([self.parameters[name].spread for name in PRIORS])
        return np.asarray(correlations * spreads * spreads[:, None])

    def make_calibration(self) -> "Calibration":
        """The parameters as the kernels take them."""
        from kernels.calibration import Calibration  # late: JAX comes with it

        return Calibration(**{name: self.parameters[name].value for name in PRIORS})

    def serial_time(self, model: str, measured: bool) -> SerialTime:
        """How a model's time on one PE differs from its profile's, or the roofline's."""
        spread = self.profile_spread if measured else self.roofline_spread
        return self.serial.get(model, SerialTime(factor=1.0, spread=spread))
