"""Memory as a chance: in answers, as a requirement, and of runs that ran out of memory."""

import math
import re
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from open_answers import (
    explain_grid,
    list_bottlenecks,
    list_front,
    list_limits,
    list_provisions,
    list_sensitivities,
    predict_grid,
    rank_strategies,
)

import paradl
from paradl.grids.design_space import Configuration, SpaceValues, make_grid
from paradl.grids.entries.reserves import RESERVES
from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.memory_cube import compute_cells

LLAMA: dict[str, Any] = {
    "system": "dgx-h100:software=megatron",
    "sequence": 4096,
    "global_batch": 64,
}
H100 = 79.1 * 2**30  # [B] its usable memory
CHANCES = (0.1, 0.9, 0.99)  # of 10 %, all that fits by its median has more


def read_space(model="llama2_7b", pe=8, **options):
    return make_grid(SpaceValues(model, pe, **{**LLAMA, **options}))


def find_chance(memory, capacity, software):
    reserve = RESERVES[software]
    return NormalDist().cdf(math.log(capacity / memory / reserve.median) / reserve.spread)


@pytest.mark.parametrize("software", ["megatron", "fsdp", "deepspeed"])
@pytest.mark.parametrize("headroom", [0, 0.2])
def test_a_prediction_has_the_chance_of_its_software(software, headroom):
    """Of the whole PE: what is kept free is there for what formulas do not count."""
    options: dict[str, Any] = LLAMA | {"system": f"dgx-h100:software={software}"}
    asked = Configuration(
        "llama2_7b", "dp8 mb2 zero1", 8, parameters={"headroom": headroom}, **options
    )
    answer = predict_grid(asked.grid())
    assert 0.001 < answer["fits"] < 0.999
    assert answer["fits"] == pytest.approx(find_chance(answer["memory"], H100, software), rel=1e-9)


@pytest.mark.parametrize(("capacity", "reserved"), [(8e9, 1e9), (7e9, 2e9), (7e9, 0), (6e9, 1e9)])
def test_of_a_network_of_layers_the_reserve_is_uncertain(capacity, reserved):
    known = {"memory_capacity": capacity, "reserved": reserved}
    options: dict[str, Any] = {"system": "abci", "dataset": "imagenet", "parameters": known}
    answer = predict_grid(Configuration("resnet50", "data", 64, 64, **options).grid())
    room = capacity - answer["memory"] + reserved
    expected = NormalDist().cdf(math.log(room / reserved) / 0.5) if reserved else float(room >= 0)
    assert answer["fits"] == pytest.approx(expected, rel=1e-9)
    assert (answer["fits"] >= 0.5) == answer["feasible"]


@pytest.mark.parametrize("system", ["abci", "dgx-h100:precision=bf16"])
def test_what_is_reserved_is_what_memory_counts(system):
    """Calibrated or not: the chance has the same bytes beside tensors as the prediction."""

    def ask(**known):
        options: dict[str, Any] = {"system": system, "dataset": "imagenet", "parameters": known}
        return predict_grid(Configuration("resnet50", "data", 64, 64, **options).grid())

    answer = ask()
    capacity, reserved = answer["memory"] * 1.01, answer["memory_parts"]["reserved"]
    fits = ask(memory_capacity=capacity)["fits"]
    assert 0.5 < fits < 0.999
    assert ask(memory_capacity=capacity, reserved=reserved)["fits"] == fits
    assert ask(memory_capacity=capacity, reserved=reserved / 2)["fits"] > fits


def test_table_iii_has_no_chances():
    options: dict[str, Any] = {
        "system": "abci",
        "dataset": "imagenet",
        "settings": {"oracle": "paper"},
    }
    assert predict_grid(Configuration("resnet50", "data", 64, 64, **options).grid())["fits"] is None
    with pytest.raises(InputError, match="'paper' has no intervals"):
        rank_strategies(make_grid(SpaceValues("resnet50", 64, batch=64, **options)), holds=0.9)


@pytest.fixture(scope="module")
def usual():
    """Layouts whatever their chance."""
    return rank_strategies(read_space(), layouts=40, intervals=False)


@pytest.mark.parametrize("holds", CHANCES)
def test_layouts_that_may_not_fit_are_not_chosen(holds, usual):
    sure, more = (
        rank_strategies(read_space(), layouts=most, intervals=False, holds=holds)
        for most in (40, 400)
    )
    assert all(row["fits"] >= holds for row in more)
    kept = [row["layout"] for row in usual if row["fits"] >= holds]
    assert {*kept} <= {row["layout"] for row in more}
    # Others come at a smaller micro-batch.
    assert (len(kept) < len(usual)) == (usual != sure) == (holds > 0.1)
    for rows in (usual, sure):  # what would let the next one fit is more than there is
        (remedy,) = (row["remedy"] for row in rows[0]["losers"] if row["reason"] == "memory")
        assert H100 < 1e9 * float(remedy.split()[4]) < 1.1 * H100


def test_cells_of_a_dataset_are_chosen_as_surely():
    """Of batches in one cube: the largest that fits with less than 90 % is none."""
    batches = [8, 16, 32, 64, 96, 128, 160, 192, 224]
    options: dict[str, Any] = {
        "system": "abci",
        "dataset": "imagenet",
        "batch": batches,
        "strategy": "data",
    }
    cube = compute_cells(make_grid(SpaceValues("resnet50", 64, **options)))
    (usual,), (sure,) = (
        rank_strategies(cube, objective="epoch_time", holds=holds) for holds in (None, 0.999)
    )
    assert usual["batch"] > sure["batch"]
    assert usual["fits"] < 0.999 <= sure["fits"]
    (row,) = rank_strategies(cube, {"batch": [8, 16]}, holds=0.999)
    assert row["batch"] == 16  # a slice stays one


@pytest.mark.parametrize(("chance", "headroom"), [(0.0, 0.0), (0.9, 0.0), (0.5, 0.4)])
def test_needed_memory_is_the_least_that_suffices(chance, headroom):
    known = {"fit_chance": chance, "headroom": headroom}
    cube = compute_cells(read_space("llama2_7b", strategy="tp1 dp8 mb1", parameters=known))
    (needed,) = paradl.needs(cube, "memory_capacity")["needed"]
    for size, is_enough in ((1.001, True), (0.999, False)):
        enough = known | {"memory_capacity": size * needed}
        space = read_space("llama2_7b", strategy="tp1 dp8 mb1", parameters=enough)
        (cell,) = compute_cells(space)["limit"].values.ravel()
        assert (cell == 0) == is_enough


@pytest.mark.parametrize("holds", CHANCES[1:])
def test_a_deadline_is_met_by_what_fits(holds):
    grid = read_space(pe=[8, 16, 32], tokens=1e10)
    (row,) = list_provisions(grid, "2 d", holds=holds)
    assert min(row["fits"], row["holds"]) >= holds


@pytest.mark.parametrize("wrong", [0, 1, "x", 2])
def test_no_probability_is_refused(wrong):
    with pytest.raises(InputError, match="holds"):
        rank_strategies(read_space(), holds=wrong)


def test_every_answer_has_the_chance():
    grid = read_space(pe=[8, 16])
    asked = (
        rank_strategies(grid, intervals=False),
        list_bottlenecks(grid),
        list_limits(grid, intervals=False),
        list_front(grid, against="memory"),
        list_front(grid, against="pe"),
        list_sensitivities(grid),
    )
    for rows in asked:
        assert rows
        assert all(0 < row["fits"] <= 1 for row in rows)
    (last,) = list_limits(grid, intervals=False)
    assert last["fits"] == rank_strategies(grid, {"pe": 16}, intervals=False)[0]["fits"]


@pytest.mark.parametrize("question", [list_front, list_sensitivities])
def test_the_chance_is_that_of_each_cell(question):
    """Also where memory is not asked; of a cube without memory a front does not know it."""
    options: dict[str, Any] = {
        "system": "abci",
        "dataset": "imagenet",
        "batch": [128, 192],
        "strategy": "data",
    }
    cube = compute_cells(make_grid(SpaceValues("resnet50", [16, 64], **options)))
    known = {(row["pe"], row["batch"]): row["fits"] for row in list_bottlenecks(cube)}
    assert len({*known.values()}) > 1
    rows = question(cube)
    found = {(row["pe"], row["batch"]): row["fits"] for row in rows}
    assert found == pytest.approx({cell: known[cell] for cell in found}, rel=1e-6)
    assert len(found) > 1
    (unknown,) = {row["fits"] for row in list_front(cube.drop_vars("memory"))}
    assert unknown is None


@pytest.mark.parametrize(
    ("verb", "has_memory"),
    [
        ("pareto --against pe", False),
        ("pareto --against memory", True),
        ("sensitivity", False),
        ("bottleneck", True),
    ],
)
def test_chances_are_written(verb, has_memory, cli):
    """As the last column, and beside memory in a sentence; nowhere if they are unknown."""
    place = ("--system", LLAMA["system"], "--sequence", "4096", "--global-batch", "64")
    asked = (*verb.split(), "--model", "llama2_7b", "--pe", "8,16", *place)
    code, out, _ = cli(*asked)
    assert code == 0
    assert re.search(r"  fits\n[ ─]*\n.*%$", out, re.M)
    assert ("GB, fits with " in out) == has_memory
    assert cli(*asked, "--format", "csv")[1].partition("\n")[0].endswith(",fits")
    cells = ("--model", "vgg16", "--dataset", "imagenet", "--pe", "64,128", "--batch", "32")
    code, out, _ = cli(*verb.split(), *cells, "--system", "abci", "--oracle", "paper")
    assert (code, "fits" in out) == (0, False)


def test_a_recipe_that_ran_out_of_memory():
    """Llama 3 70B on 32 H100: of runs with five chunks 30 to 60 % ran out of memory, with ten none
    did (Megatron-Bridge, pull request 3107; its sequence and batch are assumed).
    """
    options: dict[str, Any] = LLAMA | {"precision": "fp8", "global_batch": 32}
    five, ten = (
        explain_grid(
            Configuration("llama3_70b", f"tp4 pp4 v{v} dp2 mb1 zero1 sp", 32, **options).grid()
        )
        for v in (5, 10)
    )
    assert 0.4 < five["fits"] < 0.5 < ten["fits"]
    assert five["feasible"]
    assert "tight" in five["remarks"]
    assert "tight" not in ten["remarks"]


@pytest.mark.parametrize(
    ("states", "weight", "state"),
    [
        *(("usual", 2, 12), ("fp8_weights", 1, 12), ("bf16_moments", 2, 8), ("narrow", 1, 8)),
        # Beside the weights' copy: two bytes and two constants of 4 bytes for 256; none; one.
        *(("adam_8bit", 2, 4 + 2 + 2 / 64), ("adafactor", 2, 4), ("one_moment", 2, 8)),
    ],
)
def test_states_in_fewer_bytes(states, weight, state):
    """DeepSeek-V3's recipe keeps weights in fp8, moments in bf16; gradients stay in fp32."""
    parts = {
        precision: predict_grid(
            Configuration(
                "llama2_7b",
                "dp8 mb1 zero1",
                8,
                settings={"states": states},
                **LLAMA,
                precision=precision,
            ).grid()
        )["memory_parts"]
        for precision in ("fp8", "bf16")
    }
    parameters = parts["fp8"]["gradients"] / 4
    assert parts["fp8"]["weights"] == weight * parameters
    assert parts["fp8"]["states"] == state * parameters / 8
    assert parts["bf16"]["weights"] == 2 * parameters  # no product reads them in fp8
    assert parts["bf16"]["states"] == state * parameters / 8
    others = {*parts["fp8"]} - {"weights", "states"}
    usual = predict_grid(
        Configuration("llama2_7b", "dp8 mb1 zero1", 8, **LLAMA, precision="fp8").grid()
    )
    assert all(np.equal(parts["fp8"][name], usual["memory_parts"][name]) for name in others)
