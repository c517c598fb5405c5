"""`ds.paradl`: there from `import sweep` on, with all questions and what follows from cells."""

import inspect
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import xarray as xr

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.accessor import QUESTIONS
from paradl.sweep.cube.variables import DERIVED

# After it xarray is itself. In these tests xarray is imported first.
SWEEP_FIRST = (
    "import sys, sweep; import xarray as xr; "
    "names = [type(each).__name__ for each in sys.meta_path]; "
    "print(xr.__spec__.name, '_Watch' in names, xr.__file__); "
    "print(type(xr.Dataset().paradl).__name__)"
)


def test_importing_sweep_is_enough() -> None:
    strict = [sys.executable, "-W", "error", "-c", SWEEP_FIRST]
    run = subprocess.run(strict, capture_output=True, text=True)
    assert (run.stdout, run.stderr) == (f"xarray False {xr.__file__}\nAccessor\n", "")


def test_every_question_of_a_cube_is_offered(mixed: xr.Dataset) -> None:
    functions = {name: getattr(paradl, name) for name in paradl.__all__}
    of_cubes = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function)
        and next(iter(inspect.signature(function).parameters)) == "cube"
    }
    # `ds.paradl.bottleneck` is what binds each cell, an array; the question is `paradl.bottleneck`.
    assert {*of_cubes, "diff"} - {"bottleneck"} == set(QUESTIONS)
    assert set(QUESTIONS) <= set(dir(mixed.paradl))


def test_questions_are_those_of_the_package(mixed: xr.Dataset) -> None:
    # Of what is nowhere allowed it is explained why: few strategies are asked about.
    part = mixed.sel(model="alexnet", strategy=["serial", "data"])
    assert part.paradl.best().equals(paradl.best(part))
    assert part.paradl.limits(0.3).equals(paradl.limits(part, 0.3))
    assert part.paradl.pareto(against="memory") == paradl.pareto(part, against="memory")
    assert part.paradl.regret() == paradl.regret(part)
    assert part.paradl.diff(part)["same"]
    with pytest.raises(AttributeError, match="'paradl' has no 'bets'"):
        _ = part.paradl.bets


@pytest.mark.parametrize("name", ["best", "limits", "pareto", "regret", "sensitivity", "export"])
def test_a_slice_is_no_keyword(name: str, mixed: xr.Dataset) -> None:
    given = ("cube.csv",) if name == "export" else ()
    message = rf"^{name}\(\) .*'pe'; to select values: selection={{'pe': 64}}$"
    with pytest.raises(TypeError, match=message):
        getattr(paradl, name)(mixed, *given, pe=64)
    with pytest.raises(TypeError, match=message):
        getattr(mixed.paradl, name)(*given, pe=64)
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing"):
        getattr(paradl, name)()


def test_numbers_are_texts_too(mixed: xr.Dataset) -> None:
    part = mixed.sel(model="alexnet", strategy=["serial", "data"])
    assert paradl.limits(part, "30%").equals(paradl.limits(part, 0.3))
    assert paradl.best(part, {"pe": "pow2:4-8"}).equals(paradl.best(part, {"pe": [4, 8]}))


def test_hours_cost_and_memory_by_hand(mixed: xr.Dataset) -> None:
    place = {"model": "alexnet", "dataset": "imagenet-226", "system": "abci", "strategy": "data"}
    one = mixed.sel({**place, "pe": 8, "batch": 64, "inter_bandwidth": 12.5e9})
    hours = float(one.comp_time + one.comm_time) * 8 / 3600
    assert float(one.paradl.pe_hours) == pytest.approx(hours)
    assert float(one.paradl.cost(2.5)) == pytest.approx(2.5 * hours)
    assert float(one.paradl.cost({"abci": 3})) == pytest.approx(3 * hours)
    assert float(one.paradl.memory_share) == pytest.approx(float(one.memory) / 16e9)
    forbidden = (mixed.limit.values & 1).astype(bool)
    share = mixed.paradl.memory_share.values
    np.testing.assert_array_equal(forbidden, share > 1)
    with pytest.raises(InputError, match=r"^price: .*'abci'"):
        one.paradl.cost({"dgx": 3})


@pytest.mark.parametrize("name", [name for name in DERIVED if name != "cost"])
def test_what_follows_is_labelled(name: str, mixed: xr.Dataset) -> None:
    array: Any = getattr(mixed.paradl, name)
    assert array.name == name
    assert array.attrs["units"]
    assert array.attrs["long_name"]


def test_the_repr_tells_what_there_is(mixed: xr.Dataset) -> None:
    text = repr(mixed.sel(model="alexnet").paradl)
    assert text.startswith("<paradl: 2 dataset x 1 system x 6 strategy x 5 pe x 2 batch")
    assert "oracle: paper" in text
    assert "  pe              1 ... 12 (5)" in text
    assert "best(), crossovers(), diff()" in text
    assert all(len(line) < 200 for line in text.splitlines())
