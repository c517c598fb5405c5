"""Lines of latency and bandwidth that fit measured collectives, each collective by itself.

A level is fitted by what the oracle itself predicts (`kernels.machine.library_collectives`): the
logarithm of predicted over measured seconds, so that all sizes count alike. As few lines as fit:
one more has to lower the residual by a quarter. A latency that no row shows, or a bandwidth, is
assumed or refused, and so are lines that do not fit.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from scipy.optimize import least_squares

from paradl.grids.entries.connections import Collectives, Connection
from paradl.grids.entries.systems import System
from paradl.grids.inputs.machine import Machine, build_network
from paradl.grids.inputs.values import RowValues
from paradl.grids.reading.errors import InputError, format_count
from paradl.grids.reading.units import format_quantity
from paradl.kernels.arrays import use_numpy
from paradl.kernels.machine.library_collectives import (
    gather_costs,
    reduce_costs,
    time_all_to_all,
    time_fastest,
)
from paradl.kernels.machine.network import Ring
from paradl.kernels.names.arrays import Floats
from paradl.sweep.answers.types.catalogue import RatedRun
from paradl.sweep.importing.machines.measurements import STEPS, Measurement

MOST_LINES = 3
# A further line has to lower the residual to this part of it.
WORTHWHILE = 0.75
# Residuals below which no further line is tried: repeated runs differ by as much.
GOOD = 0.02
# Sizes between which a line may end; more are thinned out.
MOST_BREAKS = 24
# Factors on the latencies of a ring, from which a level beyond the node is fitted.
STARTS = (1, 2, 4, 8, 16, 32)
# Bounds of ln(latency [s], bandwidth [B/s]): with few rows, one of them may be open.
BOUNDS = np.log([[1e-9, 1e6], [0.5, 1e15]])
# Step of derivatives, in logarithms: lines have four digits, so finer steps change nothing.
DIGIT = 1e-2
LARGE = 1e6  # [B] sizes of which residuals are reported
MISFIT = 0.15  # [logarithm] errors that are reported
# Logarithms of errors beyond which lines are none of these rows': the median, and any one.
WORST_MEDIAN, WORST = np.log(1.25), np.log(2.0)
# Part of the rows that may be off by more than `WORST`, such as the first, which also warms up.
OUTLIERS = 0.1
# Least part of a row's time from which a latency or a bandwidth is read; rows scatter by less.
SHOWN = 0.05
KEYS = ("latency", "bandwidth")
# Values that take no time, by key.
NOTHING = {"latency": 1e-9, "bandwidth": 1e15}
REMEDIES = {
    "latency": "measure messages from 1 KB on, such as -b 1K -e 4G -f 4",
    "bandwidth": "measure messages up to 1 GB, such as -b 1K -e 4G -f 4",
}


@dataclass(frozen=True)
class Fitted:
    """Lines of a collective, and ln(predicted / measured) of each row, `errors` [row].

    assumed: the key of the lines that is as the path that was assumed; empty if none is.
    """

    lines: tuple[Connection, ...]
    errors: Floats
    assumed: str = ""

    @property
    def residual(self) -> float:
        """The root mean square of the errors."""
        return float(np.sqrt(np.mean(self.errors**2)))


def predict(system: System, measurement: Measurement) -> Floats:
    """Predict the seconds of each row of a measurement, by the oracle's own collectives."""
    network = build_network(Machine(system), RowValues({}), "machine")
    pes = np.float64(measurement.pes)
    sizes = np.array([row.size for row in measurement.samples])
    ring, one = Ring(pes, np.float64(1), pes), np.float64(1)
    with use_numpy():
        match measurement.collective:
            case "all_to_all":
                return np.asarray(time_all_to_all(network, ring, sizes, one))
            case "all_reduce":
                costs = reduce_costs(network, ring, "auto")
            case name:
                costs = gather_costs(network, ring, "auto", name)
        return np.asarray(time_fastest(costs, sizes, one))


def with_lines(system: System, level: int, name: str, lines: tuple[Connection, ...]) -> System:
    """Return the system with the lines of a collective at a level."""
    levels = [*system.levels]
    collectives = levels[level].collectives or Collectives()
    changed = collectives.model_copy(update={name: lines})
    levels[level] = levels[level].model_copy(update={"collectives": changed})
    return system.model_copy(update={"levels": tuple(levels)})


@dataclass(frozen=True)
class LineFitter:
    """Fits the lines of a collective at a level of a system; levels below are fitted already.

    ratio: of a line's latency to that inside a node, which is then fitted with it; 0: it stays.
    """

    system: System
    level: int
    name: str
    runs: Sequence[Measurement]
    ratio: float = 0.0

    def fit(self, path: Connection | None) -> Fitted:
        """Fit the lines.

        path: gives a latency or a bandwidth that the rows leave open. InputError: it is None, and
        they do; or no lines fit.
        """
        fitted = self._fit_most(None, path)
        hidden = [key for key in KEYS if not self._shows(fitted, key)]
        sizes = np.unique(_list_steps(self.runs)[0])
        if len(sizes) == 1:  # it shows what takes more of its time
            is_short = path is not None and sizes[0] < path.latency * path.bandwidth
            hidden = ["bandwidth" if is_short else "latency"]
        for key in hidden:
            if path is None:
                raise InputError(
                    f"{self.runs[0].where}: the sizes leave open the {key} of {self.name}",
                    advice=f"{REMEDIES[key]}, or --like SYSTEM",
                )
            fitted = self._fit_most(key, path)
        self._expect_fit(np.abs(fitted.errors))
        return fitted

    def find_latency(self) -> float | None:
        """Return the least latency of the lines [s]; None if the rows do not show it."""
        fitted = self._fit_most(None, None)
        return find_least(fitted.lines) if self._shows(fitted, "latency") else None

    def _predict(self, lines: tuple[Connection, ...]) -> Floats:
        system = with_lines(self.system, self.level, self.name, lines)
        if self.ratio:
            system = _with_latency(system, find_least(lines) / self.ratio)
        return np.concatenate([predict(system, run) for run in self.runs])

    def _shows(self, fitted: Fitted, key: str) -> bool:
        """Return whether the lines' latencies, or bandwidths, take a part of any row's time."""
        without = tuple(line.model_copy(update={key: NOTHING[key]}) for line in fitted.lines)
        return bool((self._predict(without) < (1 - SHOWN) * self._predict(fitted.lines)).any())

    def _expect_fit(self, errors: Floats) -> None:
        """Raise InputError if the lines are none of these rows'."""
        sizes = np.array([row.size for run in self.runs for row in run.samples])
        off, median = errors > WORST, np.median(errors)
        if median > WORST_MEDIAN or np.mean(off) > OUTLIERS or (off & (sizes > LARGE)).any():
            raise InputError(
                f"no lines of latency and bandwidth fit {self.name}: off by "
                f"{100 * np.expm1(median):.0f} % in the median, and by "
                f"{100 * np.expm1(errors.max()):.0f} % at {sizes[np.argmax(errors)]:,.0f} B",
                where=", ".join(run.where for run in self.runs),
                advice="were other programs running, or are the logs of several machines or "
                "NCCL_PROTO? Measure again, or leave out the rows that are wrong",
            )

    def _fit_most(self, key: str | None, path: Connection | None) -> Fitted:
        """Fit as many lines as are worthwhile; only one, if its `key` is as the path's."""
        # Between nodes a line is that of one adapter, of which a node has several.
        links = 1 if self.level == 0 else self.system.links_per_node
        best: Fitted | None = None
        for count in range(1, 1 + (MOST_LINES if key is None else 1)):
            first = _start_lines(self.runs, count, links)
            if first is None:
                break
            if key and path:
                x, y = _list_steps(self.runs)
                first = np.log([[np.median(y), np.median(x / y) / links]])
                first[:, KEYS.index(key)] = np.log(getattr(path, key))
            fitted = self._refine(first, [n for n, other in enumerate(KEYS) if other != key])
            if best is not None and fitted.residual > WORTHWHILE * best.residual:
                break
            best = fitted
            if best.residual < GOOD:
                break
        assert best is not None  # one line fits any row
        return replace(best, assumed=key or "")

    def _refine(self, first: Floats, free: list[int]) -> Fitted:
        """Return the lines nearest to the rows, starting from logarithms `first` [line, 2].

        free: columns that are fitted; the others stay.
        """
        seconds = np.array([row.seconds for run in self.runs for row in run.samples])

        def complete(logs: Floats) -> tuple[Connection, ...]:
            filled = first.copy()
            filled[:, free] = logs.reshape(len(first), -1)
            return make_lines(filled)

        def find_residuals(logs: Floats) -> Floats:
            errors: Floats = np.log(self._predict(complete(logs)) / seconds)
            return errors

        def rate(logs: Floats) -> float:
            return float(np.abs(find_residuals(logs)).sum())

        # Beyond a node small messages go by trees and in levels, of fewer steps than a ring's.
        factors = STARTS[: 1 if self.level == 0 else None]
        starts = [(first + np.log([steps, 1]))[:, free].ravel() for steps in factors]
        # Only two of them are refined, since least squares predict all rows many times.
        starts.sort(key=rate)
        # Where rows repeat or scatter, a few of them must not bend the lines.
        step = np.full(starts[0].size, DIGIT)
        solutions = [
            least_squares(find_residuals, start, loss="soft_l1", f_scale=0.1, diff_step=step).x
            for start in starts[:2]
        ]
        logs = min((*starts[:1], *solutions), key=rate)
        return Fitted(complete(logs), find_residuals(logs))


def note_few(runs: Sequence[Measurement], found: Fitted) -> list[str]:
    """Return a note if lines have as many figures as the rows have sizes: they always fit."""
    sizes = {(run.pes, row.size) for run in runs for row in run.samples}
    if len(sizes) > len(found.lines) * (1 if found.assumed else 2):
        return []
    count = format_count(len(sizes), "size")
    return [f"{runs[0].where}: {count} of {runs[0].collective}: too few to judge the fit"]


def find_least(lines: Sequence[Connection]) -> float:
    """Return the least latency of lines [s]."""
    return min(line.latency for line in lines)


def _with_latency(system: System, latency: float) -> System:
    """Return the system with another latency inside its nodes [s]."""
    node = system.levels[0].model_copy(update={"latency": latency})
    return system.model_copy(update={"levels": (node, *system.levels[1:])})


def lower_latency(system: System, like: System, runs: Sequence[Measurement]) -> tuple[System, str]:
    """Return the system with what runs between nodes leave for the latency inside, and why.

    `like` gives that latency, which no run shows. If it leaves less for the network than inside a
    node, both become smaller, in the ratio of `like`.
    """
    node, network = system.levels[0], like.levels[min(1, len(like.levels) - 1)]
    ratio, latency = max(1.0, network.latency / node.latency), node.latency
    for name in STEPS if node.collectives is None else ():
        fitter = LineFitter(system, 1, name, [run for run in runs if run.collective == name])
        if fitter.runs and (fitter.find_latency() or 0) < node.latency:
            found = replace(fitter, ratio=ratio).find_latency()
            latency = min(latency, (found or ratio * latency) / ratio)
    if latency == node.latency:
        return system, ""
    now, before = (format_quantity(seconds, "s", 3) for seconds in (latency, node.latency))
    why = f", but latency {now}, since runs between nodes take less than its {before}"
    return _with_latency(system, float(f"{latency:.3g}")), f"{why}; add the log of one node"


def make_lines(logs: Floats) -> tuple[Connection, ...]:
    """Return lines from logarithms [line, 2] of latency and bandwidth, the fastest first."""
    lines = [
        Connection(latency=float(f"{latency:.4g}"), bandwidth=float(f"{bandwidth:.4g}"))
        for latency, bandwidth in np.exp(np.clip(logs, *BOUNDS))
    ]
    return tuple(sorted(lines, key=lambda line: -line.bandwidth))


def _start_lines(runs: Sequence[Measurement], count: int, links: int) -> Floats | None:
    """Return logarithms [line, 2] of rings' steps, of sizes cut into `count` parts; None: too few.

    A ring's step takes alpha + m/q beta: of each part the line with least relative errors; of all
    ways to cut, the one of which the fastest lines have the least error.
    """
    x, y = _list_steps(runs)
    # A line needs two sizes, so none ends nearer to the first or the last one.
    breaks = np.unique(x)[2:-2]
    if count > 1 and len(breaks) < count:
        return None
    thinned = breaks[:: max(1, len(breaks) // MOST_BREAKS)]
    best, least = None, np.inf
    for cuts in combinations(thinned, count - 1):
        edges = np.searchsorted(x, cuts)
        parts = zip(np.split(x, edges), np.split(y, edges), strict=True)
        lines = np.array([_fit_line(*part) for part in parts])
        times = (lines[:, 0] + x[:, None] * lines[:, 1]).min(axis=1)
        error = float(np.mean(np.log(times / y) ** 2))
        if error < least:
            best, least = lines, error
    assert best is not None
    logs: Floats = np.log(np.stack([best[:, 0], 1 / (links * best[:, 1])], axis=1))
    return logs


def _list_steps(runs: Sequence[Measurement]) -> tuple[Floats, Floats]:
    """Return bytes and seconds of a ring's steps [row], the smallest first."""
    x = np.array([row.size / run.pes for run in runs for row in run.samples])
    steps = [STEPS[run.collective] * (run.pes - 1) for run in runs for _ in run.samples]
    y = np.array([row.seconds for run in runs for row in run.samples]) / steps
    order = np.argsort(x)
    return x[order], y[order]


def _fit_line(x: Floats, y: Floats) -> tuple[float, float]:
    """Return alpha, beta > 0 with the least squares of relative errors of alpha + x beta."""
    design = np.stack([1 / y, x / y], axis=1)
    alpha, beta = np.linalg.lstsq(design, np.ones_like(y), rcond=None)[0]
    if alpha <= 0:  # rows of large messages alone do not show a start-up
        alpha, beta = 1e-8, float(np.median(y / x))
    if beta <= 0:  # nor small ones a bandwidth
        alpha, beta = float(np.median(y)), float(np.min(y / x)) * 1e-3
    return float(alpha), float(beta)


def rate_run(system: System, run: Measurement) -> RatedRun:
    """Return how well the machine predicts a run's rows, with the series of a picture."""
    seconds, predicted = np.array([row.seconds for row in run.samples]), predict(system, run)
    errors: Floats = np.abs(np.log(predicted / seconds))
    large = errors[np.array([row.size >= LARGE for row in run.samples])]
    level = system.levels[0 if run.pes <= system.pes_per_node else 1]
    lines = getattr(level.collectives, run.collective)
    return {
        "log": run.where,
        "collective": run.collective,
        "pes": run.pes,
        "rows": len(run.samples),
        "lines": len(lines),
        "step_latency": find_least(lines),
        "bus_bandwidth": max(line.bandwidth for line in lines)
        * (1 if level is system.levels[0] else system.links_per_node),
        "median_error": float(np.expm1(np.median(errors))),
        "median_error_above_1MB": float(np.expm1(np.median(large))) if len(large) else None,
        "worst_error": float(np.expm1(errors.max())),
        "sizes": [row.size for row in run.samples],
        "measured": seconds.tolist(),
        "predicted": predicted.tolist(),
    }
