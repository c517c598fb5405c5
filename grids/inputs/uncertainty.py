"""Uncertainty of a case: fixed draws of what runs, or priors, leave open.

Draws are the points of one Sobol sequence and their opposites, as uncorrelated normal numbers of
mean 0 and variance 1: the same for every cell, cube and process. Parameters that the user states
are not drawn.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from grids.entries.calibration import CalibrationFile, ModelError
from grids.entries.parameters import PARAMETERS
from grids.entries.software import SOFTWARE
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.inputs.calibrated import Calibrated
from grids.inputs.values import Values
from grids.models.layers import Floats
from kernels.draws import Uncertainty
from kernels.software import Software

# A spread is then known to a tenth of itself or better (tests/grids/inputs/test_uncertainty.py):
# over eleven cells of all machines 6 % at worst, against 21 % of as many points without their
# opposites, which were correlated. Each costs a cell as much as its times.
DRAWS = 32
NAMES = tuple(field.name for field in fields(Software))
SERIAL = "serial"  # a model's time on one PE
# The dimension of each name, whatever else is drawn. Append only: a moved name moves intervals.
DIMENSIONS = (
    "bucket",
    "overlap",
    "jitter",
    "layer_overhead",
    "rail",
    "flow",
    "node_reduce",
    "node_collective",
    "startup",
    "assembly",
    "part_overhead",
    "halo_startup",
    "packing",
    "large_message",
    "host_jitter",
    SERIAL,
    "gather_rate",
    "log_open",
)
# Likewise of the model's own errors: of a strategy, of one it is compared with, and of epochs.
ERROR_DIMENSIONS = (
    "compute",
    "gradients",
    "exchange",
    "rival_compute",
    "rival_gradients",
    "rival_exchange",
    "fewest_epochs",
    "critical_batch",
)
# [DRAWS / 2, dimension]: scipy.stats.qmc.Sobol(16, seed=0), and from the 17th on dimensions of
# Sobol(48, seed=0): a file, since to import scipy.stats takes 0.6 s.
POINTS = Path(__file__).with_name("sobol_points.csv")

# Before any run of a machine: of published runs that no prior was fitted to (docs/accuracy.md).
PRIOR_ERROR = ModelError(serial=0.06, group=0.2, reduce=0.2, exchange=0.3, unseen=0.0, distance=0.0)
KINDS = ("serial", "group", "reduce", "exchange")
PROFILE_SPREAD = 0.1
# More where a profile does not state its batch or precision: of one half to twice the batch.
ASSUMED_SPREAD = 0.1
ROOFLINE_SPREAD = 0.22


@dataclass(frozen=True)
class Unknown:
    """What is not known of a model on a machine. calibrated: None where nothing was measured.

    of_sequences: whether its products are those of sequences, of which images per second say
    nothing. assumed: whether its profile leaves open how it was taken.
    """

    system: System
    measured: bool
    calibrated: Calibrated | None
    of_sequences: bool = False
    assumed: bool = False

    @property
    def file(self) -> CalibrationFile | None:
        """The calibration, if there is one."""
        return self.calibrated.file if self.calibrated else None

    @property
    def serial_spread(self) -> float:
        """Of the logarithm of the model's time on one PE."""
        if self.calibrated is None:
            return self.prior_spread
        if self.calibrated.has_run:
            return self.calibrated.serial.spread
        spread = self.calibrated.serial.spread
        if self.assumed:
            spread = math.hypot(spread, ASSUMED_SPREAD)
        # What runs of other networks tell makes none less sure than no run at all.
        return min(spread, self.prior_spread)

    @property
    def prior_spread(self) -> float:
        """The same before any run."""
        if self.measured:
            return math.hypot(PROFILE_SPREAD, ASSUMED_SPREAD if self.assumed else 0.0)
        if self.of_sequences:
            prior = PARAMETERS["efficiency_matmul"].prior
            assert prior is not None
            return prior.spread[self.system.precision]
        return ROOFLINE_SPREAD


def build_uncertainty(
    unknown: Unknown, strategy: Strategy, values: Values, p: Floats
) -> Uncertainty:
    """Draws with a dimension in front of the cells', and the model's own errors."""
    error = unknown.file.error if unknown.file else PRIOR_ERROR
    cells = (1,) * p.ndim
    logs = _draw_parameters(unknown, values)

    def spread_out(column: Floats) -> Floats:
        return np.exp(column).reshape(DRAWS, *cells)

    widening, most = np.ones(cells), dict.fromkeys(KINDS, np.full(cells, np.inf))
    if unknown.calibrated is not None:
        widening = unknown.calibrated.find_widening(strategy, p)
        if not unknown.calibrated.has_run:
            most = {kind: getattr(PRIOR_ERROR, kind) / widening for kind in KINDS}
    errors = {kind: np.minimum(getattr(error, kind), most[kind]) for kind in KINDS}
    return Uncertainty(
        factors=Software(**{name: spread_out(logs[name]) for name in NAMES}),
        serial=spread_out(unknown.serial_spread * draw_normals((SERIAL,))[:, 0]),
        whole=errors["serial"],
        group=errors["group"],
        reduce=errors["reduce"],
        exchange=errors["exchange"],
        widening=widening,
    )


def draw_normals(names: Sequence[str]) -> Floats:
    """Normal numbers [DRAWS, name] of mean 0 and variance 1, always the same of a name.

    Uncorrelated among the first 16 dimensions, and among every 16 that follow. KeyError: a name
    that has no dimension.
    """
    return _select_dimensions(_draw_dimensions(), DIMENSIONS, names)


def draw_errors(names: Sequence[str]) -> Floats:
    """Numbers [DRAWS, name] for a model's own errors, uncorrelated with `draw_normals`.

    The same in a draw and in its opposite, where all others change their sign.
    """
    return _select_dimensions(_draw_error_dimensions(), ERROR_DIMENSIONS, names)


@cache
def _draw_dimensions() -> Floats:
    return _make_uncorrelated(lambda points: np.concatenate([points, -points]), DRAWS // 2)


@cache
def _draw_error_dimensions() -> Floats:
    def mirror(points: Floats) -> Floats:
        half = np.concatenate([points[: DRAWS // 4], -points[: DRAWS // 4]])
        return np.concatenate([half, half])

    return _make_uncorrelated(mirror, DRAWS // 4)


def _make_uncorrelated(mirror: Callable[[Floats], Floats], size: int) -> Floats:
    """All dimensions [DRAWS, dimension], uncorrelated in blocks of `size`.

    More cannot be uncorrelated: so many points are left beside those that mirror them.
    """
    normals = mirror(ndtri(np.loadtxt(POINTS, delimiter=",")))
    starts = range(0, normals.shape[1], size)
    return np.hstack([_remove_correlations(normals[:, n : n + size]) for n in starts])


def _select_dimensions(drawn: Floats, dimensions: Sequence[str], names: Sequence[str]) -> Floats:
    unknown = [name for name in names if name not in dimensions]
    if unknown:
        raise KeyError(f"no dimension of the draws: {', '.join(unknown)}; append it to them")
    return drawn[:, [dimensions.index(name) for name in names]]


def _remove_correlations(normals: Floats) -> Floats:
    """The same numbers [draw, size] of mean 0, turned until they are uncorrelated."""
    draws, size = normals.shape
    assert np.linalg.matrix_rank(normals) == size  # more cannot be uncorrelated
    variances, axes = np.linalg.eigh(normals.T @ normals / draws)
    uncorrelated: Floats = normals @ (axes / np.sqrt(variances)) @ axes.T
    return uncorrelated


def _draw_parameters(unknown: Unknown, values: Values) -> dict[str, Floats]:
    """Logarithms [draw] of the factor on each parameter."""
    spreads = _list_spreads(unknown.system)
    normals = dict(zip(NAMES, draw_normals(NAMES).T, strict=True))
    logs = {name: spreads[name] * normals[name] for name in NAMES}
    if unknown.file is not None:
        logs |= _draw_calibrated(unknown.file, normals)
    return {name: log * float(name not in values) for name, log in logs.items()}


def _list_spreads(system: System) -> dict[str, float]:
    """Before any run; 0 of what the software determines."""
    known, spreads = SOFTWARE[system.software], {}
    for name in NAMES:
        prior = PARAMETERS[name].prior
        assert prior is not None  # a parameter of the machine oracle
        spreads[name] = 0.0 if name in known.settled else prior.spread[system.precision]
    return spreads


def _draw_calibrated(file: CalibrationFile, normals: dict[str, Floats]) -> dict[str, Floats]:
    """Those that runs were asked about, correlated as they left them."""
    names = list(file.parameters)
    variances, axes = np.linalg.eigh(file.covariance)
    # Correlations are written with two digits: rounding may take the least variance below 0.
    root = axes * np.sqrt(np.maximum(variances, 0)) @ axes.T
    drawn = np.stack([normals[name] for name in names], axis=-1) @ root
    return dict(zip(names, drawn.T, strict=True))
