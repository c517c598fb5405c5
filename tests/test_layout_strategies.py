"""Layouts as strategies: one answer whatever the question, and what cannot be is refused."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from open_answers import (
    explain_grid,
    list_crossovers,
    list_limits,
    list_needs,
    list_sensitivities,
    predict_grid,
    rank_strategies,
)
from short_layouts import read_layout

from paradl.grids.design_space import ONLY, Configuration, SpaceValues, make_grid
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import ALONE, Grid
from paradl.grids.inputs.case import find_space
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec
from paradl.kernels.names.parallelisms import RECOMPUTE
from paradl.kernels.oracle.answer import answer_case
from paradl.kernels.oracle.block_times import time_iteration
from paradl.kernels.oracle.blocks import add_seconds
from paradl.sweep.engine.run import run
from paradl.sweep.questions.explain import explain
from paradl.sweep.questions.predict import predict

SYSTEM = "dgx-h100:precision=bf16"
TWO = ("data+tensor:tensor=2,micro=1", "llama2_7b", "tp2 pp1 dp8 mb1")
# A strategy, a network, and the same layout in short words, on 16 PEs.
LAYOUTS = [
    TWO,
    (
        "data+tensor+pipeline:tensor=4,pipeline=2,chunks=2,micro=2,recompute=blocks,sequence=on,"
        "zero=1",
        "llama2_7b",
        "tp4 pp2 v2 dp2 mb2 zero1 sp recompute=blocks",
    ),
    (
        "data+context:context=4,micro=1,recompute=core_attn+mlp",
        "llama2_7b",
        "tp1 cp4 pp1 dp4 mb1 recompute=core_attn+mlp",
    ),
    ("data+expert:expert=8,micro=1,zero=2", "mixtral_8x7b", "tp1 ep8 pp1 dp16 mb1 zero2"),
    ("fsdp:micro=2", "llama2_7b", "tp1 pp1 dp16 mb2 zero3"),
    ("hsdp:micro=2", "llama2_7b", "tp1 pp1 dp16 mb2 zero3 shard8"),
]


def test_a_layout_whose_only_change_does_not_divide():
    """Of micro-batches of 4 one is left, which two stages with chunks cannot share."""
    words = "tp2 pp2 v4 dp8 mb2 zero2 sp"
    asked = Configuration("llama2_70b", words, 32, system="mi300x", global_batch=32)
    answer = explain_grid(asked.grid())
    assert answer["feasible"]
    assert answer["changes"] == []


def test_changes_of_a_layout_keep_its_schedule():
    words = "pp4 dp2 mb1 schedule=zb1p"
    answer = explain("llama2_7b", words, 8, 8, system=SYSTEM, dataset="pile")
    assert answer["changes"]
    assert all(row["layout"].endswith("schedule=zb1p") for row in answer["changes"])


def make_strong(strategy, network="llama2_7b", system=SYSTEM, pe=16):
    asked = Configuration(network, strategy, pe, None, system, "pile", global_batch=192)
    return asked.grid()


def test_other_strategies_do_without_narrow_products():
    with pytest.raises(InputError, match="fp8"):
        predict("resnet50", "data", 16, 32, system="dgx-h100:precision=fp8", dataset="imagenet")


@pytest.mark.parametrize(
    ("place", "strategy", "network", "layout"),
    [
        *((SYSTEM, *layout) for layout in LAYOUTS),
        *((f"dgx-b200:precision={narrow}", *TWO) for narrow in ("fp8", "nvfp4")),
        # Groups of 16 leave PEs of a rack of 72 idle.
        ("gb200-nvl72", "data+pipeline:pipeline=6,micro=1", "gpt3_175b", "pp6 dp16 mb1"),
    ],
)
def test_short_words_are_the_strategy_to_the_last_bit(place, strategy, network, layout):
    pe = 96 if place == "gb200-nvl72" else 16
    grid = make_strong(layout, network, place, pe)
    answer, again = map(predict_grid, (grid, make_strong(strategy, network, place, pe)))
    assert again == answer | {"strategy": again["strategy"]}
    blocks = grid.build(find_space, ONLY, None, None).blocks
    training, speeds = replace(blocks.training, batch=192), blocks.stack.find_speeds()
    terms = time_iteration(blocks.net, read_layout(layout, pe), training, *speeds)
    assert answer["iteration_time"] == sum(add_seconds([*terms.values()]))
    assert answer["memory"] == pytest.approx(sum(answer["memory_parts"].values()), rel=1e-15)
    assert answer["epoch_time"] == pytest.approx(sum(answer["terms"].values()), rel=1e-14)


def test_machines_at_once_answer_as_each_alone():
    """Every axis of a machine's parameter, to the last bit."""
    strategy = "data+tensor+context+pipeline:tensor=4,context=2,pipeline=2,micro=best,zero=1"
    values = {
        "inter_bandwidth": [25e9, 50e9],
        "intra_latency": [1e-6, 9e-6],
        "peak_flops": [5e14, 1.9e15],
        "memory_bandwidth": [2e12, 9e12],
        "reserved": [1e9, 30e9],
    }
    space: Any = {"pe": [32], "batch": [64], **values}
    grid = Grid.from_spec(
        validate_spec(
            {
                "axes": {"model": "llama2_7b", "dataset": "pile", "system": SYSTEM, **space}
                | {"strategy": strategy}
            },
            "",
        )
    )

    def answer(axes: Any = None) -> Any:
        case = grid.case((0, 0, 0, 0), axes)
        assert case is not None
        names = ("compute", "communication", "memory", "limit", "epoch_time")
        found, whole = answer_case(case), [*map(len, (axes or grid.axes).values())]
        return SimpleNamespace(**{n: np.broadcast_to(getattr(found, n), whole) for n in names})

    together = answer()
    # Every value of every axis, with different others.
    for at in [*np.ndindex(together.memory.shape)][::5]:
        axes = {name: np.array([grid.axes[name][n]]) for name, n in zip(grid.axes, at, strict=True)}
        alone = answer(axes)
        for name in ("compute", "communication", "memory", "limit"):
            assert getattr(together, name)[at] == getattr(alone, name).item(), (name, at)
    assert len({*np.ravel(together.epoch_time)}) == 2**4


def test_batches_scale_weakly_by_replicas():
    strategy = "data+tensor:tensor=2,micro=1"
    weak = predict("llama2_7b", strategy, 16, 24, system=SYSTEM, dataset="pile")
    strong = predict_grid(make_strong(strategy))
    assert weak["global_batch"] == strong["global_batch"] == 192
    assert weak["epoch_time"] == strong["epoch_time"]


def test_the_best_of_everything_is_the_fastest_layout_that_fits():
    grid = make_strong("layouts", "mixtral_8x7b")
    answer, (fastest,) = predict_grid(grid), rank_strategies(grid, layouts=1)
    assert answer["feasible"]
    assert fastest["strategy"] == fastest["layout"] == answer["layout"]
    assert fastest["iteration_time"] == pytest.approx(answer["iteration_time"], rel=1e-6)


def test_best_ranks_strategies_and_names_their_layouts():
    options = SpaceValues("llama2_7b", 64, 16, "pile", SYSTEM, "megatron,fsdp,data+tensor")
    first, *others = rank_strategies(make_grid(options))
    assert first["feasible"]
    assert first["layout"].startswith("tp1 pp1 dp64 ")
    assert [row["rank"] for row in (first, *others)] == [1, 2, 3]
    assert 0.49 < first["faster_than_next"] < 1
    alone = predict("llama2_7b", first["strategy"], 64, 16, system=SYSTEM, dataset="pile")
    assert first["epoch_time"] == np.float32(alone["comp_time"]) + np.float32(alone["comm_time"])
    low, high = (alone["intervals"]["iteration_time"][name] for name in ("p10", "p90"))
    assert first["epoch_time_p10"] == pytest.approx(low * alone["iterations"], rel=1e-6)
    assert first["epoch_time_p90"] == pytest.approx(high * alone["iterations"], rel=1e-6)


def test_limits_say_how_far_layouts_scale():
    options = SpaceValues("llama2_7b", None, 16, "pile", SYSTEM, "data+tensor:tensor=8,zero=1")
    (row,) = list_limits(make_grid(options))
    assert row["largest_pe"] == row["fastest_pe"] == 1024
    assert row["fastest_time_p10"] < row["fastest_time"] < row["fastest_time_p90"]


def test_sensitivities_are_differences_of_predictions():
    strategy = "data+tensor:tensor=8,micro=1,zero=1"
    options = SpaceValues("llama2_7b", 16, 16, "pile", SYSTEM, strategy)
    rows = {row["parameter"]: row for row in list_sensitivities(make_grid(options))}
    assert {"peak_flops", "memory_bandwidth", "intra_bandwidth"} < {*rows}
    times = [
        predict(
            "llama2_7b",
            strategy,
            16,
            16,
            system=SYSTEM,
            dataset="pile",
            parameters={"memory_bandwidth": bandwidth},
        )["epoch_time"]
        for bandwidth in (3.35e12, 6.7e12)
    ]
    row = rows["memory_bandwidth"]
    assert row["upgrade"] == "doubled"
    assert row["change"] == pytest.approx(times[1] / times[0] - 1, rel=1e-9)
    # A faster PE waits longer for its memory.
    assert -1 < rows["peak_flops"]["elasticity"] < 0


def test_explanations_add_up_and_name_what_symbols_mean():
    answer = explain("llama2_7b", LAYOUTS[1][0], 16, 32, system=SYSTEM, dataset="pile")
    assert sum(row["part"] for row in answer["formulas"]) == pytest.approx(1)
    assert sum(row["bytes"] for row in answer["memory_formulas"]) == pytest.approx(answer["memory"])
    for row in answer["hidden"]:
        exposed, hidden = answer["terms"][row["term"]], row["seconds_per_epoch"]
        assert exposed + hidden == pytest.approx(answer["exchanges"][row["term"]])
    assert "stage_exchange" in [row["term"] for row in answer["hidden"]]
    symbols = {row["symbol"]: row["value"] for row in answer["symbols"]}
    assert [symbols[name] for name in ("p", "p1", "t", "q_p", "S")] == [16, 2, 4, 2, 16]


@pytest.mark.parametrize(
    ("strategy", "pe", "limit"),
    [
        ("data+tensor:tensor=6,micro=1", 12, "does_not_divide"),  # 32 heads
        ("data+tensor:tensor=8,micro=3", 16, "does_not_divide"),  # 32 samples a replica
        ("data+tensor:tensor=8,micro=64", 16, "batch_too_small"),
        ("data+tensor:tensor=8,micro=1", 12, "group_does_not_divide"),
        ("data+pipeline:pipeline=64,micro=1", 64, "too_many_pes"),  # 32 blocks
        ("data:micro=8", 16, "memory"),
        ("data:micro=1,zero=3", 4096, "machine_too_small"),
    ],
)
def test_what_forbids_a_layout_is_a_limit(strategy, pe, limit):
    answer = predict("llama2_7b", strategy, pe, 32, system=SYSTEM, dataset="pile")
    assert not answer["feasible"]
    assert limit in answer["limit"]
    defined = limit in ("memory", "machine_too_small")
    assert (answer["epoch_time"] is not None) == defined
    assert bool(answer["obstacles"]) == (
        limit in ("does_not_divide", "batch_too_small", "too_many_pes")
    )


@pytest.mark.parametrize(
    ("model", "dataset", "system", "where"),
    [
        (["llama2_7b", "resnet50"], ["pile", "imagenet"], "dgx-a100", "model resnet50"),
        ("big_lstm", "one-billion-words", "dgx-a100", "model big_lstm"),
        ("llama2_7b", "pile", "dgx-a100:precision=tf32", "system: system dgx-a100"),
    ],
)
def test_what_layouts_cannot_answer_is_refused_before_anything_is_stored(
    model, dataset, system, where, tmp_path
):
    strategy = "data+tensor:tensor=2"
    axes: dict[str, Any] = {"model": model, "dataset": dataset, "system": system}
    store = tmp_path / "cube.zarr"
    with pytest.raises(InputError, match=where):
        run({"axes": axes | {"strategy": strategy, "pe": [16], "batch": [8]}}, store)
    assert not store.exists()


@pytest.mark.parametrize(
    ("network", "dataset", "strategy", "more", "message"),
    [
        ("resnet50", "imagenet", "data+tensor:tensor=2", {}, "resnet50 has no blocks of attention"),
        ("llama2_7b", "pile", "data+tensor", {}, "no degree of tensor"),
        (
            "llama2_7b",
            "pile",
            "data+tensor:tensor=2",
            {"oracle": "paper"},
            "no strategy of Table III",
        ),
        (
            "llama2_7b",
            "pile",
            "data+tensor:tensor=2",
            {"outputs": ["comp_time", "elasticity_epoch_time_batch"]},
            "no elasticity in batch",
        ),
    ],
)
def test_what_no_layout_can_be_is_refused(network, dataset, strategy, more, message):
    wanted = Configuration(network, strategy, 8, 8, SYSTEM, dataset, settings=more)
    with pytest.raises(InputError, match=message):
        wanted.grid().case((0, 0, 0, 0))


IDLE = [
    ("data:micro=1,sequence=on", {}, False),
    ("data+pipeline:pipeline=2,micro=1,sequence=on", {}, False),
    ("data+tensor:tensor=1,micro=1,sequence=on", {}, False),
    ("data+tensor:tensor=2,micro=1,sequence=on", {}, True),
    ("data+tensor:micro=1,sequence=on", {"tensor": 1}, False),
    ("data+tensor:micro=1,sequence=on", {"tensor": [1, 2]}, True),
    ("data+tensor:tensor=best,micro=1,sequence=on", {}, True),
    ("megatron:tensor=1,pipeline=1", {}, True),
    ("data:micro=1,shard=4", {}, False),
    ("data:micro=1,shard=node,zero=0", {}, False),
    ("data:micro=1,shard=4", {"zero": 0}, False),
    ("data:micro=1,shard=4", {"zero": 1}, True),
    ("data:micro=1,shard=4", {"zero": [0, 1]}, True),
    ("data:micro=1,shard=4,zero=best", {}, True),
    ("hsdp:zero=0", {}, True),
]


@pytest.mark.parametrize(("strategy", "parameters", "runs"), IDLE)
def test_settings_that_divide_nothing_are_refused(strategy, parameters, runs):
    """Unless an axis, or a search, has values with which they do."""
    swept = {name: values for name, values in parameters.items() if isinstance(values, list)}
    fixed = {name: value for name, value in parameters.items() if name not in swept}
    axes: dict[str, Any] = {"model": "llama2_7b", "dataset": "pile", "system": "dgx-h100"}
    axes |= {"strategy": strategy, "pe": 8, "batch": 8, **swept}
    spec = validate_spec({"axes": axes, "parameters": fixed}, "")
    if runs:
        assert Grid.from_spec(spec).strategies
        return
    with pytest.raises(InputError, match="divides nothing"):
        Grid.from_spec(spec)


def test_older_stores_of_such_settings_are_read():
    definition = make_pair().definition()
    label = "data+tensor:tensor=1,micro=1,sequence=on"
    axes: Any = definition["axes"]
    again = Grid.from_definition(definition | {"axes": axes | {"strategy": [label]}})
    assert again.labels["strategy"] == (label,)


def test_a_degree_of_another_parallelism_is_refused():
    wanted = Configuration(
        "llama2_7b", "data+tensor:tensor=2", 8, 8, SYSTEM, "pile", parameters={"context": 2}
    )
    with pytest.raises(InputError, match="data\\+tensor\\+context"):
        wanted.grid()


@pytest.mark.parametrize(
    ("name", "text", "number"),
    [
        ("recompute", "blocks", RECOMPUTE["blocks"]),
        ("recompute", "core_attn+mlp", RECOMPUTE["core_attn"] + RECOMPUTE["mlp"]),
        ("recompute", "none", 0),
        ("sequence", "on", 1),
        ("shard", 8, 8),
        ("shard", "node", -1),
    ],
)
def test_words_of_parameters_are_read_and_written(name, text, number):
    assert PARAMETERS[name].read(text) == number
    assert PARAMETERS[name].read(number) == number
    assert PARAMETERS[name].write(number) == text


def make_pair(**axes: Any) -> Grid:
    """Two layouts of Llama-2-7B, on 64 PEs."""
    strategies = ["data+tensor:tensor=2,micro=1", "data+tensor:tensor=8,micro=1"]
    named = {"model": "llama2_7b", "dataset": "pile:length=4096", "system": "dgx-h100"}
    given = {**named, "strategy": strategies, "pe": 64, "batch": 64, **axes}
    return Grid.from_spec(validate_spec({"axes": given}, ""))


def test_a_need_is_met_by_what_it_names():
    """With the bandwidth that an efficiency needs, a prediction has that efficiency."""
    space = make_pair(strategy=["data+tensor:tensor=2,micro=1"])
    (row,) = list_needs(space, "inter_bandwidth", efficiency=0.7)
    given = {"inter_bandwidth": row["needed"]}
    times = [
        predict(
            "llama2_7b",
            strategy,
            pe,
            64,
            dataset="pile:length=4096",
            system="dgx-h100",
            parameters=given,
        )["epoch_time"]
        for strategy, pe in ((ALONE, 1), ("data+tensor:tensor=2,micro=1", 64))
    ]
    assert times[0] / times[1] / 64 == pytest.approx(0.7, rel=1e-6)


def test_layouts_cross_where_their_times_do():
    rows = list_crossovers(make_pair(), "inter_bandwidth")
    assert {row["strategy"] for row in rows} == {*make_pair().labels["strategy"]}


def test_terms_that_layouts_lack_are_nothing(tmp_path):
    axes: dict[str, Any] = {"model": "llama2_7b", "dataset": "pile:length=4096"}
    axes |= {"system": "dgx-h100", "strategy": "data+tensor:tensor=2,micro=1"}
    axes |= {"pe": [8, 9], "batch": 64}
    outputs = ["comp_time", "comm_time", "memory", "limit", "halo_exchange", "launch_wait"]
    cube = run({"scaling": "strong", "axes": axes, "outputs": outputs}, tmp_path / "cube.zarr")
    halo, launches = (cube[name].values.ravel() for name in ("halo_exchange", "launch_wait"))
    assert halo[0] == 0 < launches[0]
    assert np.isnan([halo[1], launches[1]]).all()  # 2 does not divide 9
