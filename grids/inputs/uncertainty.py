"""Uncertainty of a case: fixed draws of what runs, or priors, leave open.

Draws are the points of one Sobol sequence and their opposites, as uncorrelated normal numbers of
mean 0 and variance 1: the same for every cell, cube and process. Parameters that the user states
are not drawn.
"""

from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path

import numpy as np
from scipy.special import ndtri

from grids.entries.calibration import CALIBRATED, CalibrationFile, ModelError
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
NAMES = tuple(each.name for each in fields(Software))
# [DRAWS / 2, dimension]: scipy.stats.qmc.Sobol(16, seed=0), the same with each SciPy; to import
# scipy.stats takes 0.6 s.
POINTS = Path(__file__).with_name("sobol_points.csv")

# Before any run of a machine: of published runs that no prior was fitted to (docs/accuracy.md).
PRIOR_ERROR = ModelError(serial=0.06, group=0.2, reduce=0.2, exchange=0.3, unseen=0.0, distance=0.0)
PROFILE_SPREAD = 0.1
ROOFLINE_SPREAD = 0.22


@dataclass(frozen=True)
class Unknown:
    """What is not known of a model on a machine. calibrated: None where nothing was measured.

    of_sequences: whether its products are those of sequences, of which images per second say
    nothing.
    """

    system: System
    measured: bool
    calibrated: Calibrated | None
    of_sequences: bool = False

    @property
    def file(self) -> CalibrationFile | None:
        """The calibration, if there is one."""
        return self.calibrated.file if self.calibrated else None

    @property
    def serial_spread(self) -> float:
        """Of the logarithm of the model's time on one PE."""
        if self.calibrated is not None:
            return self.calibrated.serial.spread
        if self.measured:
            return PROFILE_SPREAD
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
    normals = draw_normals(len(NAMES) + 1)
    logs = _draw_parameters(unknown, values, normals[:, :-1])

    def spread_out(column: Floats) -> Floats:
        return np.exp(column).reshape(DRAWS, *cells)

    widening = np.ones(cells)
    if unknown.calibrated is not None:
        widening = unknown.calibrated.find_widening(strategy, p)
    return Uncertainty(
        factors=Software(**{name: spread_out(logs[name]) for name in NAMES}),
        serial=spread_out(unknown.serial_spread * normals[:, -1]),
        whole=np.full(cells, error.serial),
        group=np.full(cells, error.group),
        reduce=np.full(cells, error.reduce),
        exchange=np.full(cells, error.exchange),
        widening=widening,
    )


@cache
def draw_normals(size: int) -> Floats:
    """Uncorrelated normal numbers [DRAWS, size] of mean 0 and variance 1, always the same."""
    half = ndtri(np.loadtxt(POINTS, delimiter=",")[:, :size])
    return _remove_correlations(np.concatenate([half, -half]))


@cache
def draw_errors(size: int) -> Floats:
    """As many numbers [DRAWS, size] for a model's own errors, uncorrelated with `draw_normals`.

    The same in a draw and in its opposite, where all others change their sign.
    """
    quarter = ndtri(np.loadtxt(POINTS, delimiter=",")[: DRAWS // 4, :size])
    half = np.concatenate([quarter, -quarter])
    return _remove_correlations(np.concatenate([half, half]))


def _remove_correlations(normals: Floats) -> Floats:
    """The same numbers [draw, size] of mean 0, turned until they are uncorrelated."""
    draws, size = normals.shape
    assert np.linalg.matrix_rank(normals) == size  # more cannot be uncorrelated
    variances, axes = np.linalg.eigh(normals.T @ normals / draws)
    uncorrelated: Floats = normals @ (axes / np.sqrt(variances)) @ axes.T
    return uncorrelated


def _draw_parameters(unknown: Unknown, values: Values, normals: Floats) -> dict[str, Floats]:
    """Logarithms [draw] of the factor on each parameter."""
    spreads = _list_spreads(unknown.system)
    logs = {name: spreads[name] * normals[:, n] for n, name in enumerate(NAMES)}
    if unknown.file is not None:
        logs |= _draw_calibrated(unknown.file, dict(zip(NAMES, normals.T, strict=True)))
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
    # What is no parameter of the draws, a layer's overhead, is part of the time on one PE.
    kept = [n for n, name in enumerate(CALIBRATED) if name in NAMES]
    names = [CALIBRATED[n] for n in kept]
    variances, axes = np.linalg.eigh(file.covariance[np.ix_(kept, kept)])
    # Correlations are written with two digits: rounding may take the least variance below 0.
    root = axes * np.sqrt(np.maximum(variances, 0)) @ axes.T
    drawn = np.stack([normals[name] for name in names], axis=-1) @ root
    return dict(zip(names, drawn.T, strict=True))
