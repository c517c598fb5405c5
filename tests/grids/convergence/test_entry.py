"""Entries: stated or fitted, written and read again, and drawn."""

import json
import math

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from paradl.grids.convergence.entry import STATED_ERROR, Convergence, Point, interpolate_epochs
from paradl.grids.inputs.draws import draw_normals
from paradl.kernels.configuration.convergence import count_epochs, spread_epochs

STATED = {
    "name": "mine",
    "model": "toy",
    "dataset": "small",
    "target": "90 %",
    "epochs_min": 7.0,
    "critical_batch": 1000.0,
}
BATCHES = np.array([1.0, 100, 1000, 1e6])


def test_a_definition_gives_the_very_same_law(fit_points):
    entry = fit_points("64,10,", "256,9.5,", "1024,20,", "4096,never,")
    again = Convergence.from_definition(json.loads(json.dumps(entry.definition())))
    assert again == entry
    assert again.law == entry.law
    assert again.converges_to == 1024
    assert len(again.warnings) == 1


def test_a_stated_law():
    entry = Convergence.from_definition(STATED)
    assert count_epochs(entry.law, 1000) == 14
    assert spread_epochs(entry.law, 1000) == pytest.approx(STATED_ERROR)
    assert (entry.smallest, entry.largest) == (None, None)
    assert not entry.is_extrapolated(10**6)


def test_without_a_critical_batch_epochs_are_constant():
    constant = {key: value for key, value in STATED.items() if key != "critical_batch"}
    entry = Convergence.from_definition(constant)
    assert entry.law.critical_batch == math.inf
    np.testing.assert_array_equal(count_epochs(entry.law, BATCHES), 7)
    drawn = count_epochs(entry.draw_laws(draw_normals(("rail", "flow"))), 1000.0)
    np.testing.assert_array_equal(drawn, 7)
    assert Convergence.from_definition(entry.definition()) == entry


def test_what_lies_outside_the_measured_batches(fit_points):
    entry = fit_points("64,10,", "1024,20,")
    batches = (63, 64, 500, 1024, 1025)
    assert [entry.is_extrapolated(batch) for batch in batches] == [True, False, False, False, True]


def test_draws_have_the_law_s_spread(fit_points):
    """The spread is the law's; its error is for single runs."""
    entry = fit_points("64,10,", "256,11.5,", "1024,20,")
    drawn = entry.draw_laws(draw_normals(("rail", "flow")))
    assert drawn.epochs_min.shape == (32,)
    for batch in (0.0, 1024.0, 1e7):
        logs = np.log(count_epochs(drawn, batch))
        own = math.sqrt(spread_epochs(entry.law, batch) ** 2 - entry.error**2)
        assert np.std(logs) == pytest.approx(own, rel=0.1)
        assert np.mean(logs) == pytest.approx(
            math.log(count_epochs(entry.law, batch)), abs=0.3 * own
        )


def test_ratios_of_a_draw_are_surer_than_epochs(fit_points):
    entry = fit_points("64,10,", "256,11.5,", "1024,20,")
    drawn = entry.draw_laws(draw_normals(("rail", "flow")))
    low, high = (np.log(count_epochs(drawn, batch)) for batch in (2048.0, 4096.0))
    assert np.std(high - low) < 0.5 * np.std(high)


def order_points(*batches):
    return {"points": [{"global_batch": batch, "epochs": 7.0} for batch in batches]}


BAD = [
    ({"epochs_min": 0}, "greater than 0"),
    ({"epochs_min": math.nan}, "greater than 0|finite"),
    ({"epochs_min": True}, "expected a number"),
    ({"critical_batch": -1}, "greater than 0"),
    ({"critical_batch": math.inf}, "finite"),
    ({"error": -0.1}, "greater than or equal to 0"),
    ({"covariance": 0.1}, "covariance:"),
    ({"batch_variance": 0.04, "epochs_variance": 0.01, "covariance": 0.03}, "at most 0.02 in size"),
    ({"exponent": 1.5}, "Extra inputs"),
    (order_points(64, 32), "points:"),
    (order_points(64, 64), "points:"),
]


@pytest.mark.parametrize(("changes", "message"), BAD)
def test_what_is_no_law_is_refused(changes, message):
    with pytest.raises(ValidationError, match=message):
        Convergence.from_definition(STATED | changes)


LAW = Convergence.from_definition(STATED)


def with_points(*epochs: float) -> Convergence:
    """Return the stated law with epochs at batches of 1024, 2048 ..."""
    points = tuple(Point(global_batch=1024 << n, epochs=epoch) for n, epoch in enumerate(epochs))
    return LAW.model_copy(update={"points": points})


def test_points_are_met_and_lines_lie_between():
    table = with_points(4, 7, 12, 23)
    batches = np.array([1024.0, 2048, 4096, 8192, 3072])
    np.testing.assert_allclose(interpolate_epochs(table, batches), [4, 7, 12, 23, 9.5])


def test_outside_the_law_goes_on_from_the_ends():
    table = with_points(4, 7)
    law = LAW.law
    below, above = interpolate_epochs(table, np.array([512.0, 8192.0]))
    assert below == pytest.approx(4 * count_epochs(law, 512) / count_epochs(law, 1024))
    assert above == pytest.approx(7 * count_epochs(law, 8192) / count_epochs(law, 2048))


def test_epochs_that_fall_become_their_mean():
    table = interpolate_epochs(with_points(38, 40, 38, 50), np.array([2048.0, 3000.0, 4096.0]))
    np.testing.assert_allclose(table, 39)


@given(st.lists(st.floats(1, 100), min_size=1, max_size=6))
@limit_examples(50)
def test_a_table_never_falls(epochs):
    everywhere = interpolate_epochs(with_points(*epochs), np.geomspace(1, 1e7, 200))
    assert np.all(np.diff(everywhere) >= -1e-9 * everywhere[1:])


def test_without_points_it_is_the_law():
    batches = np.array([64.0, 2000.0])
    np.testing.assert_array_equal(interpolate_epochs(LAW, batches), count_epochs(LAW.law, batches))
