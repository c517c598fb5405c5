"""Transformers by layout against published runs: time, with stacks left out, and memory.

Times: eleven numbers, shared by all devices and stacks, are fitted to rows of dense networks, and
again without each stack, source, device or size of network, and without the largest networks, the
most PEs and the newest releases, whose rows that fit then predicts.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from benchmarks.layout_runs import (
    UNSEEN,
    Logs,
    Run,
    find_drawn_spread,
    find_elasticities,
    find_reserved,
    predict_columns,
    predict_memory,
    predict_seconds,
    read_runs,
)
from benchmarks.report import Effort, Report, Row, at_least, at_most
from paradl.grids.entries.calibration import DRAWN_OF_BLOCKS, LayoutTime
from paradl.grids.entries.transformer_rates import (
    FITTED,
    find_family,
    find_far_spread,
    find_spread,
    is_systolic,
)
from paradl.grids.inputs.uncertainty import list_spreads
from paradl.kernels.names.stored import PERCENTILES
from paradl.sweep.calibration.layouts import fit_times, move_times

# Values that a fit stays near, and standard deviations of their logarithms.
Prior = Mapping[str, tuple[float, float]]
# `reach`: held near the plateau of the largest products, which smaller ones cannot tell from what
# memory takes. `systolic`: arrays at a fixed clock lose a few percent, beside what memory takes.
DENSE: Prior = {
    "reach": (0.82, 0.02),
    "systolic": (0.9, 0.05),
    "energy": (0.8, 0.5),
    "product_moves": (2.5, 0.5),
    "efficiency_attention": (0.35, 0.4),
    "attention_penalty": (1.7, 0.3),
    "block_passes": (2.5, 0.4),
    "score_passes": (12.0, 0.5),
    "host_pause": (0.02, 1.0),
    "checkpoint_wait": (5e-3, 1.0),
    "straggling": (0.005, 1.0),
}
MIXED: Prior = {"expert_wait": (3e-4, 0.7)}
STEP = 1e-4  # of logarithms, for slopes
ROW_SPREAD = 0.15
MOST_ROWS = 12  # of one stack and device that are fitted, evenly chosen: they are alike


def compare_times(runs: Sequence[Run], values: Mapping[str, float]) -> Logs:
    """ln(predicted / measured) of each run."""
    return np.log([predict_seconds(run, values) / run.seconds for run in runs])


def select_timed() -> list[Run]:
    """The runs with a time: of dense networks on GPUs, of mixtures of experts, on TPUs."""
    timed = [run for run in (*read_runs(), *read_runs(UNSEEN)) if run.seconds]
    return sorted(timed, key=lambda run: (is_systolic(run.device), has_experts(run)))


def find_stack(run: Run) -> str:
    """The stack that ran it."""
    return run.stack


def find_device(run: Run) -> str:
    """The device, whatever its memory or cluster."""
    return find_family(run.device)


def find_size(run: Run) -> str:
    """The parameters of its network, by powers of the square root of ten."""
    return str(int(2 * np.log10(run.net.parameters)))


def find_source(run: Run) -> str:
    """The publication; of MLPerf's results, all of a round."""
    mlperf = run.source.startswith("MLPerf")
    return " ".join(run.source.split()[:3]) if mlperf else run.source


# What lies furthest from other runs: parameters from LARGE, features above WIDE, PEs above MANY.
LARGE, WIDE, MANY = 10**11, 15_000, 1024
FAR: Mapping[str, Callable[[Run], bool]] = {
    "100 billion parameters or more": lambda run: run.net.parameters >= LARGE,
    "more than 15,000 features": lambda run: run.net.hidden > WIDE,
    "more than 1,024 PEs": lambda run: run.layout.pes[0] > MANY,
    "releases of 2026": lambda run: "Bridge 26" in run.stack,
}


def has_experts(run: Run) -> bool:
    """Whether its network is a mixture of experts."""
    return bool(run.net.experts)


def fit_values(runs: Sequence[Run], prior: Prior, known: Mapping[str, float]) -> dict[str, float]:
    """The values of a prior, by robust least squares; each stack and device has the same weight."""
    series = [*map(_find_series, runs)]
    weights = 1 / np.sqrt([series.count(key) for key in series]) / ROW_SPREAD
    centres, spreads = np.array([*prior.values()]).T

    def residuals(logs: Logs) -> Logs:
        """Of columns of logarithms [values, fits]."""
        fitted = {name: np.exp(row) for name, row in zip(prior, logs, strict=True)}
        same = {name: np.full(logs.shape[1], value) for name, value in known.items()}
        ratios = [predict_columns(run, same | fitted) / run.seconds for run in runs]
        far = [
            weight * np.arctan(2 * np.log(ratio)) / 2
            for weight, ratio in zip(weights, ratios, strict=True)
        ]
        return np.vstack([*far, (logs - np.log(centres)[:, None]) / spreads[:, None]])

    def slopes(logs: Logs) -> Logs:
        steps = np.eye(len(logs)) * STEP
        rows = residuals(np.column_stack([logs, logs[:, None] + steps]))
        return (rows[:, 1:] - rows[:, :1]) / STEP

    def residual(logs: Logs) -> Logs:
        return residuals(logs[:, None])[:, 0]

    start = np.log([FITTED[name] for name in prior])  # two steps from there suffice
    solved = least_squares(residual, start, slopes, max_nfev=3)
    return dict(known) | dict(zip(prior, map(float, np.exp(solved.x)), strict=True))


def fit(runs: Sequence[Run]) -> dict[str, float]:
    """All values: that of mixtures of experts after those of dense networks."""
    dense, mixed = ([run for run in runs if has_experts(run) == has] for has in (False, True))
    values = fit_values(choose_rows(dense), DENSE, {"expert_wait": 0.0})
    del values["expert_wait"]
    return fit_values(choose_rows(mixed), MIXED, values)


def leave_out(runs: Sequence[Run], find: Callable[[Run], str]) -> dict[str, dict[str, float]]:
    """Fits without each of what `find` names."""
    return {
        name: fit([run for run in runs if find(run) != name]) for name in sorted({*map(find, runs)})
    }


def predict_unseen(
    runs: Sequence[Run], find: Callable[[Run], str], fits: Mapping[str, Mapping[str, float]]
) -> Logs:
    """ln(predicted / measured) of each run by the fit that has not seen it."""
    return np.concatenate([compare_times([run], fits[find(run)]) for run in runs])


def find_inside(runs: Sequence[Run], logs: Logs) -> NDArray[np.bool_]:
    """Whether each run's 80 % interval holds its time."""
    return np.abs(logs) <= PERCENTILES[90] * find_spreads(runs, is_drawn=True)


def choose_rows(runs: Sequence[Run]) -> list[Run]:
    """At most MOST_ROWS of each stack and device."""
    chosen = []
    for _, group in groupby(sorted(runs, key=_find_series), _find_series):
        rows = [*group]
        chosen += rows[:: -(-len(rows) // MOST_ROWS)]
    return chosen


def _find_series(run: Run) -> tuple[str, str]:
    return run.stack, run.system.name


def measure_accuracy(logs: Logs) -> float:
    """Mean accuracy of runs, as docs/accuracy.md defines it; logs: ln(predicted / measured)."""
    return float(np.mean(np.maximum(1 - np.abs(np.exp(logs) - 1), 0)))


def measure(effort: Effort) -> Report:
    """Times as shipped and left out; memory by stack; independent of the effort."""
    timed = select_timed()
    finds = {
        "stack": find_stack,
        "source": find_source,
        "device": find_device,
        "size": find_size,
    }
    unseen = {
        what: predict_unseen(timed, find, leave_out(timed, find)) for what, find in finds.items()
    }
    rows = [
        *(
            Row(name, value, "", note=f"shipped {FITTED[name]:.3g}")
            for name, value in fit(timed).items()
        ),
        _sum_up("times, as shipped", timed, compare_times(timed, FITTED)),
    ]
    for what, logs in unseen.items():
        rows += _list_unseen(timed, logs, what, [*map(finds[what], timed)])
    rows += [_leave_far(timed, what, is_far) for what, is_far in FAR.items()]
    rows += [_calibrate(np.array(timed, object), unseen["stack"], n) for n in (0, 1, 2, 4, 8)]
    rows += _compare_memory()
    note = "Spreads are standard deviations of ln(predicted / measured)."
    return Report("layouts", "transformers by layout against published runs", tuple(rows), note)


def _list_unseen(timed: Sequence[Run], logs: Logs, what: str, of: Sequence[str]) -> list[Row]:
    """Times by fits without a stack, a device, or the networks of a size, whose names are `of`."""
    rows = []
    experts = np.array([*map(has_experts, timed)])
    tpus = np.array([is_systolic(run.device) for run in timed])
    names = np.array(of)
    some = {f"{what} {name} left out": (names == name) & ~experts for name in sorted({*names})}
    some[f"a {what} left out"] = ~experts & ~tpus
    some[f"a {what} left out, mixtures of experts"] = experts
    some[f"a {what} left out, TPUs"] = tpus
    for name, mask in some.items():
        if mask.any():
            rows.append(_sum_up(name, np.array(timed, object)[mask], logs[mask]))
    return rows


def _leave_far(timed: Sequence[Run], what: str, is_far: Callable[[Run], bool]) -> Row:
    """Times of the runs that lie far from all others, by a fit to those."""
    far, near = ([run for run in timed if is_far(run) == wanted] for wanted in (True, False))
    logs = compare_times(far, fit(near))
    largest = max(run.net.parameters for run in near)
    most = max(int(run.layout.pes[0]) for run in near)
    beyond = [
        find_far_spread(run.net.parameters, int(run.layout.pes[0]), largest, most) for run in far
    ]
    spreads = np.hypot(find_spreads(far, is_drawn=True), beyond)
    inside = float(np.mean(np.abs(logs) <= PERCENTILES[90] * spreads))
    note = f"{len(far)} runs; intervals hold {inside:.0%}"
    goals = at_least(inside, 0.75), at_most(inside, 0.88, "")
    return Row(f"all of {what} left out", measure_accuracy(logs), "", goals=goals, note=note)


def _calibrate(timed: NDArray[np.object_], logs: Logs, most: int) -> Row:
    """Times by a calibration of at most so many runs, evenly chosen, of other sizes of the stack.

    Each size of each stack on a device counts alike; the software is not stated.
    """
    series, sizes = (np.array([str(of(run)) for run in timed]) for of in (_find_series, find_size))
    slopes = np.array([find_elasticities(run) for run in timed])
    accuracies, held, widths = [], [], []
    for of, size in sorted({*zip(series, sizes, strict=True)}):
        others = np.flatnonzero((series == of) & (sizes != size))
        left = np.flatnonzero((series == of) & (sizes == size))
        if not others.size:
            continue
        few = others[np.linspace(0, others.size - 1, min(others.size, most)).astype(int)]
        priors = list_spreads(timed[left[0]].system, DRAWN_OF_BLOCKS)
        times = fit_times(-logs[few], find_spreads(timed[few]), slopes[few], priors)
        off = logs[left] + move_times(times, slopes[left], priors)
        spreads = find_spreads(timed[left], times, is_known=False)
        accuracies.append(measure_accuracy(off))
        held.append(np.abs(off) <= PERCENTILES[90] * spreads)
        widths += [*spreads]
    note = (
        f"{len(held)} sizes of networks, each left out of its stack's runs on a device; 80 % "
        f"intervals hold {np.mean(np.concatenate(held)):.0%} of {len(widths)} runs, "
        f"{np.mean([*map(np.mean, held)]):.0%} of sizes alike; mean spread {np.mean(widths):.3f}"
    )
    return Row(f"times, calibrated by {most} runs", float(np.mean(accuracies)), "", note=note)


def find_spreads(
    runs: Iterable[Run],
    calibrated: LayoutTime | None = None,
    is_known: bool = True,
    is_drawn: bool = False,
) -> Logs:
    """The spread of ln(predicted / measured) of each run; is_drawn: with parameters' draws."""
    spreads = [
        np.hypot(
            find_spread(run.device, run.precision, run.net.family, is_known, calibrated, is_drawn),
            find_drawn_spread(run) if is_drawn else 0.0,
        )
        for run in runs
    ]
    return np.array(spreads)


def _sum_up(what: str, runs: Sequence[Run], logs: Logs) -> Row:
    """Accuracy of runs, with what their intervals hold."""
    inside, middle = float(np.mean(find_inside(runs, logs))), np.exp(np.median(logs))
    note = f"{len(logs)} runs; median predicted/measured {middle:.2f}; intervals hold {inside:.0%}"
    return Row(what, measure_accuracy(logs), "", note=note)


def _compare_memory() -> list[Row]:
    """The median of predicted / measured memory of each stack, and its range.

    Also the factor by which a card shows more than formulas with context and workspaces, which are
    no part of what is allocated or reserved.
    """
    measured = sorted((run for run in read_runs() if run.memory), key=_find_series)
    rows = []
    for (stack, kind), group in groupby(measured, lambda run: (run.stack, run.memory_kind)):
        runs = [*group]
        sizes, known = np.array([(predict_memory(run), run.memory) for run in runs]).T
        beside = find_reserved(runs[0])
        shown = known + beside * (kind in ("allocated", "reserved"))
        factors = np.log(shown / (sizes + beside))
        low, middle, high = np.quantile(sizes / known, (0.1, 0.5, 0.9))
        note = f"{len(runs)} runs, {kind}; eight of ten from {low:.2f} to {high:.2f}; a card shows "
        note += f"{np.exp(np.median(factors)):.2f} of formulas, spread {factors.std():.2f}"
        rows.append(Row(f"memory of {stack}", float(middle), "", note=note))
    return rows
