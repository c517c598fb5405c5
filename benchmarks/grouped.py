"""Fit how fast grouped convolutions fetch their windows, from published images per second.

Kernels of narrow groups reuse a window for few filters, and every group fetches its windows anew.
With n filters per group, a layer of F FLOPs per sample fetches F / (2 n) items, at a share of the
memory's bandwidth (`window_fetch`):

    s >= 3 F / (2 n) a / (window_fetch BW)

Only this number is fitted; dense networks determine all others. Rows of V100 and A100 are fitted;
those of an RTX 3090 check a device that the fit has not seen.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar

from benchmarks.effort import Effort
from benchmarks.priors import (
    DEVICES,
    ITEM_BYTES,
    UNSTATED,
    Run,
    find_layers,
    mean_error,
    product_seconds,
    read_runs,
)
from benchmarks.priors import seconds as seconds_of_dense
from benchmarks.report import Report, Row
from grids.entries.names import CATALOGUE
from grids.entries.parameters import PARAMETERS
from kernels.names.arrays import Floats

RUNS = CATALOGUE / "measured" / "grouped.csv"
LOW, HIGH = 0.01, 10.0


def list_values() -> Mapping[str, float]:
    """Return shipped values of the other parameters, by their names in `benchmarks.priors`."""
    same_names = ("elementwise_passes", "layer_overhead", "half_channels")
    values = {name: _read_prior(name)["fp32"] for name in same_names}
    by_precision = _read_prior("efficiency_conv2d")
    values |= {f"efficiency_conv2d.{name}": value for name, value in by_precision.items()}
    values["layout_passes"] = _read_prior("layout_passes")["amp"] / UNSTATED
    return values | {"winograd": _read_prior("winograd")["fp32"]}


def _read_prior(name: str) -> Mapping[str, float]:
    prior = PARAMETERS[name].prior
    assert prior is not None
    return prior.median


def seconds(run: Run, window_fetch: float) -> float:
    """Compute the seconds of an iteration on one PE."""
    values = list_values()
    fetching = np.maximum(_fetch(run) / window_fetch - _compute(run, values), 0).sum()
    return seconds_of_dense(run, values, float(fetching))


def _fetch(run: Run) -> Floats:
    """Compute seconds per sample [G] of fetching windows at the full memory bandwidth."""
    layers, *_ = find_layers(run.model, run.dataset)
    windows = layers.flops / 2 * layers.groups / layers.filters
    _, bandwidth = DEVICES[run.device]
    return np.where(layers.groups > 1, 3 * windows * ITEM_BYTES[run.precision] / bandwidth, 0.0)


def _compute(run: Run, values: Mapping[str, float]) -> Floats:
    """Compute seconds per sample [G] of the same layers without fetching."""
    layers, *_ = find_layers(run.model, run.dataset)
    _, bandwidth = DEVICES[run.device]
    traffic = (layers.x + layers.y) * ITEM_BYTES[run.precision] / bandwidth
    return 3 * (product_seconds(run, values) + traffic)


def errors(runs: Sequence[Run], window_fetch: float) -> Floats:
    """Return ln(predicted / measured) images per second of each row."""
    rates = [run.samples / seconds(run, window_fetch) for run in runs]
    return np.log(rates) - np.log([run.images_per_s for run in runs])


def fit(runs: Sequence[Run]) -> float:
    """Fit `window_fetch` by least squares of logarithms; rows of a series share one weight."""
    series = [(run.model, run.device, run.precision) for run in runs]
    weights = 1 / np.array([series.count(key) for key in series])

    def misfit(log: float) -> float:
        return float(weights @ errors(runs, np.exp(log)) ** 2)

    solved = minimize_scalar(misfit, bounds=(np.log(LOW), np.log(HIGH)), method="bounded")
    return float(np.exp(solved.x))


@dataclass(frozen=True)
class Study:
    """A fit, its errors, and errors of fits without the row's network."""

    runs: tuple[Run, ...]
    checks: tuple[Run, ...]
    window_fetch: float
    spread: float
    fitted: Floats
    without_network: Floats
    checked: Floats


def study() -> Study:
    """Fit the shipped rows and compute all errors."""
    rows = read_runs(RUNS)
    runs, checks = (tuple(run for run in rows if run.use == use) for use in ("fit", "check"))
    value = fit(runs)
    others = [fit([row for row in rows if row.model != run.model]) for run in runs]
    return Study(
        runs,
        checks,
        value,
        _find_spread(rows, value),
        errors(runs, value),
        np.array([errors([run], other)[0] for run, other in zip(runs, others, strict=True)]),
        errors(checks, value),
    )


def _find_spread(runs: Sequence[Run], value: float) -> float:
    """Return the RMS error of depthwise networks, over the share of time spent fetching."""
    depthwise = [run for run in runs if not run.model.startswith("resnext")]
    shares = (errors(depthwise, value * 1.001) - errors(depthwise, value)) / np.log(1.001)
    return float(np.sqrt(np.mean(errors(depthwise, value) ** 2)) / np.mean(shares))


def measure(effort: Effort) -> Report:
    """Fit, leave out, and check; independent of the effort."""
    result = study()
    rows = [
        Row("window_fetch", result.window_fetch, "", note=f"spread {result.spread:.2f}"),
        Row("mean error, fitted", mean_error(result.fitted), ""),
        Row("mean error, without network", mean_error(result.without_network), ""),
        Row("mean error, RTX 3090", mean_error(result.checked), ""),
        Row("mean error, if fetched at once", mean_error(errors(result.runs, HIGH)), ""),
    ]
    ratios = np.exp([*result.fitted, *result.checked])
    for run, ratio in zip((*result.runs, *result.checks), ratios, strict=True):
        what = ", ".join((run.model, run.device, run.precision))
        note = f"{'' if run.use == 'fit' else 'check; '}{run.note}"
        rows.append(Row(what, run.images_per_s, "images/s", float(ratio), "measured", note=note))
    note = "Ratios are predicted / measured. All other parameters have their shipped values."
    return Report("grouped", "grouped convolutions on one PE", tuple(rows), note)
