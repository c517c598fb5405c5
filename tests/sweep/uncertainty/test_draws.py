"""Draws against plain predictions with each parameter moved by hand."""

from dataclasses import replace

import numpy as np
import pytest

from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.inputs.draws import DRAWS, draw_normals
from paradl.grids.inputs.uncertainty import NAMES, PRIOR_ERROR
from paradl.kernels.configuration.case import Case
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.uncertainty.draws import (
    ERRORS,
    PARTS,
    RIVAL_ERRORS,
    draw_both_times,
    draw_terms,
)

# Where nothing is hidden and nobody waits for the slowest, a slower model only stretches its work.
STATED = {"overlap": 0, "jitter": 0}
PRIORS = {"calibration": "none"}
COMPUTED = ("forward_backward", "pass_overhead")


def read_grid(pe):
    options = SpaceValues(
        "alexnet", pe, 32, "imagenet", "abci", strategy="data", parameters=STATED, settings=PRIORS
    )
    return make_grid(options).ask_intervals()


@pytest.fixture(scope="module")
def case():
    return read_grid(64).case((0, 0, 0, 0))


def move(case, name, number):
    """A parameter in a draw, as users write it; None where nothing is bounded by it."""
    own = float(np.ravel(getattr(case.software, name))[0])
    drawn = own * float(np.ravel(getattr(case.uncertainty.factors, name))[number])
    if name in ("overlap", "rail", "flow"):
        drawn = min(drawn, max(own, 1.0))
    unit = PARAMETERS[name].unit
    return None if np.isinf(drawn) else drawn if unit == "1" else f"{drawn!r} {unit}"


@pytest.mark.parametrize("number", [0, 5, DRAWS - 1])
def test_a_draw_is_a_prediction_of_moved_parameters(case, number):
    moved = {name: move(case, name, number) for name in NAMES}
    given = {name: value for name, value in moved.items() if value is not None} | STATED
    options = SpaceValues("alexnet", 64, 32, "imagenet", "abci", strategy="data", parameters=given)
    query = make_grid(replace(options, settings=PRIORS)).case((0, 0, 0, 0))
    assert isinstance(query, Case)
    predicted = answer_case(query)
    slower = float(np.ravel(case.uncertainty.serial)[number])
    terms = {name: float(np.ravel(getattr(predicted.terms, name))[0]) for name in PARTS}
    iterations = float(np.ravel(predicted.iterations)[0])
    # Hosts launch slower models as fast: M(X, Y) - X of another X.
    device = slower * sum(terms[name] for name in COMPUTED) / iterations
    launching = float(np.ravel(query.software.layer_overhead * query.machine_work.launches)[0])
    terms["launch_wait"] = iterations * ((device**4 + launching**4) ** 0.25 - device)
    computing, reducing, exchanging = draw_normals(ERRORS)[number]
    drawn = draw_terms(case)
    for name in PARTS:
        expected = terms[name]
        if name == "gradient_exchange":
            expected *= np.exp(PRIOR_ERROR.reduce * reducing)
        elif name == "log_files":  # of data parallelism nothing else is communicated
            expected *= np.exp(PRIOR_ERROR.exchange * exchanging)
        else:
            expected *= np.exp(PRIOR_ERROR.serial * computing) * (slower if name in COMPUTED else 1)
        assert drawn[name][..., number].item() == pytest.approx(expected, rel=1e-9), name


def test_rivals_have_errors_of_their_own():
    # Nothing is communicated on one PE: all of the time has the error of computing.
    times = draw_both_times(read_grid(1).case((0, 0, 0, 0)))
    rival, own = (draw_normals(names)[:, 0] for names in (RIVAL_ERRORS, ERRORS))
    expected = PRIOR_ERROR.serial * (rival - own)
    assert np.log(times[1] / times[0]).ravel() == pytest.approx(expected)
