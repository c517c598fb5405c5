"""`ds.paradl`: on every Dataset, with all questions and what follows from cells."""

import inspect
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import xarray as xr

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.accessor import QUESTIONS
from paradl.sweep.cells.source import Source
from paradl.sweep.cube.variables import DERIVED

ORDERS = ("paradl, xarray", "xarray, paradl", "paradl.sweep.cli.main, xarray")


@pytest.mark.parametrize("imports", ORDERS)
def test_every_dataset_has_it(imports: str) -> None:
    """And what finds and loads modules is left alone."""
    code = (
        f"import sys, {imports}; print(type(xarray.Dataset().paradl).__name__); "
        "print([f for f in sys.meta_path if 'paradl' in type(f).__module__]); "
        "print('exec_module' in vars(xarray.__spec__.loader))"
    )
    strict = [sys.executable, "-W", "error", "-c", code]
    run = subprocess.run(strict, capture_output=True, text=True)
    assert (run.stdout.splitlines()[0], run.stderr) == ("Accessor", "")
    assert run.stdout.splitlines()[1:] == ["[]", "False"]


def test_every_question_of_a_cube_is_offered(mixed: xr.Dataset) -> None:
    functions = {name: getattr(paradl, name) for name in paradl.__all__}
    of_cubes = {
        name
        for name, function in functions.items()
        if inspect.isfunction(function)
        and next(iter(inspect.signature(function).parameters.values())).annotation == Source
    }
    # `ds.paradl.bottleneck` is what binds each cell, an array; the question is `paradl.bottleneck`.
    assert of_cubes - {"bottleneck"} == set(QUESTIONS)
    assert set(QUESTIONS) <= set(dir(mixed.paradl))


@pytest.mark.parametrize("name", QUESTIONS)
def test_help_shows_a_question_without_its_cube(name: str, mixed: xr.Dataset) -> None:
    function, method = getattr(paradl, name), getattr(mixed.paradl, name)
    assert (method.__name__, method.__doc__) == (name, function.__doc__)
    _, *others = inspect.signature(function).parameters.values()
    assert list(inspect.signature(method).parameters.values()) == others


def test_questions_are_those_of_the_package(mixed: xr.Dataset) -> None:
    # Of what is nowhere allowed it is explained why: few strategies are asked about.
    part = mixed.sel(model="alexnet", strategy=["serial", "data"])
    assert part.paradl.best().equals(paradl.best(part))
    assert part.paradl.limits(0.3).equals(paradl.limits(part, 0.3))
    assert part.paradl.pareto(against="memory").equals(paradl.pareto(part, against="memory"))
    assert part.paradl.regret().equals(paradl.regret(part))
    assert part.paradl.diff(part)["same"]
    with pytest.raises(AttributeError, match=r"ds\.paradl has no 'bets'; did you mean 'best'"):
        _ = part.paradl.bets


CUBE_QUESTIONS: dict[str, dict[str, Any]] = {
    "best": {},
    "bottleneck": {},
    "diff": {"second": "cube"},
    "limits": {},
    "needs": {"parameter": "memory_capacity"},
    "pareto": {},
    "provision": {"deadline": "1 h", "epochs": 1},
    "regret": {},
    "sensitivity": {},
}


@pytest.mark.parametrize("name", CUBE_QUESTIONS)
def test_a_slice_may_be_given_by_keyword(name: str, mixed: xr.Dataset) -> None:
    question, given = getattr(paradl, name), CUBE_QUESTIONS[name]
    part = mixed.sel(
        model="alexnet", dataset="imagenet-226", strategy=["serial", "data", "data+filter"]
    )
    given = {key: part if value == "cube" else value for key, value in given.items()}
    both = ["serial", "data"]
    slices: dict[str, Any] = {"pe": [1, 4], "strategy": both}
    answers = [
        question(part, selection=slices, **given),
        question(part, **slices, **given),
        question(part, selection={"pe": [1, 4]}, strategy=both, **given),
    ]
    assert len({repr(answer) for answer in answers}) == 1
    annotation = str(inspect.signature(question).return_annotation)
    assert type(answers[0]).__name__ in annotation
    assert repr(answers[0]) != repr(question(part, **given))


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_slip_is_no_slice(name: str, mixed: xr.Dataset) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\) missing"):
        getattr(paradl, name)()
    arguments = inspect.signature(getattr(paradl, name)).parameters
    last = [argument for argument in arguments if argument != "axes"][-1]
    path = "x.html" if name == "write_report" else "x.csv"
    needed = {"path": path, "deadline": "1 h", "second": mixed, "parameter": "batch"}
    given = {key: value for key, value in needed.items() if key in arguments}
    with pytest.raises(TypeError, match=f"did you mean '{last}'"):
        getattr(mixed.paradl, name)(**given, **{f"{last}s": 1})
    with pytest.raises(InputError, match="expected a mapping"):
        getattr(mixed.paradl, name)(**given, selection="pe", pe=4)
    with pytest.raises(InputError, match="selected twice"):
        getattr(mixed.paradl, name)(**given, selection={"pe": 4}, pe=4)


def test_a_slice_to_export_and_to_report(mixed: xr.Dataset, tmp_path: Path) -> None:
    mixed.paradl.export(tmp_path / "cells.csv", pe=4, strategy="data", model="alexnet")
    rows = pd.read_csv(tmp_path / "cells.csv")
    assert {*rows["pe"]} == {4}
    mixed.paradl.write_report(tmp_path / "page.html", pe=4, model="alexnet")
    assert "selection={&#39;pe&#39;: 4" in (tmp_path / "page.html").read_text()


def test_numbers_are_texts_too(mixed: xr.Dataset) -> None:
    part = mixed.sel(model="alexnet", strategy=["serial", "data"])
    assert paradl.limits(part, "30%").equals(paradl.limits(part, 0.3))
    four = paradl.best(part, pe=[4, 8])
    for pe in ("pow2:4-8", (4, 8), range(4, 9, 4), np.array([4, 8]), np.array([4.0, 8.0])):
        assert paradl.best(part, pe=pe).equals(four)


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
    with pytest.raises(InputError, match=r"^price: expected a price above 0, got 'cheap'"):
        one.paradl.cost("cheap")


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
