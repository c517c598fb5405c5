"""Fit priors of a PE, the shares of its peaks that it reaches, to published images per second.

The form is that of docs/machine.md, "Time of a layer" and "Launches". Matrix products and 3-D
convolutions get the efficiency of 2-D ones: no row can tell products apart, and with tiles of
another width volumes need no factor. Rows of V100, A100 and RTX 3090 are fitted, of dense networks
and of grouped ones; each network, and each device, is predicted by a fit without it. DenseNet-121,
MobileNet-v2 and grouped networks on an RTX 3090 are in no fit.
"""

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from benchmarks.report import Effort, Report, Row, at_least, at_most
from paradl.grids.entries.names import CATALOGUE
from paradl.grids.entries.parameters import PARAMETERS as SHIPPED
from paradl.grids.entries.software import SOFTWARE
from paradl.grids.inputs.layers import kernel_layers
from paradl.grids.inputs.uncertainty import GROUPED_SPREAD, PRIOR_ERROR, ROOFLINE_SPREAD
from paradl.grids.library import find
from paradl.grids.models.layers import LayerTable
from paradl.kernels.arrays import use_numpy
from paradl.kernels.machine.device import PE
from paradl.kernels.names.arrays import Floats, Integers
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.options import Options
from paradl.kernels.work.compute import layer_times, wait_for_launches
from paradl.kernels.work.layers import Layers

Values = Mapping[str, float]

RUNS = CATALOGUE / "measured" / "throughput.csv"
GROUPED_RUNS = CATALOGUE / "measured" / "grouped.csv"

ITEM_BYTES = {"fp32": 4.0, "tf32": 4.0, "amp": 2.0}
ROW_SPREAD = 0.15  # of a published row: libraries and layouts of a network differ by this much

AT_ONCE = 10.0  # a share of the bandwidth that no window's fetching would show

TILE = 128.0  # filters; half as many for volumes (docs/machine.md, Tiles)
OPTIONS = Options(oracle="machine")

# Goals for one V100 and rows that the fit has not seen.
MOST_MEAN_ERROR = 0.15
MOST_FACTOR = 1.5
# Coverage of 80 % intervals of left-out networks.
LEAST_INSIDE, MOST_INSIDE = 0.75, 0.88

# Dense peaks [FLOP/s] by precision, and the memory's bandwidth [B/s].
DEVICES: dict[str, tuple[dict[str, float], float]] = {
    # NVIDIA Tesla V100 SXM2 data sheet.
    "V100-SXM2": ({"fp32": 15.7e12, "amp": 125e12}, 900e9),
    # NVIDIA A100 data sheet.
    "A100-SXM4-80GB": ({"tf32": 156e12, "amp": 312e12}, 2039e9),
    "A100-SXM4-40GB": ({"tf32": 156e12, "amp": 312e12}, 1555e9),
    # NVIDIA Ampere GA102 white paper: tensor cores that accumulate in FP32.
    "RTX-3090": ({"fp32": 35.6e12, "amp": 71e12}, 936e9),
}


@dataclass(frozen=True)
class Run:
    """A published measurement: a row of a table."""

    model: str
    dataset: str
    device: str
    precision: str
    samples: float
    images_per_s: float
    use: str  # "fit", or "check": not fitted
    source: str
    note: str

    @property
    def layout(self) -> str:
        """NCHW, NHWC, or empty if not stated."""
        first = self.note.partition(";")[0]
        return first if first in LAYOUTS else ""

    @property
    def converted(self) -> float:
        """Share of `layout_passes` that the row pays; none without tensor cores."""
        return 0.0 if self.precision == "fp32" else LAYOUTS.get(self.layout, UNSTATED)

    @property
    def is_plain(self) -> bool:
        """Whether layers were launched one by one from Python, without Winograd."""
        return self.note.startswith(PLAIN)


class Parameter(NamedTuple):
    """A fitted parameter: bounds, and a prior with a centre and a logarithmic spread.

    floor: of the reported spread. ruling: it dominates some rows, whose errors give its spread.
    """

    name: str
    unit: str
    centre: float
    spread: float
    low: float
    high: float
    floor: float = 0.0
    ruling: bool = False


# Assumed centres: kernels reach half of the peak; setting up a kernel takes as long as summing tens
# of products; a layer is a few launches of 3 to 5 us.
PARAMETERS = (
    Parameter("efficiency_conv2d.fp32", "", 0.5, 0.5, 0.02, 1.0, 0.2, ruling=True),
    # Only one network on one device.
    Parameter("efficiency_conv2d.tf32", "", 0.5, 0.5, 0.02, 1.0, 0.4, ruling=True),
    Parameter("efficiency_conv2d.amp", "", 0.5, 0.5, 0.02, 1.0, 0.2, ruling=True),
    Parameter("winograd", "", 1.6, 0.2, 1.0, 2.25, 0.2),
    Parameter("elementwise_passes", "", 3.0, 0.3, 2.0, 6.0, 0.2),
    # Inputs and outputs are read and written once more in each of three passes.
    Parameter("layout_passes", "", 6.0, 0.3, 0.1, 20.0, 0.2),
    # Poorly identified: batches are large, so the device hides launches.
    Parameter("layer_overhead", "s", 4e-5, 1.0, 1e-6, 200e-6, 1.0),
    Parameter("half_channels", "", 10.0, 1.0, 1e-3, 500.0, 0.3),
    Parameter("window_fetch", "", 0.3, 1.0, 0.01, AT_ONCE, 0.3),
)
# Share of `layout_passes` that a row pays on tensor cores; a quarter if it states no layout, since
# most published runs are tuned, and tuned ones keep NHWC (docs/accuracy.md, Layout).
LAYOUTS = {"NCHW": 1.0, "NHWC": 0.0}
UNSTATED = 0.25
# Launches layers one by one from Python, without Winograd: `software: plain`.
PLAIN = "Chainer"
PLAIN_OVERHEAD = SOFTWARE["plain"].parameters["layer_overhead"]  # [s]


def read_runs(*paths: Path) -> tuple[Run, ...]:
    """Read the published rows, by default of both files."""
    read = [pd.read_csv(path, keep_default_na=False) for path in paths or (RUNS, GROUPED_RUNS)]
    rows = pd.concat(read)
    records = rows.to_dict("records")
    return tuple(Run(**{str(key): value for key, value in record.items()}) for record in records)


@cache
def join_layers(runs: tuple[Run, ...]) -> tuple[Layers, Integers]:
    """Return the layers of all rows, one row's after another's, and how many each has [run]."""
    tables = [find_table(run.model, run.dataset) for run in runs]
    parts = [replace(kernel_layers(table), groups=table.groups) for table in tables]
    joined: Layers = jax.tree.map(lambda *arrays: np.concatenate(arrays, axis=-1), *parts)
    return joined, np.array([*map(len, tables)])


@cache
def find_table(model: str, dataset: str) -> LayerTable:
    """Return a network's layers."""
    return find("model", model, Path()).table(find("dataset", dataset, Path()))


def seconds(runs: Sequence[Run], values: Values) -> Floats:
    """Compute seconds of an iteration on one PE: M(b sum s_l + sum f_l, launches) + update."""
    layers, counts = join_layers(tuple(runs))
    plain = np.array([run.is_plain for run in runs])

    def spread(of_runs: Iterable[float]) -> Floats:
        return np.repeat(np.array([*of_runs]), counts)

    pe = PE(
        peak_flops=spread(DEVICES[run.device][0][run.precision] for run in runs),
        efficiency=spread(values[f"efficiency_conv2d.{run.precision}"] for run in runs),
        memory_capacity=math.inf,
        memory_bandwidth=spread(DEVICES[run.device][1] for run in runs),
        half_channels=values["half_channels"],
        tile_filters=TILE,
        kernel_overlap=0.0,
        window_fetch=values["window_fetch"],
        layout_passes=spread(run.converted * values["layout_passes"] for run in runs),
        winograd=spread(
            values["winograd"] if run.precision == "fp32" and not run.is_plain else 1.0
            for run in runs
        ),
        elementwise_passes=values["elementwise_passes"],
    )
    with use_numpy():
        times = layer_times(layers, pe, spread(ITEM_BYTES[run.precision] for run in runs), OPTIONS)
    passes, fixed, update = (
        np.add.reduceat(of_layers, np.cumsum(counts) - counts)
        for of_layers in (times.forward + times.backward, times.fixed, times.update)
    )
    device = np.array([run.samples for run in runs]) * passes + fixed
    launching = counts * np.where(plain, PLAIN_OVERHEAD, values["layer_overhead"])
    with use_numpy():
        waiting = wait_for_launches(device, launching)
    # The authors' profiles exclude the update.
    return np.asarray(device + waiting + np.where(plain, 0.0, update))


@cache  # a study repeats half of its fits
def fit(runs: tuple[Run, ...], parameters: tuple[Parameter, ...] = PARAMETERS) -> Values:
    """Fit the parameters by least squares of logarithms; others are as shipped."""
    known = list_shipped()
    weights = np.sqrt(_weigh(runs)) / ROW_SPREAD
    names = [parameter.name for parameter in parameters]
    centre, low, high = (
        np.log([getattr(parameter, key) for parameter in parameters])
        for key in ("centre", "low", "high")
    )
    spread = np.array([parameter.spread for parameter in parameters])

    def residuals(logs: Floats) -> Floats:
        values = known | dict(zip(names, np.exp(logs), strict=True))
        return np.concatenate([weights * errors(runs, values), (logs - centre) / spread])

    solved = least_squares(residuals, np.minimum(centre, high - 0.01), bounds=(low, high))
    return known | dict(zip(names, map(float, np.exp(solved.x)), strict=True))


@cache
def list_shipped() -> dict[str, float]:
    """Return shipped values of the parameters."""
    values = {f"efficiency_conv2d.{name}": value for name, value in _read("efficiency_conv2d")}
    alike = "elementwise_passes", "layer_overhead", "half_channels", "winograd", "window_fetch"
    for name in alike:  # for all precisions
        values[name] = dict(_read(name))["fp32"]
    return values | {"layout_passes": dict(_read("layout_passes"))["amp"] / UNSTATED}


def _read(name: str) -> Iterable[tuple[str, float]]:
    prior = SHIPPED[name].prior
    assert prior is not None
    return prior.median.items()


def _weigh(runs: Sequence[Run]) -> Floats:
    """Return weights: rows of the same network, device and precision have that of one together."""
    series = [(run.model, run.device, run.precision) for run in runs]
    return 1 / np.array([series.count(key) for key in series])


def predict(runs: Sequence[Run], values: Values) -> Floats:
    """Predict samples per second of each row."""
    return np.array([run.samples for run in runs]) / seconds(runs, values)


def errors(runs: Sequence[Run], values: Values) -> Floats:
    """Return ln(predicted / measured) of each row."""
    return np.log(predict(runs, values)) - np.log([run.images_per_s for run in runs])


def share_inside(runs: Sequence[Run], logs: Floats) -> float:
    """Return the share of rows inside the 80 % intervals of an unmeasured network."""
    spreads = [GROUPED_SPREAD if is_grouped(run) else ROOFLINE_SPREAD for run in runs]
    limits = PERCENTILES[90] * np.hypot(spreads, PRIOR_ERROR.serial)
    return float(np.mean(np.abs(logs) <= limits))


def is_grouped(run: Run) -> bool:
    """Whether a row's network has convolutions in groups."""
    return bool(np.max(find_table(run.model, run.dataset).groups) > 1)


def mean_error(logs: Floats) -> float:
    """Return the mean of |predicted / measured - 1|."""
    return float(np.mean(np.abs(np.exp(logs) - 1)))


def worst_factor(logs: Floats) -> float:
    """Return the factor by which the worst row is off."""
    return float(np.exp(np.max(np.abs(logs))))


def leave_out(
    runs: Sequence[Run],
    key: Callable[[Run], Hashable],
    parameters: tuple[Parameter, ...] = PARAMETERS,
    stated: bool = True,
) -> Floats:
    """Return errors of rows, each by a fit without all rows of its key.

    stated: predictions use the layouts that rows state, as fits always do.
    """
    fits = {
        left: fit(tuple(run for run in runs if key(run) != left), parameters)
        for left in dict.fromkeys(map(key, runs))
    }
    known = [run if stated or not run.layout else replace(run, note="") for run in runs]
    pairs = zip(runs, known, strict=True)
    return np.array([errors([other], fits[key(run)])[0] for run, other in pairs])


def find_network(run: Run) -> str:
    """Return the network that a row measured."""
    return run.model


def find_device(run: Run) -> str:
    """Return the device that a row measured, whatever its memory."""
    return run.device.partition("-")[0]


class Study(NamedTuple):
    """A fit of some rows, not of the checks, and the errors of all by it.

    without_network, without_device: by fits that have not seen the row's.
    """

    runs: tuple[Run, ...]
    checks: tuple[Run, ...]
    values: Values
    fitted: Floats
    checked: Floats
    without_network: Floats
    without_device: Floats

    def find_shares(self, runs: Sequence[Run], name: str) -> Floats:
        """Return -d ln(seconds) / d ln(parameter) of each row."""
        larger = {**self.values, name: self.values[name] * np.exp(1e-4)}
        return (errors(runs, larger) - errors(runs, self.values)) / 1e-4

    def find_spread(self, parameter: Parameter) -> float:
        """Return the standard deviation of a parameter's logarithm, at least its floor.

        For a ruling one: the RMS error of left-out networks and checks, over its share of the time.
        For others: how far the value moves when a network is left out or the checks are fitted.
        """
        if not parameter.ruling:
            names = {run.model for run in self.runs}
            kept = [tuple(run for run in self.runs if run.model != name) for name in names]
            fitted = [fit(runs, PARAMETERS) for runs in (*kept, (*self.runs, *self.checks))]
            others = np.array([values[parameter.name] for values in fitted])
            moves = np.abs(np.log(others / self.values[parameter.name]))
            return max(float(moves.max()), parameter.floor)
        shares = self.find_shares((*self.runs, *self.checks), parameter.name)
        logs = np.concatenate([self.without_network, self.checked])[shares > 0]
        return max(float(np.sqrt(np.mean(logs**2)) / shares[shares > 0].mean()), parameter.floor)


def study(rows: Sequence[Run], parameters: tuple[Parameter, ...] = PARAMETERS) -> Study:
    """Fit the rows marked "fit"."""
    runs, checks = (tuple(run for run in rows if run.use == use) for use in ("fit", "check"))
    values = fit(runs, parameters)
    without = (leave_out(runs, key, parameters) for key in (find_network, find_device))
    return Study(runs, checks, values, errors(runs, values), errors(checks, values), *without)


def measure(effort: Effort) -> Report:
    """Fit, leave out, and check; independent of the effort."""
    made = study(read_runs())
    rows = [
        Row(p.name, made.values[p.name], p.unit, note=f"spread {made.find_spread(p):.2f}")
        for p in PARAMETERS
    ]
    logs = on_v100(made)
    for what, value, most in (
        ("mean error", mean_error(logs), MOST_MEAN_ERROR),
        ("worst factor", worst_factor(logs), MOST_FACTOR),
    ):
        rows.append(Row(f"V100: {what}", value, "", goals=(at_most(value, most, ""),)))
    blind = leave_out(made.runs, find_network, stated=False)
    for what, logs in (
        ("networks left out", blind),
        ("networks left out, layouts known", made.without_network),
        ("devices left out, layouts known", made.without_device),
    ):
        inside = share_inside(made.runs, logs)
        goals = at_least(inside, LEAST_INSIDE, ""), at_most(inside, MOST_INSIDE, "")
        rows.append(Row(f"{what}: accuracy", 1 - mean_error(logs), ""))
        rows.append(Row(f"{what}: in 80 % intervals", inside, "", goals=goals))
    rows.append(Row("checks: accuracy", 1 - mean_error(made.checked), ""))
    rows += _list_runs(made)
    note = (
        "Spreads are standard deviations of logarithms. Errors of a V100 are from fits without "
        "the row. Ratios are predicted / measured."
    )
    return Report("priors", "efficiencies of one PE", tuple(rows), note)


def on_v100(made: Study) -> Floats:
    """Return errors of the V100 rows, each by a fit without that row."""
    return leave_out(made.runs, lambda run: run)[[run.device == "V100-SXM2" for run in made.runs]]


def _list_runs(made: Study) -> list[Row]:
    """List published rows, with the error of the fit."""
    pairs = zip((*made.runs, *made.checks), (*made.fitted, *made.checked), strict=True)
    return [
        Row(
            ", ".join((run.model, run.dataset, run.device, run.precision)),
            *(run.images_per_s, "images/s", float(np.exp(log)), "measured"),
            note=f"{run.use}; {run.note}",
        )
        for run, log in pairs
    ]
