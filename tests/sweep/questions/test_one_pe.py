"""On one PE every strategy is the same training: all are feasible or none, in the same time."""

import pytest

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.sweep.questions.best.question import rank_strategies

BASES = ("spatial", "pipeline", "filter", "channel")
HYBRIDS = tuple(f"data+{base}:group=best" for base in BASES)


@pytest.mark.parametrize("oracle", ["machine", "paper"])
@pytest.mark.parametrize("batch", [1, 4096])
def test_a_group_of_the_best_size_agrees_with_plain_strategies(oracle, batch):
    prediction = [
        paradl.predict(
            "alexnet",
            strategy,
            1,
            batch,
            dataset="imagenet",
            system="abci",
            settings={"oracle": oracle},
        )
        for strategy in ("serial", "data", *BASES, *HYBRIDS)
    ]
    first, *others = prediction
    for other in others:
        assert other["group"] == 1
        assert other["feasible"] == first["feasible"]
        assert other["limit"] == first["limit"]
        assert other["epoch_time"] == pytest.approx(first["epoch_time"], rel=1e-12)
        assert other["memory"] == pytest.approx(first["memory"], rel=1e-12)


@pytest.mark.parametrize("batch", [1, 4096])
def test_best_agrees_on_what_is_feasible(batch):
    options = SpaceValues(
        "alexnet", 1, batch, "imagenet", "abci", strategy=["data", *BASES, *HYBRIDS]
    )
    rows = rank_strategies(make_grid(options), {}, "epoch_time")
    assert len(rows) == 9
    assert len({row["feasible"] for row in rows}) == 1
