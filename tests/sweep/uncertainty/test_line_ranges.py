"""Ranges of limits against each cell's draws, one by one."""

from typing import Any

import numpy as np
import pytest
from open_answers import list_limits

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.strategies import Strategy
from paradl.grids.inputs.draws import DRAWS
from paradl.kernels.names.flags import FORBIDS
from paradl.kernels.oracle.answer import answer_case
from paradl.sweep.questions.limits import FEW
from paradl.sweep.uncertainty.draws import draw_times
from paradl.sweep.uncertainty.intervals import MOST_COUNTS, _thin

COUNTS = [1, 8, 64, 256]


@pytest.fixture(scope="module")
def grid():
    return make_grid(SpaceValues("vgg16", COUNTS, 32, "imagenet", "abci", strategy="data,filter"))


@pytest.fixture(scope="module")
def rows(grid):
    return list_limits(grid, efficiency=0.6)


def draw_cell(grid, index, pe, batch, strategy=None):
    case = grid.case(index, {"pe": np.array([pe]), "batch": np.array([batch])}, strategy)
    forbidden = int(np.ravel(answer_case(case).limit)[0]) & FORBIDS
    return np.full(DRAWS, np.inf) if forbidden else draw_times(case).ravel()


def find_percentiles(counts):
    """The counts that at least 10 % and 90 % of the draws do not exceed; None for none."""
    ordered = sorted(counts)
    return [ordered[int(np.ceil(share * DRAWS)) - 1] or None for share in (0.1, 0.9)]


def test_best_counts_against_every_draw_of_every_cell(grid, rows):
    sure = grid.ask_intervals()
    assert len(rows) == 2
    for row in rows:
        index = (0, 0, 0, grid.labels["strategy"].index(row["strategy"]))
        alone = draw_cell(sure, index, 1.0, row["batch"], Strategy("serial"))
        cells = {pe: draw_cell(sure, index, float(pe), row["batch"]) for pe in COUNTS}
        fastest, efficient = [], []
        for n in range(DRAWS):
            fastest.append(min((cell[n], pe) for pe, cell in cells.items())[1])
            kept = [pe for pe in cells if alone[n] / cells[pe][n] / pe >= 0.6]
            efficient.append(max(kept, default=0))
        for name, counts in (("fastest_pe", fastest), ("efficient_pe", efficient)):
            assert [row[f"{name}_p10"], row[f"{name}_p90"]] == find_percentiles(counts)
    assert any(row["efficient_pe_p10"] != row["efficient_pe_p90"] for row in rows)


def test_times_have_the_intervals_of_predictions(rows):
    for row in rows:
        predicted = paradl.predict(
            "vgg16",
            row["strategy"],
            row["fastest_pe"],
            row["batch"],
            dataset="imagenet",
            system="abci",
        )
        interval = predicted["intervals"]["iteration_time"]
        ratio = predicted["epoch_time"] / predicted["iteration_time"]
        for percent in (10, 90):
            expected = interval[f"p{percent}"] * ratio
            assert row[f"fastest_time_p{percent}"] == pytest.approx(expected, rel=1e-5)


def test_trainings_have_their_own():
    settings: dict[str, Any] = {"convergence": "auto"}
    options = SpaceValues(
        "resnet50", COUNTS, 32, "imagenet", "abci", strategy="data", settings=settings
    )
    (row,) = list_limits(make_grid(options), objective="train_time")
    assert row["soonest_time_p10"] < row["soonest_time"] < row["soonest_time_p90"]
    assert row["soonest_pe_p10"] <= row["soonest_pe"] <= row["soonest_pe_p90"]


def test_few_rows_have_them_unless_asked_for(grid):
    options = SpaceValues("alexnet", 2, f"1..{FEW + 1}", "imagenet", "abci", strategy="data")
    assert "fastest_time_p10" not in list_limits(make_grid(options))[0]
    assert "fastest_time_p10" in list_limits(grid)[0]
    assert "fastest_time_p10" not in list_limits(grid, intervals=False)[0]


def test_what_is_nowhere_feasible_has_none():
    options = SpaceValues("cosmoflow", "1,2", 8, "cosmoflow-512", "abci", strategy="data")
    (row,) = list_limits(make_grid(options))
    assert row["fastest_time_p10"] is row["fastest_pe_p90"] is row["efficient_pe_p10"] is None


def test_of_long_lines_some_counts_are_asked_about():
    every = np.arange(1.0, 1001)
    some = _thin(every, [77, None])
    assert {1, 77, 1000} <= {*some}
    assert MOST_COUNTS <= some.size <= MOST_COUNTS + 1
