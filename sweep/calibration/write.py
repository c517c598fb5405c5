"""A calibration as a readable YAML file, with the meaning and unit of each number.

Numbers are rounded to their meaningful digits, so that the same runs give the same file everywhere.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from grids.entries.calibration import CalibrationFile, list_priors
from grids.entries.yamltext import format_entry
from grids.reading.textfile import write_text

HEAD = (
    "Parameters of this machine, fitted to measured runs. Written by `paradl calibrate`, which "
    "overwrites changes. A spread is that of the logarithm: 0.1 is about 10 %."
)
# These numbers have four significant digits, all others three.
FINE = ("value", "factor", "profile_factor", "profile_spread", "roofline_factor", "roofline_spread")
# Keys of a file whose runs were all of layouts.
WITHOUT_PARAMETERS = (
    *("name", "title", "source", "system", "oracle", "precision", "software"),
    *("layouts", "accuracy"),
)


def write(file: CalibrationFile, path: Path) -> None:
    """Write or overwrite a file. InputError: it cannot be written."""
    write_text(format_file(file), path)


def format_file(file: CalibrationFile) -> str:
    """Return the file's text."""
    values = {key: _round(key, part) for key, part in file.definition().items()}
    if not file.parameters:  # runs of layouts alone say nothing about the rest
        values = {key: value for key, value in values.items() if key in WITHOUT_PARAMETERS}
    else:
        # Adding 0 turns -0 into 0.
        lines = [[round(number, 2) + 0.0 for number in row] for row in file.correlation]
        values["correlation"] = lines
        for parameter in values["parameters"].values():
            if parameter["determined"]:
                del parameter["determined"]
    return format_entry(file, HEAD, values, dict(_explain_parameters(file)))


def _round(key: str, value: Any) -> Any:
    """Round all numbers of a part of the file to significant digits."""
    if isinstance(value, dict):
        return {name: _round(name, part) for name, part in value.items()}
    if isinstance(value, list):
        return [_round(key, part) for part in value]
    digits = 4 if key in FINE else 3
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value


def _explain_parameters(file: CalibrationFile) -> Iterator[tuple[str, str]]:
    """Yield a comment on each parameter: its meaning, unit and prior."""
    for name, prior in list_priors(file.precision, file.software).items():
        unit = "" if prior.row.unit == "1" else f" [{prior.row.unit}]"
        yield name, f"{prior.row.meaning}{unit} ({prior.median:.3g}, {prior.spread:g})"
