"""Uncertainty of a case: draws of the parameters that runs or priors leave uncertain.

Parameters that the user sets are not drawn.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from paradl.grids.entries.calibration import DRAWN_OF_BLOCKS, CalibrationFile, ModelError
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import (
    RIVAL_SPREAD,
    find_far_spread,
    find_system_spread,
)
from paradl.grids.inputs.calibrated import Calibrated
from paradl.grids.inputs.draws import DRAWS, draw_normals
from paradl.grids.inputs.machine import Stack
from paradl.grids.inputs.values import Values
from paradl.kernels.configuration.case import Uncertainty
from paradl.kernels.configuration.places import PLACES
from paradl.kernels.machine.software import Software
from paradl.kernels.names.arrays import Floats
from paradl.kernels.work.transformer import Transformer

NAMES = tuple(field.name for field in fields(Software))
SERIAL = "serial"  # a model's time on one PE
UNSEEN, OVERHEAD = "unseen", "layer_overhead"

# Errors on an uncalibrated machine, from published runs outside the priors' fit
# (docs/accuracy.md).
PRIOR_ERROR = ModelError(serial=0.06, group=0.2, reduce=0.2, exchange=0.3, unseen=0.0, distance=0.0)
KINDS = ("serial", "group", "reduce", "exchange")
PROFILE_SPREAD = 0.1
COLLECTIVE_SPREAD = 0.1  # assumption: for measured collectives, like that of a profile
# Added if a profile does not state its batch or precision: half to twice the batch.
ASSUMED_SPREAD = 0.1
# With these, 80 % intervals hold 86 % of published images/s of networks that were left out of the
# priors' fit, and 84 % of devices (`python -m benchmarks priors`).
ROOFLINE_SPREAD = 0.11
GROUPED_SPREAD = 0.17
# Two codes of one 3-D network on one device, in amp, differ by 1.8 times (docs/accuracy.md).
VOLUME_SPREAD = 0.35


@dataclass(frozen=True)
class Unknown:
    """A model on a machine and what was measured of it. calibrated: None without calibration.

    of_sequences: whether its products are those of sequences, on which images per second have no
    bearing. grouped, volumetric: whether it has grouped or 3-D convolutions. assumed: whether its
    profile omits its batch or precision.
    """

    system: System
    measured: bool
    calibrated: Calibrated | None
    of_sequences: bool = False
    grouped: bool = False
    volumetric: bool = False
    assumed: bool = False

    @property
    def file(self) -> CalibrationFile | None:
        """The calibration, if there is one."""
        return self.calibrated.file if self.calibrated else None

    @property
    def serial_spread(self) -> float:
        """Spread of the model's time on one PE (standard deviation of its logarithm)."""
        if self.calibrated is None:
            return self.prior_spread
        if self.calibrated.has_run:
            return self.calibrated.serial.spread
        spread = self.calibrated.serial.spread
        if self.assumed:
            spread = math.hypot(spread, ASSUMED_SPREAD)
        # Runs of other networks never make a prediction less certain than no run.
        return min(spread, self.prior_spread)

    @property
    def unseen_spread(self) -> float:
        """Spread of all computing of a network without runs, by those that were left out."""
        if self.calibrated is None or self.calibrated.has_run:
            return 0.0
        return self.calibrated.file.unseen_spread or 0.0

    @property
    def prior_spread(self) -> float:
        """The same spread without calibration."""
        if self.measured:
            return math.hypot(PROFILE_SPREAD, ASSUMED_SPREAD if self.assumed else 0.0)
        if self.of_sequences:
            prior = PARAMETERS["efficiency_matmul"].prior
            assert prior is not None
            return prior.spread[self.system.precision]
        if self.volumetric:
            return VOLUME_SPREAD
        return GROUPED_SPREAD if self.grouped else ROOFLINE_SPREAD


def build_uncertainty(
    unknown: Unknown, strategy: Strategy, values: Values, p: Floats, draws: int = DRAWS
) -> Uncertainty:
    """Draw parameters along a leading dimension, and set the model's own errors."""
    error = unknown.file.error if unknown.file else PRIOR_ERROR
    logs = draw_logarithms(unknown.system, unknown.file, values, NAMES, draws)
    # One factor on layers and launches, since either may set the time.
    unseen = unknown.unseen_spread * _draw(UNSEEN, draws)
    logs[OVERHEAD] = logs[OVERHEAD] + unseen
    serial = unknown.serial_spread * _draw(SERIAL, draws) + unseen
    # The shape of p whether values vary or not: machines share one compiled program.
    widening, most = np.ones(p.shape), dict.fromkeys(KINDS, np.full(p.shape, np.inf))
    if unknown.calibrated is not None:
        widening = unknown.calibrated.find_widening(strategy, p)
        # Nor do assumed errors; those of networks that were left out may.
        if not unknown.calibrated.has_run and "model" not in unknown.calibrated.file.accuracy:
            most = {kind: getattr(PRIOR_ERROR, kind) / widening for kind in KINDS}
    errors = {kind: np.minimum(getattr(error, kind), most[kind]) for kind in KINDS}
    return _make_uncertainty({**logs, SERIAL: serial}, draws, errors, widening)


def build_block_uncertainty(
    stack: Stack, net: Transformer, values: Values, draws: int = DRAWS
) -> Uncertainty:
    """Draw the parameters that times of layouts depend on, and set the error of all terms.

    Runs that calibrate scatter by their parameters, too.
    """
    system, file, fit = stack.machine.system, stack.machine.calibration, stack.calibrated
    error = find_system_spread(system, stack.precision, net.family, fit, is_drawn=fit is None)
    joint = np.hypot(error, find_far_spread(net.parameters, values.get("pe")))
    logs = {} if fit else draw_logarithms(system, file, values, DRAWN_OF_BLOCKS, draws)
    one = np.ones((1,) * values.rank)
    drawn = _make_uncertainty(logs, draws, dict.fromkeys(KINDS, one), one)
    return replace(drawn, joint=joint * one, beside=RIVAL_SPREAD * one)


def _make_uncertainty(
    logs: Mapping[str, Floats], draws: int, errors: Mapping[str, Floats], widening: Floats
) -> Uncertainty:
    """Make the uncertainty of factors with these logarithms [draw], and errors [cells] of KINDS."""
    shape = (draws, *[1] * widening.ndim)
    factors = {name: np.exp(log).reshape(shape) for name, log in logs.items()}
    whole = np.ones(shape)
    kernels = [name for name in factors if name not in (*NAMES, SERIAL)]
    return Uncertainty(
        factors=Software(**{name: factors.get(name, whole) for name in NAMES}),
        serial=factors.get(SERIAL, whole),
        whole=errors["serial"],
        group=errors["group"],
        reduce=errors["reduce"],
        exchange=errors["exchange"],
        widening=widening,
        kernels={PLACES[name].field: factors[name] for name in kernels},
    )


def draw_logarithms(
    system: System,
    file: CalibrationFile | None,
    values: Values,
    names: Sequence[str],
    draws: int = DRAWS,
) -> dict[str, Floats]:
    """Draw the logarithm of the factor on each parameter [draw]; 0 of those that are set."""
    spreads = list_spreads(system, names)
    logs = {name: spreads[name] * _draw(name, draws) for name in names}
    if file is not None:
        fitted = _draw_calibrated(file, draws)
        logs |= {name: log for name, log in fitted.items() if name in logs}
    return {name: log * float(name not in values) for name, log in logs.items()}


def _draw(name: str, draws: int) -> Floats:
    return draw_normals((name,), draws)[:, 0]


def list_spreads(system: System, names: Sequence[str]) -> dict[str, float]:
    """Return prior spreads by parameter; 0 for those that the software fixes."""
    known, spreads = system.software_facts, {}
    for name in names:
        prior = PARAMETERS[name].prior
        assert prior is not None  # a parameter of the machine oracle
        spreads[name] = 0.0 if name in known.settled else prior.spread[system.precision]
        if name in system.measured_shares:
            spreads[name] = min(spreads[name], COLLECTIVE_SPREAD)
    return spreads


def _draw_calibrated(file: CalibrationFile, draws: int) -> dict[str, Floats]:
    """Draw the calibrated parameters with the correlations of the fit."""
    names = list(file.parameters)
    variances, axes = np.linalg.eigh(file.covariance)
    # Correlations are stored with two digits: rounding may take the least variance below 0.
    root = axes * np.sqrt(np.maximum(variances, 0)) @ axes.T
    drawn = draw_normals(names, draws) @ root
    return dict(zip(names, drawn.T, strict=True))
