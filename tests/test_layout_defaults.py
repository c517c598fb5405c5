"""Transformers where no strategy is named: layouts are ranked, and nothing is ignored unsaid."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from open_answers import list_front, list_limits, list_provisions, list_sensitivities

from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.notes import list_warnings
from paradl.sweep.cells.memory_cube import compute_cells
from paradl.sweep.questions.best.question import rank_strategies
from paradl.sweep.questions.predict import predict
from paradl.sweep.text.explanation import describe_obstacle

PLACE: dict[str, Any] = {"dataset": "pile", "system": "dgx-h100", "pe": 16, "batch": 4}


def rank(model: str, **more):
    return rank_strategies(make_grid(SpaceValues(model, **(PLACE | more))))


def test_the_best_strategies_of_a_transformer_are_its_layouts() -> None:
    rows = rank("llama2_7b")
    assert all(row["layout"] for row in rows if row["feasible"])
    assert not any("filter" in row["strategy"] for row in rows)
    times = [row["epoch_time"] for row in rows if row["feasible"]]
    assert times == sorted(times)
    stated = rank("llama2_7b", strategy="fsdp:micro=1")
    assert times[0] <= stated[0]["epoch_time"]


@pytest.mark.parametrize("strategy", ["layouts", "megatron:tensor=2"])
def test_questions_name_the_layout_that_they_are_about(strategy: str) -> None:
    grid = make_grid(SpaceValues("llama2_7b", **(PLACE | {"strategy": strategy})))
    (first,) = rank_strategies(grid)
    assert {row.get("layout") for row in list_sensitivities(grid)} == {first["layout"]}
    (line,) = list_limits(grid)
    assert line["layout"] == first["layout"]


@pytest.mark.parametrize("model", ["llama3_70b", "vgg16"])
def test_rows_of_which_nothing_is_feasible_have_the_keys_of_others(model: str) -> None:
    data = {"dataset": "imagenet"} if model == "vgg16" else {}
    small = {"pe": 2, "parameters": {"memory_capacity": "4 MB"}}
    grid = make_grid(SpaceValues(model, **(PLACE | data | small)))
    rows = [*rank_strategies(grid), *list_limits(grid), *list_provisions(grid, "1 h", epochs=1)]
    has_blocks = model == "llama3_70b"
    assert all(("layout" in row) == has_blocks and row.get("layout") is None for row in rows)


def test_fronts_name_the_layouts_that_are_the_best() -> None:
    """Of equal time, too: the less memory, the better."""
    place: dict[str, Any] = {**PLACE, "batch": 256, "settings": {"scaling": "strong"}}
    grid = make_grid(SpaceValues("llama3_8b", **(place | {"pe": [32, 64]})))
    front = list_front(grid, against="pe", layouts=True)
    best = [rank_strategies(grid, {"pe": row["pe"]}, layouts=1)[0] for row in front]
    assert [row["strategy"] for row in front] == [row["layout"] for row in best]
    (least,) = list_front(grid, {"pe": 64}, against="memory", layouts=True)[:1]
    assert least["memory"] == best[0]["memory"]
    assert least["epoch_time"] == pytest.approx(best[0]["epoch_time"], rel=1e-6)


def test_strategies_that_choose_one_layout_share_a_rank() -> None:
    strategies = ["layouts", "layouts:zero=2", "megatron"]
    rows = rank("llama2_70b", pe=64, batch=16, strategy=strategies)
    ranks: dict[str, set[int]] = {}
    for row in rows:
        ranks.setdefault(row["layout"], set()).add(row["rank"])
    assert len(ranks) < len(rows)
    assert all(len(numbers) == 1 for numbers in ranks.values())
    times = {row["rank"]: row["epoch_time"] for row in rows}
    first, second = sorted(times)[:2]
    chance = rows[0]["faster_than_next"]
    assert times[first] < times[second]
    assert chance > 0.5


def test_machines_of_any_size_are_searched() -> None:
    """Stages of more than all blocks are no candidates, however many PEs could have some."""
    (row,) = rank("llama2_7b", strategy="data+pipeline:pipeline=best,micro=1", pe=100_000, batch=1)
    assert not row["feasible"]
    assert "machine_too_small" in row["limit"]


def test_mixtures_of_experts_divide_experts_too() -> None:
    assert any("expert" in row["strategy"] for row in rank("mixtral_8x7b", pe=64))


def test_a_degree_that_is_given_leaves_the_strategies_that_have_it() -> None:
    rows = rank("llama2_7b", parameters={"tensor": 2})
    assert rows
    assert all("tensor" in row["strategy"] for row in rows)
    assert all("tp2" in row["layout"] for row in rows if row["feasible"])


@pytest.mark.parametrize(
    ("model", "more"),
    [
        ("resnet50", {"dataset": "imagenet"}),
        ("llama2_7b", {"settings": {"oracle": "paper"}}),
        # Their layers do not take one token of text without targets.
        ("gnmt", {"dataset": "wmt16-en-de"}),
        ("big_lstm", {"dataset": "one-billion-words"}),
    ],
)
def test_other_networks_and_table_iii_keep_their_ten(model: str, more) -> None:
    assert len(make_grid(SpaceValues(model, **(PLACE | more))).strategies) == 10


def test_a_parameter_that_layouts_do_not_take_is_named() -> None:
    options = SpaceValues("llama2_7b", strategy="fsdp:micro=1", **PLACE)
    unused = SpaceValues(**(vars(options) | {"parameters": {"jitter": 0.5}}))
    warnings = list_warnings(make_grid(unused))
    assert any(text.startswith("jitter ") for text in warnings)


def test_losers_state_the_least_memory_that_lets_a_layout_in() -> None:
    # Of all layouts with experts the one of least memory, which is not the fastest.
    (row,) = rank("mixtral_8x7b", pe=8, strategy="data+tensor+expert:tensor=best,zero=best")
    capacity = row["rejection"]["changes"]["memory_capacity"]
    place = PLACE | {"pe": 8, "strategy": row["strategy"]}
    for share, feasible in ((1.0, True), (0.999, False)):
        parameters = {"memory_capacity": share * capacity}
        assert predict("mixtral_8x7b", **place, parameters=parameters)["feasible"] == feasible
    assert row["rejection"]["changes"]["pe"] == 16


def test_the_best_layout_is_none_that_a_larger_batch_forbids() -> None:
    """More replicas have a larger batch: the fastest layout on 64 PEs takes 512 samples."""
    place: dict[str, Any] = {"dataset": "pile:length=1024", "system": "dgx-h100"}
    most = {"max_global_batch": 256}
    answer = predict("llama2_7b", "megatron", 64, 16, parameters=most, **place)
    assert answer["feasible"]
    assert answer["global_batch"] <= 256
    assert predict("llama2_7b", "megatron", 64, 16, **place)["global_batch"] > 256


def test_the_nearest_layout_breaks_the_fewest_limits() -> None:
    """The batch is too small for 64 passes; in some layouts stages are more than blocks, too."""
    strategy = "data+tensor+pipeline:tensor=best,pipeline=best,micro=64"
    (row,) = rank("mixtral_8x7b", pe=96, batch=1, strategy=strategy)
    assert row["rejection"]["limit"] == ["batch_too_small"]


def test_efficiency_of_layouts_divides_by_a_layout_of_one_pe() -> None:
    values: dict[str, Any] = {
        "model": "llama2_7b",
        "dataset": "pile",
        "system": "dgx-h100",
        "batch": 2,
    }
    grid = make_grid(SpaceValues(**values, strategy="data:micro=best,recompute=blocks", pe="1,8"))
    cube = compute_cells(grid)
    alone = predict("llama2_7b", "data:micro=best", 1, 2, dataset="pile", system="dgx-h100")
    times = cube.paradl.epoch_time.values.squeeze()
    efficiency = cube.paradl.efficiency.values.squeeze()
    np.testing.assert_allclose(
        efficiency, alone["epoch_time"] / times / np.array([1, 8]), rtol=1e-6
    )
    # Recomputation is what one PE does without.
    assert 0.7 < efficiency[0] < 1


def test_a_batch_that_passes_whole_is_named() -> None:
    """A replica's 64 sequences at once do not fit, one after another they do."""
    place: dict[str, Any] = {"dataset": "pile:length=4096", "system": "dgx-h100:precision=bf16"}
    whole = predict("llama2_7b", "data+tensor:tensor=8", 8, 64, **place)
    assert "64 sequences pass at once; write 'micro=1'" in describe_obstacle(whole)
    assert predict("llama2_7b", "data+tensor:tensor=8,micro=1", 8, 64, **place)["feasible"]


@pytest.mark.parametrize(("settings", "words"), [({}, "layouts"), ({"oracle": "paper"}, "data")])
def test_layouts_are_all_that_is_asked_of_a_text(settings, words) -> None:
    """In a precision, too, that no other strategy computes in; Table III has none."""
    system = f"dgx-h100:precision={'bf16' if settings else 'fp8'}"
    space = SpaceValues("llama2_7b", pe=8, batch=8, system=system)
    grid = make_grid(replace(space, settings=settings))
    labels = {strategy.label for strategy in grid.strategies}
    assert parse_strategy(words).label in labels
    assert len(labels) == (1 if words == "layouts" else 10)
