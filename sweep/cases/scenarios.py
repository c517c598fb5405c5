"""Describe one draw of an uncertain machine by the parameters that matter most in it."""

from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.entries.parameters import PARAMETERS
from grids.grid import Grid
from grids.reading.units import format_quantity
from kernels.configuration.answers import LayoutCase
from kernels.configuration.case import Case, Uncertainty
from kernels.machine.software import Software
from sweep.answers.numbers import number
from sweep.cases.probability import draw_sample_times
from sweep.cases.row_cases import build_row_case

Row = Mapping[str, Any]

NAMES = tuple(field.name for field in fields(Software))
# Most parameters that are named; each needs at least this fraction of the largest effect.
MOST, LEAST = 2, 0.25


def describe_draw(grid: Grid, row: Row, other: Row, draw: int) -> str:
    """Name the parameters that slow `row` most against `other` in a draw, with their values.

    The effect of a parameter is found by setting it alone to its value in the draw. row, other:
    rows of `best`.
    """
    case, rival = (build_row_case(grid.ask_intervals(), pick) for pick in (row, other))
    if isinstance(case, LayoutCase) or isinstance(rival, LayoutCase):
        return "the predictions' own errors"  # layouts have no draws of parameters
    effects = _move_one_by_one(case, draw) - _move_one_by_one(rival, draw)
    effects = effects[:-1] - effects[-1]
    order = np.argsort(-effects)[:MOST]
    named = [at for at in order if effects[at] > LEAST * effects[order[0]]]
    return ", ".join(_write_parameter(case, at, draw) for at in named) or "as expected"


def _move_one_by_one(case: Case, draw: int) -> NDArray[np.float64]:
    """Log time per sample with each parameter alone set to its draw; the last with none."""
    drawn = case.uncertainty
    assert drawn is not None  # intervals were asked for
    count = len(NAMES) + 2

    def move(values: Any, at: int) -> NDArray[np.float64]:
        moved = np.ones((count, *np.shape(values)[1:]))
        moved[at] = np.asarray(values)[draw]
        return moved

    alone: Uncertainty = replace(
        drawn,
        factors=Software(
            **{name: move(getattr(drawn.factors, name), at) for at, name in enumerate(NAMES)}
        ),
        serial=move(drawn.serial, len(NAMES)),
    )
    times, _ = draw_sample_times(replace(case, uncertainty=alone, training=None))
    logarithms: NDArray[np.float64] = np.log(np.asarray(times, float))
    return logarithms


def _write_parameter(case: Case, at: int, draw: int) -> str:
    """Write a parameter's value in a draw, and its expected value."""
    drawn = case.uncertainty
    assert drawn is not None
    if at == len(NAMES):
        return f"time on one PE x {float(np.ravel(drawn.serial[draw])[0]):.2g}"
    name = NAMES[at]
    factor = float(np.ravel(getattr(drawn.factors, name)[draw])[0])
    expected = number(getattr(case.software, name))
    values = (_write(name, value) for value in (expected * factor, expected))
    return "{} {} (expected {})".format(name, *values)


def _write(name: str, value: float) -> str:
    unit = PARAMETERS[name].unit
    return f"{value:.2g}" if unit == "1" else format_quantity(value, unit, digits=3)
