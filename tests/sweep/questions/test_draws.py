"""Draws against plain predictions with each parameter moved by hand."""

import numpy as np
import pytest

import sweep
from grids.entries.parameters import PARAMETERS
from grids.inputs.uncertainty import DRAWS, NAMES, PRIOR_ERROR, draw_errors, draw_normals
from sweep.questions.adhoc import Options, make_grid
from sweep.questions.draws import COLUMNS, PARTS, RIVALS, draw_terms, find_range, name_range

# Where nothing is hidden and nobody waits for the slowest, a slower model only stretches its work.
STATED = {"overlap": 0, "jitter": 0}
PRIORS = {"calibration": "none"}
COMPUTED = ("forward_backward", "pass_overhead")


@pytest.fixture(scope="module")
def case():
    options = Options(
        "alexnet", 64, 32, "imagenet", strategy="data", parameters=STATED, settings=PRIORS
    )
    return make_grid(options).ask_intervals().case((0, 0, 0, 0))


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
    predicted = sweep.predict(
        "alexnet", "data", 64, 32, dataset="imagenet", parameters=given, settings=PRIORS
    )
    slower = float(np.ravel(case.uncertainty.serial)[number])
    computing, reducing, _, *_ = draw_errors(COLUMNS)[number]
    drawn = draw_terms(case)
    for name in PARTS:
        expected = predicted["terms"][name]
        if name == "gradient_exchange":
            expected *= np.exp(PRIOR_ERROR.reduce * reducing)
        else:  # of data parallelism nothing else is communicated
            expected *= np.exp(PRIOR_ERROR.serial * computing) * (slower if name in COMPUTED else 1)
        assert drawn[name][..., number].item() == pytest.approx(expected, rel=1e-9), name


def test_rivals_have_errors_of_their_own(case):
    own, rival = draw_terms(case), draw_terms(case, RIVALS)
    ratio = np.log(rival["weight_update"] / own["weight_update"]).ravel()
    normals = draw_errors(COLUMNS)
    assert ratio == pytest.approx(PRIOR_ERROR.serial * (normals[:, 3] - normals[:, 0]))


def test_errors_are_uncorrelated_with_all_else():
    normals = np.hstack([draw_normals(len(NAMES) + 1), draw_errors(COLUMNS)])
    assert normals.T @ normals / DRAWS == pytest.approx(np.eye(normals.shape[1]), abs=1e-12)
    assert normals.mean(axis=0) == pytest.approx(0, abs=1e-12)


def test_ranges_are_percentiles():
    assert find_range(np.arange(101.0)) == (10.0, 90.0)
    assert name_range("share", np.array([1.0, np.nan])) == {"share_p10": None, "share_p90": None}
