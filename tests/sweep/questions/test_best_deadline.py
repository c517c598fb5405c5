"""Best within a deadline: of what meets it by itself, the best by the objective."""

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest
from open_answers import rank_strategies

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.reading.errors import InputError

LAYERS = make_grid(
    SpaceValues(
        "resnet50",
        [8, 16, 24, 32],
        [32, 64],
        strategy="data,data+filter",
        dataset="imagenet",
        system="abci",
        settings={"convergence": "auto"},
    )
)
LAYOUTS = make_grid(
    SpaceValues(
        "llama3_8b",
        [8, 16, 32],
        system="dgx-h100",
        sequence=8192,
        global_batch=256,
        tokens="100G",
    )
)
Rows = list[dict[str, Any]]


def rank_alone(source: Any, axes: Mapping[str, Any], **options: Any) -> Rows:
    """Rank each cell by itself; return what is feasible."""
    cells = [dict(zip(axes, values, strict=True)) for values in product(*axes.values())]
    rows = [row for cell in cells for row in rank_strategies(source, cell, **options)]
    return [row for row in rows if row["feasible"]]


@pytest.mark.parametrize("objective", ["train_time", "pe_hours"])
@pytest.mark.parametrize("holds", [None, 0.95, 0.2])
@pytest.mark.parametrize("deadline", ["5 h", "2 h", "1 h"])
def test_the_best_of_all_cells_that_meet_it(objective, holds, deadline):
    options: dict[str, Any] = {"objective": objective, "deadline": deadline, "holds": holds}
    alone = rank_alone(LAYERS, LAYERS.axes, **options)
    for row in rank_strategies(LAYERS, None, **options):
        rivals = [other for other in alone if other["strategy"] == row["strategy"]]
        if rivals:
            assert row[objective] == min(other[objective] for other in rivals)
            assert row["holds"] >= (holds or 0.49)
        else:
            assert not row["feasible"]
            assert row["limit"] == ["too_slow"]
            assert row["rejection"] is None


def test_layouts_that_meet_it():
    """The layout of the fewest PE-hours may miss it, and does so with a probability."""
    options: dict[str, Any] = {"objective": "pe_hours", "layouts": 3}
    free = rank_strategies(LAYOUTS, **options)[0]
    deadline = free["train_time"] * 1.01
    for holds in (None, 0.95):
        within = {**options, "deadline": deadline, "holds": holds}
        first, *others = rank_strategies(LAYOUTS, **within)
        alone = rank_alone(LAYOUTS, {"pe": LAYOUTS.axes["pe"]}, **within)
        assert first["pe_hours"] == min(row["pe_hours"] for row in alone)
        assert all(row["holds"] >= (holds or 0.49) for row in (first, *others))
        assert (first["pe"] == free["pe"]) == (holds is None)


def test_layouts_that_miss_it_say_so():
    rows = rank_strategies(LAYOUTS, objective="train_time", layouts=3, deadline="1 h")
    assert [row["limit"] for row in rows] == [["too_slow"]]


def test_a_deadline_of_an_epoch_is_refused():
    for objective in ("epoch_time", "memory"):
        with pytest.raises(InputError, match="whole training"):
            rank_strategies(LAYERS, objective=objective, deadline="3 h")
    with pytest.raises(InputError, match="probability"):
        rank_strategies(LAYERS, objective="train_time", deadline="3 h", holds=np.float64(2))


def test_a_number_of_epochs_needs_no_law():
    """The time is that of so many epochs, of a part of a cube, too."""
    space: dict[str, Any] = {"dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    cube = paradl.compute_space("alexnet", **space, pe=[8, 16], batch=32)
    with pytest.raises(InputError, match=r"^epochs: the number of epochs is not given; such as 90"):
        rank_strategies(cube, objective="train_time")
    with pytest.raises(InputError, match=r"^epochs: expected more than 0, got -1"):
        rank_strategies(cube, objective="train_time", epochs=-1)
    for part, pes in ((cube, 16), (cube.isel(pe=[0]), 8)):
        (row,) = rank_strategies(part, objective="train_time", epochs=90, deadline="1 d")
        assert (row["pe"], row["epochs"]) == (pes, 90)
        (alone,) = rank_strategies(cube, {"pe": pes})
        assert row["train_time"] == pytest.approx(90 * alone["epoch_time"])
