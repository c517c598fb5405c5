"""A calibration as text: for people how accurate it is, then its parameters; as CSV the latter."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from grids.entries.calibration import CalibrationFile, list_priors
from sweep.show.comparison import PART_NAMES, format_percent
from sweep.show.tables import Format, print_table, show_sections

FROM_RUNS, FROM_PRIOR = "the runs", "mostly the prior"


def show_calibration(calibration: CalibrationFile, form: Format) -> None:
    """Print what `calibrate` answers."""
    parameters = _list_parameters(calibration)
    show_sections(calibration.definition(), parameters, form, partial(_print, calibration))


def _print(calibration: CalibrationFile) -> None:
    """Print tables of accuracies and of parameters."""
    print_table(
        _list_accuracies(calibration), "Accuracy, and share within 80% intervals, of runs left out"
    )
    print_table(_list_parameters(calibration), "Parameters: value and spread of its logarithm")


def _list_accuracies(calibration: CalibrationFile) -> list[dict[str, Any]]:
    """A line for each way to leave runs out."""
    return [
        {
            "left out": "nothing (fit)" if scheme == "fit" else scheme,
            "rows": int(accuracy["rows"]),
            **{name: _format_accuracy(accuracy, part) for part, name in PART_NAMES.items()},
        }
        for scheme, accuracy in calibration.accuracy.items()
    ]


def _format_accuracy(accuracy: Mapping[str, float], part: str) -> str:
    """A part's mean accuracy, and the share of runs within their intervals."""
    mean, inside = accuracy.get(part), accuracy.get(f"{part}_in_interval")
    return f"{format_percent(mean)}, {format_percent(inside)}"


def _list_parameters(calibration: CalibrationFile) -> list[dict[str, Any]]:
    """A line for each parameter: its value beside the prior, and which of the two it is from."""
    priors = list_priors(calibration.precision, calibration.software)
    return [
        {
            "parameter": name,
            "unit": priors[name].row.unit,
            "value": each.value,
            "spread": each.spread,
            "prior": priors[name].median,
            "prior_spread": priors[name].spread,
            "from": FROM_RUNS if each.determined else FROM_PRIOR,
            "meaning": priors[name].row.meaning,
        }
        for name, each in calibration.parameters.items()
    ]
