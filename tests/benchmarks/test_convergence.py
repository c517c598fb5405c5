"""Laws at batches that they have not seen: the goals, and no leak into a fit."""

import pytest

from benchmarks import convergence
from benchmarks.convergence import NEAR, leave_large_out, median_error, select
from benchmarks.report import QUICK


@pytest.fixture(scope="module")
def entries():
    return convergence.fit_series()


@pytest.fixture(scope="module")
def rows(entries):
    return leave_large_out(entries)


@pytest.mark.parametrize("points", [2, 3])
def test_largest_batches_are_predicted_within_twice_the_largest_fitted(points, rows):
    near = select(rows, near=True, last=True).query(f"points >= {points}")
    assert len(near) >= 17
    assert median_error(near["error"]) <= 0.06  # the goal is 0.15


@pytest.mark.parametrize("points", [2, 3])
@pytest.mark.parametrize("near", [True, False])
def test_intervals_hold(points, near, rows):
    fitted = select(rows, near=near).query(f"points >= {points}")
    assert len(fitted) >= 50
    assert ((fitted["ratio"] <= NEAR) == near).all()
    assert 0.7 <= fitted["covered"].mean() <= 0.9


def test_intervals_hold_between_measured_batches(entries):
    inner = convergence.leave_inner_out(entries)
    assert 0.7 <= inner["covered"].mean() <= 0.9
    assert median_error(inner["error"]) <= 0.04
    # Tables earn their place.
    assert median_error(inner["table"]) < median_error(inner["error"])


def test_a_left_out_batch_does_not_affect_its_prediction(entries, rows):
    entry = entries[0]
    wrong = entry.points[-1].model_copy(update={"epochs": 1000.0})
    shifted = leave_large_out([entry.model_copy(update={"points": (*entry.points[:-1], wrong)})])
    expected = rows[rows["series"] == shifted["series"][0]]
    assert expected["predicted"].tolist() == shifted["predicted"].tolist()
    assert shifted["measured"].iloc[-1] == 1000


def test_the_report_has_a_row_for_each_series(entries):
    report = convergence.measure(QUICK)
    assert sum(row.unit == "epochs" for row in report.rows) == len(entries) == 23
    assert all(goal.met for row in report.rows for goal in row.goals)
