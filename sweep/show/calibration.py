"""A calibration as text: for people how accurate it is, then its parameters; as CSV the latter."""

from typing import Any

from grids.entries.calibration import PRIORS, CalibrationFile
from sweep.show.comparison import PART_NAMES, format_percent
from sweep.show.tables import Format, print_json, print_table, show

FROM_RUNS, FROM_PRIOR = "the runs", "mostly the prior"


def show_calibration(found: CalibrationFile, form: Format) -> None:
    """Print what `calibrate` found."""
    if form == "json":
        print_json(found.definition())
        return
    if form == "csv":
        show(_list_parameters(found), form)
        return
    print_table(
        _list_accuracies(found), "Accuracy, and share within 80% intervals, of runs left out"
    )
    print_table(_list_parameters(found), "Parameters: value and spread of its logarithm")


def _list_accuracies(found: CalibrationFile) -> list[dict[str, Any]]:
    """A line for each way to leave runs out."""
    return [
        {
            "left out": "nothing (fit)" if scheme == "fit" else scheme,
            "rows": int(each["rows"]),
            **{
                name: f"{format_percent(each.get(part))}, {format_percent(each.get(f'{part}_in_interval'))}"
                for part, name in PART_NAMES.items()
            },
        }
        for scheme, each in found.accuracy.items()
    ]


def _list_parameters(found: CalibrationFile) -> list[dict[str, Any]]:
    return [
        {
            "parameter": name,
            "unit": PRIORS[name].unit,
            "value": each.value,
            "spread": each.spread,
            "prior": PRIORS[name].median,
            "prior_spread": PRIORS[name].spread,
            "from": FROM_RUNS if each.determined else FROM_PRIOR,
            "meaning": PRIORS[name].meaning,
        }
        for name, each in found.parameters.items()
    ]
