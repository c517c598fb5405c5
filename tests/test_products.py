"""Products of parallelisms: how degrees are stated, chosen and bounded; which may be combined.

Their numbers, also of degrees of 1: test_reference_products.py.
"""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.reading.errors import InputError

HERE: dict[str, Any] = {"model": "alexnet", "dataset": "imagenet", "system": "abci", "batch": 32}


def ask(strategy: str, pe: int = 16, **changes: Any) -> dict[str, Any]:
    return paradl.predict(strategy=strategy, pe=pe, **(HERE | changes))


def test_degrees_are_stated_from_the_outermost() -> None:
    degrees = ask("filter+data+pipeline:pipeline=4,filter=2")["degrees"]
    assert [*degrees.items()] == [("data", 2), ("pipeline", 4), ("filter", 2)]


def test_one_degree_may_be_left_open_without_data() -> None:
    assert ask("spatial+pipeline:spatial=4")["degrees"] == {"pipeline": 4, "spatial": 4}


def test_a_degree_may_be_an_axis() -> None:
    given = HERE | {"pe": [8, 16], "strategy": "data+filter+pipeline:filter=2"}
    cells = paradl.predict(**given, parameters={"pipeline": [1, 2, 4]})
    for pe, pipeline in ((8, 2), (16, 4)):
        one = ask(f"data+filter+pipeline:filter=2,pipeline={pipeline}", pe)
        there = cells.sel(pe=pe, pipeline=pipeline).squeeze()
        assert float(there["memory"]) == pytest.approx(one["memory"], rel=1e-6)
        assert float(there["comm_time"]) == pytest.approx(one["comm_time"], rel=1e-6)
        assert float(there.paradl.replicas) == one["replicas"]


def test_the_best_degrees_are_those_of_the_least_time() -> None:
    best = ask("data+spatial+pipeline:spatial=best,pipeline=best", 8)
    sizes = [(s, p) for s in (1, 2, 4, 8) for p in (1, 2, 4, 8) if s * p <= 8]
    others = [ask(f"data+spatial+pipeline:spatial={s},pipeline={p}", 8) for s, p in sizes]
    allowed = [other["epoch_time"] for other in others if other["feasible"]]
    assert best["epoch_time"] == pytest.approx(np.min(allowed), rel=1e-9)


@pytest.mark.parametrize(
    ("strategy", "pe", "reason"),
    [
        ("data+spatial+filter:spatial=4,filter=3", 16, "group_does_not_divide"),
        ("spatial+filter:spatial=2,filter=2", 16, "too_many_pes"),
        ("data+filter+pipeline:filter=128,pipeline=2", 512, "too_many_pes"),
        ("data+filter+pipeline:filter=2,pipeline=64", 512, "too_many_pes"),
    ],
)
def test_each_degree_has_its_bound(strategy, pe, reason) -> None:
    assert reason in ask(strategy, pe)["limit"]


@pytest.mark.parametrize(
    ("strategy", "settings", "named"),
    [
        ("data+spatial+pipeline:spatial=4", {}, "pipeline"),
        ("spatial+pipeline", {}, "spatial and pipeline"),
        ("filter+channel:filter=2", {}, "divided both ways"),
        ("data+placement+filter", {}, "placement"),
        ("spatial+filter:spatial=2", {"oracle": "paper"}, "Table III"),
    ],
)
def test_what_cannot_be_asked_is_refused(strategy, settings, named) -> None:
    with pytest.raises(InputError, match=named):
        ask(strategy, settings=settings)
