"""Published runs of transformers that no fit has seen, predicted by the rates as shipped."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from benchmarks.forecasts import Forecast, forecast, list_logs, sum_up
from benchmarks.layout_runs import UNSEEN, Run, read_runs
from benchmarks.layouts import find_device, find_stack, has_experts, measure_accuracy, select_timed
from benchmarks.report import Effort, Report, Row
from paradl.grids.entries.transformer_rates import FITTED
from paradl.grids.reading.errors import format_count

LARGE = 1e11  # parameters
WIDE = 15_000  # features of a position
MANY = 1024  # PEs

PARTS: Mapping[str, Callable[[Run], bool]] = {
    "dense": lambda run: not has_experts(run),
    "mixtures of experts": has_experts,
    "below 100 billion parameters": lambda run: run.net.parameters < LARGE,
    "100 billion parameters and more": lambda run: run.net.parameters >= LARGE,
    "more than 15,000 features": lambda run: run.net.hidden > WIDE,
    "up to 1,024 PEs": lambda run: run.layout.pes[0] <= MANY,
    "more than 1,024 PEs": lambda run: run.layout.pes[0] > MANY,
}
LABELS: Sequence[Callable[[Run], str]] = (lambda run: run.precision, find_stack, find_device)


def forecast_runs() -> list[Forecast]:
    """Predict each run with a time that no fit has seen."""
    fitted = select_timed()
    return [forecast(run, FITTED, fitted) for run in read_runs(UNSEEN) if run.seconds]


def summarise(forecasts: Sequence[Forecast]) -> list[list[str]]:
    """Lines of SUMS, one per part."""
    return [sum_up(name, rows) for name, rows in divide(forecasts)]


def divide(forecasts: Sequence[Forecast]) -> Iterator[tuple[str, list[Forecast]]]:
    """Yield each collection of runs and its parts, which overlap, with their names."""
    for collection in dict.fromkeys(row.run.collection for row in forecasts):
        rows = [row for row in forecasts if row.run.collection == collection]
        yield collection, rows
        for name, is_part in PARTS.items():
            part = [row for row in rows if is_part(row.run)]
            if 0 < len(part) < len(rows):
                yield f"{collection}, {name}", part
        for find_label in LABELS:
            for label in sorted({find_label(row.run) for row in rows}):
                yield f"{collection}, {label}", [r for r in rows if find_label(r.run) == label]


def measure(effort: Effort) -> Report:
    """Accuracy, coverage and baselines of each part of the runs that no fit has seen."""
    lines = []
    for name, rows in divide(forecast_runs()):
        _, runs, _, inside, middle, constant, rule = sum_up(name, rows)
        note = (
            f"{format_count(int(runs), 'run')}; median predicted/measured {middle}; "
            f"intervals hold {inside}; constant MFU {constant}, 6 P {rule}"
        )
        lines.append(Row(name, measure_accuracy(list_logs(rows)), "", note=note))
    return Report("unseen", "published runs of transformers that no fit has seen", tuple(lines))
