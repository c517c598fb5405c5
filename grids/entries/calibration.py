"""Calibrations: what measured runs say about a machine, in the catalogue or a user's file.

Parameters are rows of grids/entries/parameters.py; runs narrow their priors to a value and a
spread. A calibration is for one machine, precision and software. `paradl calibrate` writes it.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Self

import numpy as np
from pydantic import Field, model_validator

from paradl.grids.entries.entry import Count, Entry, Name, Record, Sources
from paradl.grids.entries.parameters import KNOWN, PARAMETERS
from paradl.grids.entries.precision import AnyPrecision, PrecisionName
from paradl.grids.entries.quantity import Parameter
from paradl.grids.entries.software import (
    SOFTWARE,
    AnySoftware,
    SoftwareName,
    Switches,
    write_trained,
)
from paradl.grids.entries.systems import System
from paradl.grids.reading.errors import InputError, shorten
from paradl.kernels.names.arrays import Floats
from paradl.kernels.options import OracleName

# Of a logarithm: 0.1 is about 10 %; 10, a factor of 22,000, means unknown.
Spread = Annotated[float, Field(ge=0.0, le=10.0)]
# Far beyond the bounds of any prior, but products of all of them stay finite.
Above0 = Annotated[float, Field(ge=1e-15, le=1e15)]
ROUNDING = 0.001  # by which a fit's correlations may exceed 1
Correlation = Annotated[float, Field(ge=-1 - ROUNDING, le=1 + ROUNDING)]
Figure = Annotated[float, Field(allow_inf_nan=False)]

# The parameters that a calibration fits. Others keep their priors, since runs on ABCI do not
# constrain them (docs/accuracy.md, What each parameter adds).
CALIBRATED = (
    "layer_overhead",
    "rail",
    "flow",
    "node_collective",
    "assembly",
    "part_overhead",
    "halo_startup",
    "packing",
    "large_message",
    "host_jitter",
    "gather_rate",
    "log_open",
)
# Those of layouts that priors or runs leave open, but for memory, on which no time depends.
DRAWN_OF_BLOCKS = tuple(name for name in KNOWN if PARAMETERS[name].prior and name != "reserved")
# Parameters of earlier versions' files.
FORMER = ("layer_wait", "jitter", "node_reduce")
# Parameters of the path through host memory, which few machines have.
STAGED = ("halo_startup", "packing", "large_message", "host_jitter", "gather_rate")
DETERMINED = 0.5  # of the prior's spread: with less, the runs and not the prior set the value
# Replaces a bound of 0 s, which has no logarithm.
LEAST = 1e-9


@dataclass(frozen=True)
class LogPrior:
    """A parameter before any run: log-normal, truncated at its bounds."""

    median: float  # [unit], and so are the bounds
    spread: float
    low: float
    high: float
    row: Parameter


def list_priors(
    precision: PrecisionName, software: SoftwareName, staged: bool = True
) -> dict[str, LogPrior]:
    """Return the priors of the parameters that a calibration fits, by name.

    Those that the software fixes are left out, and without `staged` those of the path through host
    memory.
    """
    known = SOFTWARE[software]
    priors = {}
    for name in CALIBRATED:
        if name in known.settled or (name in STAGED and not staged):
            continue
        row = PARAMETERS[name]
        assert row.prior is not None  # a parameter of the machine oracle
        median, low = row.prior.median[precision], max(row.low, LEAST)
        high = row.high if math.isfinite(row.high) else 1 / LEAST
        median = known.parameters.get(name, median)
        priors[name] = LogPrior(median, row.prior.spread[precision], low, high, row)
    return priors


class FittedParameter(Record):
    """A fitted value.

    value: a factor, or seconds. spread: of its logarithm. determined: whether the runs did so.
    """

    value: Above0
    spread: Spread
    determined: bool = True


class SerialTime(Record):
    """Time on one PE.

    factor: on the model's profile or the roofline. spread: of its logarithm.
    """

    factor: Above0
    spread: Spread


class ModelError(Record):
    """Unexplained spread of the logarithm, for runs like the fitted ones."""

    serial: Spread = Field(description="Compute of whole models.")
    group: Spread = Field(description="Compute of divided models.")
    reduce: Spread = Field(description="Exchange of gradients.")
    exchange: Spread = Field(description="All other communication.")
    unseen: Spread = Field(description="Relative widening for a series that was not fitted.")
    distance: Spread = Field(
        description="Relative widening per factor of two from the nearest fitted number of PEs."
    )


# A machine whose error no left-out run says: medians of the priors in `sweep.calibration`.
ASSUMED = ModelError(serial=0.04, group=0.12, reduce=0.12, exchange=0.2, unseen=0.7, distance=0.2)


class LayoutTime(Record):
    """Times of transformers' layouts, beside those by rates that hold for any machine.

    factor: on all times. parameters: factors on parameters, by name. runs: their number. scatter:
    of the runs beside these, over the spread that was expected. formulas: the version of the
    formulas that they were fitted with.
    """

    factor: Above0
    parameters: dict[Name, Above0] = Field(default_factory=dict)
    runs: Count
    scatter: Above0 = 1.0
    formulas: Count = 1


class FittedSeries(Record):
    """Fitted runs of one model and strategy at several scales.

    pe: the numbers of PEs. batch: samples per replica.
    """

    model: Name
    dataset: Name
    strategy: Name
    pe: tuple[Count, ...]
    batch: tuple[Count, ...]


class CalibrationFile(Entry):
    """A calibrated machine, in one precision and with one software.

    `paradl calibrate` writes the descriptions above the values. oracle: which it was fitted with.
    software: that of the runs. switches: settings of that software. roofline_factor: as
    profile_factor, of the roofline. profile_spread, roofline_spread: of single models around them.
    """

    name: Name
    title: str = ""
    source: Sources = ()
    system: Name
    # Files without an oracle are from the time when there was only Table III's.
    oracle: OracleName = "paper"
    precision: AnyPrecision = "fp32"
    software: AnySoftware = "ddp"
    switches: Switches | None = None
    parameters: Mapping[str, FittedParameter] = Field(
        default_factory=dict,
        description="Factors on what the system states, or times [s]. In brackets: the prior's "
        "median and spread. determined: false if the runs do not halve that spread, so that the "
        "value is mostly the prior's.",
    )
    correlation: tuple[tuple[Correlation, ...], ...] = Field(
        default=(),
        description="Of the parameters' logarithms in that order, as a lower triangle; without it "
        "they are independent.",
    )
    serial: Mapping[str, SerialTime] = Field(
        default_factory=dict,
        description="Time on one PE, relative to the model's profile (or the roofline).",
    )
    architectures: Mapping[str, Name] = Field(
        default_factory=dict,
        description="Fingerprints of the fitted networks; a network of the same name but another "
        "fingerprint counts as not fitted. Without them, names decide.",
    )
    profile_factor: Above0 = Field(
        default=1.0,
        description="For other models: factor of the machine's time on a profile's, or on the "
        "roofline's, and the spread of single models around it.",
    )
    roofline_factor: Above0 = 1.0
    profile_spread: Spread = 0.15
    roofline_spread: Spread = 0.5
    unseen_spread: Spread | None = Field(
        default=None,
        description="For other models: spread of all computing beyond that, if models that were "
        "left out of the fit erred by more.",
    )
    error: ModelError = Field(
        default=ASSUMED,
        description="What the formulas leave unexplained in runs that were not fitted.",
    )
    layouts: LayoutTime | None = Field(
        default=None,
        description="Layouts of transformers: measured times over those by rates of any machine "
        "(factor), and by what parameters differ from their priors; the number of runs that say "
        "so, and how far these scatter, over what was expected.",
    )
    series: tuple[FittedSeries, ...] = Field(
        default=(), description="The fitted runs; beyond them a prediction is an extrapolation."
    )
    layers: tuple[Name, ...] = Field(
        default=(), description="Kinds of multiplying layers in the fitted networks."
    )
    accuracy: Mapping[str, dict[str, Figure]] = Field(
        default_factory=dict,
        description="Mean of 1 - |predicted - measured| / measured, and share of measured times in "
        "their 80 % intervals. fit: the fitted runs; uncalibrated: before the fit; others: "
        "runs that were left out of the fit.",
    )

    @model_validator(mode="before")
    @classmethod
    def _refuse_table(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("oracle", "paper") == "paper":
            raise ValueError(
                "expected 'oracle: machine': calibrations of Table III need paradl 0.2 or older; "
                "run 'paradl calibrate' on the measured runs again"
            )
        return data

    @model_validator(mode="after")
    def _check_complete(self) -> Self:
        for name in self.parameters:
            if name in FORMER:
                raise ValueError(
                    f"written by an earlier paradl (0.2 before its release): the parameter "
                    f"{name!r} is gone; run 'paradl calibrate' on the measured runs again"
                )
            if name not in CALIBRATED:
                raise InputError.unknown("parameter", name, CALIBRATED)
        for name in self.layouts.parameters if self.layouts else ():
            if name not in DRAWN_OF_BLOCKS:
                raise InputError.unknown("parameter of layouts", name, DRAWN_OF_BLOCKS)
        if self.layouts and not self.parameters:
            return self  # all runs were of transformers
        # No defaults: a parameter that was not measured has its prior's spread.
        needed = list_priors(self.precision, self.software, staged=False)
        missing = [name for name in needed if name not in self.parameters]
        if missing:
            raise ValueError(f"parameters: expected {missing[0]!r}, which is missing")
        rows = [len(row) for row in self.correlation]
        if rows not in ([], list(range(1, len(self.parameters) + 1))):
            raise ValueError(
                f"correlation: expected a lower triangle of {len(self.parameters)} rows, "
                f"got rows of {shorten(rows)}"
            )
        if any(abs(row[-1] - 1) > ROUNDING for row in self.correlation):
            raise ValueError("correlation: expected 1 at the end of each row")
        return self

    @property
    def covariance(self) -> Floats:
        """Covariance of the parameters' logarithms [n, n]."""
        size = len(self.parameters)
        correlations = np.eye(size)
        for row, values in enumerate(self.correlation):
            correlations[row, : row + 1] = correlations[: row + 1, row] = values
        spreads = np.array([parameter.spread for parameter in self.parameters.values()])
        return np.asarray(correlations * spreads * spreads[:, None])

    @property
    def machine(self) -> str:
        """The machine with its settings, named like a system."""
        return write_trained(self.system, self.precision, self.software, self.switches)

    def belongs_to(self, system: System) -> bool:
        """True if it was fitted to this machine, precision and software, switches included."""
        return self.machine == system.trained

    def serial_time(self, model: str, measured: bool) -> SerialTime:
        """Return a model's time on one PE, relative to its profile or the roofline."""
        return self.serial.get(model, self.unseen_time(measured))

    def unseen_time(self, measured: bool) -> SerialTime:
        """Return the same for a model without runs, from the machine's other models."""
        if measured:
            return SerialTime(factor=self.profile_factor, spread=self.profile_spread)
        return SerialTime(factor=self.roofline_factor, spread=self.roofline_spread)

    def has_other(self, model: str, architecture: str) -> bool:
        """True if another network of this name was fitted."""
        return self.architectures.get(model, architecture) != architecture
