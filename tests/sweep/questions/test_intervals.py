"""Intervals and chances: of one configuration, of a cube, of the best of two."""

from typing import Any

import numpy as np
import pytest

import sweep
from grids.entries.calibration import PRIORS
from grids.entries.strategies import MEANING
from grids.library import list_names
from grids.reading.errors import InputError
from grids.spec import INTERVALS

ERROR = {
    "serial": 0.03,
    "group": 0.1,
    "reduce": 0.07,
    "exchange": 0.2,
    "unseen": 0.4,
    "distance": 0.1,
}
RUNS = {
    "model": "resnet50",
    "dataset": "imagenet-226",
    "strategy": "data",
    "pe": [1, 64],
    "batch": [32, 64],
}
CALIBRATION = {
    "name": "mine",
    "system": "abci",
    "parameters": {name: {"value": each.median, "spread": 0.1} for name, each in PRIORS.items()},
    "error": ERROR,
    "series": [RUNS],
}
AXES = {
    "model": "resnet50",
    "dataset": "imagenet-226",
    "system": "abci",
    "strategy": ["data", "data+filter", "data+filter:group=8"],
    "pe": [8, 16],
    "batch": [32, 64],
}
SPEC = {
    "oracle": "paper",
    "axes": AXES,
    "parameters": {"gamma": 0.25},
    "calibration": CALIBRATION,
    "outputs": ["comp_time", "comm_time", "memory", "limit", *INTERVALS],
}


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    place = tmp_path_factory.mktemp("calibrated") / "cube.zarr"
    sweep.run(SPEC, place)
    return place


def predicted(strategy="data+filter", pe=16, calibration=CALIBRATION):
    return sweep.predict(
        "resnet50",
        strategy,
        pe,
        64,
        dataset="imagenet-226",
        parameters={"gamma": 0.25},
        settings={"oracle": "paper", "calibration": calibration},
    )


def test_an_interval_lies_about_the_prediction() -> None:
    found = predicted()
    for name, interval in found["intervals"].items():
        assert interval["p10"] < interval["p50"] < interval["p90"]
        assert interval["p50"] == pytest.approx(found[name], rel=1e-9)
    assert found["calibration"] == "mine"


def test_the_papers_oracle_has_none() -> None:
    found = predicted(calibration="none")
    assert (found["calibration"], found["intervals"], found["extrapolation"]) == (None, None, [])


def test_a_cube_has_the_intervals_of_its_cells(cube) -> None:
    found = predicted()
    cell = sweep.open_dataset(cube).sel(strategy="data+filter", pe=16, batch=64).squeeze()
    for time, of in (("epoch", "time"), ("comp", "comp_time"), ("comm", "comm_time")):
        interval = found["intervals"][f"iteration_{of}"]
        for percentile, seconds in interval.items():
            stored = float(cell[f"{time}_time_{percentile}"]) / found["iterations"]
            assert stored == pytest.approx(seconds, rel=1e-5)


def test_a_store_holds_its_calibration(cube) -> None:
    """A store is complete: the file, or the catalogue, may be gone."""
    again = sweep.open_dataset(cube)
    assert '"name": "mine"' in again.attrs["paradl_spec"]
    assert np.isfinite(again.epoch_time_p90.values).all()


def test_a_calibrated_sweep_is_resumed_as_it_was_begun(cube) -> None:
    before = sweep.open_dataset(cube).attrs["history"]
    assert sweep.run(SPEC, cube).attrs["history"] == before
    other = CALIBRATION | {"error": ERROR | {"serial": 0.05}}
    with pytest.raises(InputError, match=r"calibration\.error\.serial: 0\.03, 0\.05|serial"):
        sweep.run(SPEC | {"calibration": other}, cube)


def test_extrapolation_is_told() -> None:
    assert predicted(pe=128)["extrapolation"] == [
        "no run of data+filter was calibrated",
        "p = 128 is outside the calibrated 1 to 64",
    ]


def test_another_machines_calibration_is_an_extrapolation() -> None:
    found = sweep.predict(
        "resnet50",
        "data",
        16,
        64,
        dataset="imagenet-226",
        system="dgx-h100",
        settings={"oracle": "paper", "calibration": CALIBRATION},
    )
    assert found["extrapolation"] == ["runs of abci were calibrated, not of dgx-h100"]


def test_the_best_is_so_with_a_probability(cube) -> None:
    first, second, third = sweep.best(cube).to_dict("records")
    assert first["strategy"] == "data"
    assert 0.5 < first["faster_than_next"] <= 1
    assert second["faster_than_next"] is third["faster_than_next"] is None
    groups = sweep.best(cube, selection={"strategy": ["data+filter", "data+filter:group=8"]})
    assert 0.5 < groups["faster_than_next"][0] < 1
    dataset = sweep.best(sweep.open_dataset(cube)).to_dict("records")
    assert dataset[0]["faster_than_next"] == pytest.approx(first["faster_than_next"])


def test_the_chosen_group_is_the_one_that_has_chances(tmp_path) -> None:
    """ABCI's memory forbids the first candidate, groups of 2; of the others, 4 is the fastest."""
    axes = {"model": "cosmoflow", "dataset": "cosmoflow-512", "system": "abci", "pe": 64}
    chances = []
    for group in ("best", "4"):
        rivals = [f"data+spatial:group={group}", "data+spatial:group=8"]
        spec = {
            "oracle": "paper",
            "axes": axes | {"strategy": rivals, "batch": 1},
            "parameters": {"gamma": 0.25},
            "calibration": "abci",
        }
        first, _ = sweep.best(sweep.run(spec, tmp_path / group)).to_dict("records")
        assert first["strategy"] == rivals[0]
        chances.append(first["faster_than_next"])
    assert chances[0] == chances[1]


@pytest.mark.parametrize("calibration", ["none", CALIBRATION], ids=["none", "mine"])
def test_the_chosen_group_is_told_as_if_it_had_been_asked_for(calibration) -> None:
    """Groups of 2 to 64 compete; of the two answers only the label may differ."""
    asked: dict[str, Any] = {"dataset": "cosmoflow-512", "parameters": {"gamma": 0.25}}
    asked["settings"] = {"oracle": "paper", "calibration": calibration}
    best = sweep.explain("cosmoflow", "data+spatial:group=best", 64, 1, **asked)
    assert best["group"] == 4
    label = "data+spatial:group=4"
    assert best | {"strategy": label} == sweep.explain("cosmoflow", label, 64, 1, **asked)


def test_a_chance_needs_the_cubes_own_labels(cube) -> None:
    """Another cube's, put beside this one's, follow from a spec that is not at hand."""
    other = sweep.open_dataset(cube).assign_coords(model=["other"])
    with pytest.raises(InputError, match="'other' is no model of the spec"):
        sweep.best(other)


def test_every_machine_has_intervals(tmp_path) -> None:
    """Machines without a path through host memory among them: its bandwidth is infinite there."""
    axes = AXES | {"system": list_names("system"), "strategy": list(MEANING), "pe": [1, 4, 64]}
    outputs = ["comp_time", "comm_time", "limit", *INTERVALS]
    spec = {"oracle": "paper", "axes": axes, "calibration": "abci", "outputs": outputs}
    cube = sweep.run(spec, tmp_path / "cube.zarr").load()
    known = np.isfinite(cube.comp_time + cube.comm_time)
    assert known.any(["pe", "batch"]).all()
    for name in INTERVALS:
        assert (np.isfinite(cube[name]) == known).all(), name


def test_intervals_need_a_calibration(tmp_path) -> None:
    with pytest.raises(InputError, match="'comp_time_p10' needs a calibration"):
        sweep.run(SPEC | {"calibration": "none"}, tmp_path / "cube.zarr")


def test_the_formulas_that_were_used_are_explained() -> None:
    settings = {"oracle": "paper", "calibration": CALIBRATION}
    found = sweep.explain("resnet50", "filter", 16, 64, dataset="imagenet-226", settings=settings)
    assert sum(row["part"] for row in found["formulas"]) == pytest.approx(1)
    assert "split_overhead" in {row["term"] for row in found["formulas"]}
