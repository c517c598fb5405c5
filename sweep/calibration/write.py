"""A calibration as a YAML file that people can read: what each number means, and its unit.

Figures are rounded to what they are worth, so that the same runs give the same file everywhere.
"""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path

import yaml

from grids.entries.calibration import (
    CalibrationFile,
    LogPrior,
    ModelError,
    Parameter,
    Series,
    list_priors,
)
from grids.reading.errors import InputError

HEAD = """\
# What measured runs tell of this machine: written by `paradl calibrate`, which overwrites changes.
# A spread is that of the logarithm: 0.1 is about 10 %.
"""
PARAMETERS = """
# Factors on what the system states, or times [s]. In brackets: the prior's median and spread.
# determined: false where the runs do not halve that spread, and the value is mostly the prior's.
parameters:
"""
CORRELATION = """
# Of the parameters' logarithms in that order, the lower triangle.
correlation:
"""
SERIAL = """
# Time on one PE, of what the model's profile (or the roofline) says. Models that did not run have
# the machine's factor and spread for models with a profile, or for those without (the roofline).
"""
ERROR = """
# What the formulas leave unexplained in runs that were left out.
error:
"""
SERIES = """
# The runs that were fitted; beyond them a prediction is an extrapolation.
series:
"""
ACCURACY = """
# 1 - |predicted - measured| / measured, averaged, and the share of measured times in their 80 %
# intervals. fit: of the runs that were fitted; the others: of runs while they were left out.
accuracy:
"""
ERRORS = {
    "serial": "compute of whole models",
    "group": "compute of divided models",
    "reduce": "rings of gradients",
    "exchange": "all other communication",
    "unseen": "wider by so much for a series that was not fitted",
    "distance": "and for each factor of two from its nearest number of PEs",
}


def expect_folder(path: Path) -> None:
    """InputError: there is no folder for the file, or it is one."""
    if not path.parent.is_dir():
        raise InputError(f"no folder {str(path.parent)!r}", where=str(path), advice="make it first")
    if path.is_dir():
        raise InputError("expected a file, got a folder", where=str(path), advice="name the file")


def expect_another(path: Path, measured: Path) -> None:
    """InputError: the file would take the place of the runs that it is made of."""
    # By the file itself, which links and other spellings lead to as well.
    if path.exists() and measured.exists() and path.samefile(measured):
        raise InputError(
            "it holds the measured runs", where=str(path), advice="name another output file"
        )


def write(file: CalibrationFile, path: Path) -> None:
    """Write, or overwrite, a file. InputError: it cannot be."""
    try:
        path.write_text(format_file(file), encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror}", where=str(path)) from None


def format_file(file: CalibrationFile) -> str:
    """The file's text."""
    parts = (
        HEAD,
        *_write_head(file),
        PARAMETERS,
        *_write_parameters(file),
        CORRELATION,
        *map(_write_row, file.correlation),
        SERIAL,
        *_write_serial(file),
        ERROR,
        *_write_errors(file.error),
        SERIES,
        *map(_write_series, file.series),
        f"layers: [{', '.join(map(_write_scalar, file.layers))}]\n",
        ACCURACY,
        *(f"  {name}: {_write_inline(each)}\n" for name, each in file.accuracy.items()),
    )
    return "".join(parts)


def _write_head(file: CalibrationFile) -> Iterator[str]:
    for key in ("name", "title", "source", "system", "oracle", "precision", "software"):
        value = getattr(file, key)
        yield f"{key}: {_write_scalar(value if isinstance(value, str) else '; '.join(value))}\n"


def _write_parameters(file: CalibrationFile) -> Iterator[str]:
    priors = list_priors(file.precision, file.software)
    for name, parameter in file.parameters.items():
        yield _write_parameter(name, parameter, priors[name])


def _write_parameter(name: str, parameter: Parameter, prior: LogPrior) -> str:
    numbers = (
        f"value: {_write_number(parameter.value)}, spread: {_write_number(parameter.spread, 3)}"
    )
    mark = "" if parameter.determined else ", determined: false"
    return f"  {name}: {{{numbers}{mark}}}  # {_write_meaning(prior)}\n"


def _write_meaning(prior: LogPrior) -> str:
    row = prior.row
    unit = "" if row.unit == "1" else f" [{row.unit}]"
    return f"{row.meaning}{unit} ({_write_number(prior.median, 3)}, {prior.spread:g})"


def _write_row(correlations: tuple[float, ...]) -> str:
    # Adding 0 turns -0 into 0.
    return f"  - [{', '.join(f'{round(each, 2) + 0.0:.2f}' for each in correlations)}]\n"


def _write_serial(file: CalibrationFile) -> Iterator[str]:
    for name in ("profile_factor", "profile_spread", "roofline_factor", "roofline_spread"):
        yield f"{name}: {_write_number(getattr(file, name))}\n"
    yield "serial:\n" if file.serial else "serial: {}\n"
    for model, each in file.serial.items():
        numbers = f"factor: {_write_number(each.factor)}, spread: {_write_number(each.spread, 3)}"
        yield f"  {_write_scalar(model)}: {{{numbers}}}\n"
    yield "# Fingerprints of these networks: another one of the same name did not run.\n"
    yield "architectures:\n" if file.architectures else "architectures: {}\n"
    for model, digest in file.architectures.items():
        yield f"  {_write_scalar(model)}: {_write_scalar(digest)}\n"


def _write_errors(error: ModelError) -> Iterator[str]:
    for name, meaning in ERRORS.items():
        yield f"  {name}: {_write_number(getattr(error, name), 3)}  # {meaning}\n"


def _write_series(series: Series) -> str:
    fields = [
        f"{key}: {_write_scalar(getattr(series, key))}" for key in ("model", "dataset", "strategy")
    ]
    counts = [f"{key}: {list(getattr(series, key))}" for key in ("pe", "batch")]
    return f"  - {{{', '.join([*fields, *counts])}}}\n"


def _write_inline(values: Mapping[str, float]) -> str:
    return f"{{{', '.join(f'{name}: {_write_number(each, 3)}' for name, each in values.items())}}}"


def _write_number(value: float, digits: int = 4) -> str:
    """Rounded to significant digits, as YAML reads a number."""
    return f"{value:.{digits}g}"


def _write_scalar(value: str) -> str:
    """A text as YAML reads it back, quoted where it must be."""
    # PyYAML folds long lines, unless they may be of any width, and ends a lone scalar with "...".
    dumped: str = yaml.safe_dump(value, width=math.inf, default_flow_style=True)
    return dumped.removesuffix("\n").removesuffix("...").strip()
