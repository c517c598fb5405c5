"""Intervals and chances: of one configuration, of a cube, of the best of two."""

import json
import re
from dataclasses import asdict
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from calibrations import define_calibration

import paradl
from paradl.grids.grid import Grid
from paradl.grids.inputs.uncertainty import NAMES
from paradl.grids.outputs import INTERVALS, TRAINING
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.stored import PERCENTILES

# Of those that need no epochs to a target (test_training.py).
OF_TIMES = [name for name, (time, _) in INTERVALS.items() if time not in TRAINING]
SERIES: dict[str, Any] = {"model": "resnet50", "dataset": "imagenet", "strategy": "data"}
SERIES |= {"pe": [1, 64], "batch": [32, 64]}
CALIBRATION = define_calibration(
    serial={"resnet50": {"factor": 1.1, "spread": 0.04}}, series=[SERIES], spread=0.15
)
AXES: dict[str, Any] = {
    "model": "resnet50",
    "dataset": "imagenet",
    "system": "abci",
    "strategy": ["data+filter", "data+spatial:group=4"],
    "pe": [8, 16],
    "batch": [32, 64],
}
SPEC: dict[str, Any] = {
    "axes": AXES,
    "calibration": CALIBRATION,
    "outputs": ["comp_time", "comm_time", "memory", "limit", *OF_TIMES],
}
SPATIAL = AXES["strategy"][1]
TIMES = ("iteration_time", "iteration_comp_time", "iteration_comm_time")


@pytest.fixture(scope="module")
def cube(tmp_path_factory):
    place = tmp_path_factory.mktemp("calibrated") / "cube.zarr"
    paradl.run(SPEC, place)
    return place


def predict(
    strategy="data+filter", pe=16, calibration: object = CALIBRATION, system="abci", **parameters
) -> dict[str, Any]:
    settings = {"calibration": calibration}
    return paradl.predict(
        "resnet50",
        strategy,
        pe,
        64,
        dataset="imagenet",
        system=system,
        parameters=parameters,
        settings=settings,
    )


def read_spread(answer: dict[str, Any], name: str) -> float:
    """The standard deviation of the logarithm that an interval tells."""
    interval = answer["intervals"][name]
    return float(np.log(interval["p90"] / interval["p50"]) / PERCENTILES[90])


# Of the draws alone, and of the model's own error alone.
DRAWN = CALIBRATION | {"error": dict.fromkeys(CALIBRATION["error"], 0.0)}
SURE = define_calibration(
    serial={"resnet50": {"factor": 1.1, "spread": 0.0}}, series=[SERIES], spread=0.0
)
# Those that no run is asked about, at their priors.
STATED = {"startup": 1.0, "jitter": 0.015, "node_reduce": 0.8}


@cache
def draw_times(strategy: str) -> dict[str, np.ndarray]:
    """Seconds [draw], with each draw's parameters stated, and its slowness as a calibration's."""
    spec = validate_spec({**SPEC, "axes": {**AXES, "strategy": strategy, "pe": 16}}, "spec")
    case = Grid.from_spec(spec).case((0, 0, 0, 0))
    assert isinstance(case, Case)
    assert case.uncertainty is not None
    software, factors = asdict(case.software), asdict(case.uncertainty.factors)
    answers = []
    for n, slower in enumerate(np.ravel(case.uncertainty.serial).tolist()):
        stated = {name: float(np.squeeze(software[name] * factors[name][n])) for name in NAMES}
        stated |= {name: min(stated[name], 1.0) for name in ("rail", "flow")}
        del stated["bucket"]  # of plain software without bound, and not drawn
        serial = {"resnet50": {"factor": 1.1 * slower, "spread": 0.0}}
        answers.append(predict(strategy, 16, CALIBRATION | {"serial": serial}, **stated))
    return {name: np.array([answer[name] for answer in answers]) for name in TIMES}


@pytest.mark.parametrize("strategy", AXES["strategy"])
def test_spreads_are_those_of_predictions_with_each_draws_parameters(strategy) -> None:
    answer = predict(strategy, calibration=DRAWN)
    for name, seconds in draw_times(strategy).items():
        assert read_spread(answer, name) == pytest.approx(np.log(seconds).std(), rel=1e-9), name


def test_drawn_spread_and_own_error_add_up() -> None:
    prediction, drawn, own = (
        predict(),
        predict(calibration=DRAWN),
        predict(calibration=SURE, **STATED),
    )
    for name in TIMES:
        expected = np.hypot(read_spread(drawn, name), read_spread(own, name))
        assert read_spread(prediction, name) == pytest.approx(expected, rel=1e-6), name


@pytest.mark.parametrize("strategy", ["data", "data+filter", "pipeline"])
@pytest.mark.parametrize("system", ["abci", "dgx-h100", "dgx1-v100"])
def test_an_interval_lies_about_the_prediction(system, strategy) -> None:
    answer = predict(strategy, system=system, calibration="auto")
    for name in TIMES:
        interval = answer["intervals"][name]
        assert interval["p10"] < interval["p50"] < interval["p90"]
        assert interval["p50"] == pytest.approx(answer[name], rel=1e-9)


def test_what_a_user_states_is_sure() -> None:
    """Of the parameters that matter to data parallelism inside a node, one after the other."""
    stated: dict[str, float] = {}
    spreads = [read_spread(predict("data", 4, "none"), "iteration_comm_time")]
    for name in ("node_reduce", "jitter"):
        stated[name] = predict("data", 4, "none")["parameters"].get(name, 0.8)
        spreads.append(read_spread(predict("data", 4, "none", **stated), "iteration_comm_time"))
    assert spreads[0] > spreads[1] > spreads[2]
    # What is left is the time computing, which jitter is a part of, and the model's own error.
    assert spreads[2] < 0.21


def test_the_papers_oracle_has_none() -> None:
    answer = paradl.predict(
        "resnet50", "data", 16, 64, dataset="imagenet", system="abci", settings={"oracle": "paper"}
    )
    assert (answer["calibration"], answer["intervals"], answer["extrapolation"]) == (None, None, [])
    with pytest.raises(InputError, match="'comp_time_p10'"):
        validate_spec({**SPEC, "oracle": "paper", "calibration": "none"}, "spec")


def test_a_cube_has_the_intervals_of_its_cells(cube) -> None:
    answer = predict()
    cell = paradl.open_dataset(cube).sel(strategy="data+filter", pe=16, batch=64).squeeze()
    for time, name in (("epoch", "time"), ("comp", "comp_time"), ("comm", "comm_time")):
        for percentile, seconds in answer["intervals"][f"iteration_{name}"].items():
            stored = float(cell[f"{time}_time_{percentile}"]) / answer["iterations"]
            assert stored == pytest.approx(seconds, rel=1e-5)


MIXED = define_calibration(name="mixed", precision="amp", times=1.1, spread=0.02)


@pytest.mark.parametrize(
    "calibrations",
    [
        {"abci": CALIBRATION, "abci:precision=amp": MIXED},
        {"abci:precision=amp": MIXED, "dgx-h100": "none"},
    ],
    ids=["both", "one"],
)
def test_machines_of_one_cube_have_calibrations_of_their_own(calibrations, tmp_path) -> None:
    """Each with its own intervals, with a path through host memory or an infinite one."""
    # Two systems, as the other cubes have two strategies: a program of the same shapes.
    axes = {**AXES, "system": [*calibrations], "strategy": SPATIAL}
    files = [path for path in calibrations.values() if path != "none"]
    cells = paradl.run({**SPEC, "axes": axes, "calibration": files}, tmp_path / "cube.zarr").load()
    for name in OF_TIMES:
        assert np.isfinite(cells[name]).all(), name
    assert (cells.epoch_time_p10 < cells.epoch_time_p50).all()
    one = cells.sel(pe=16, batch=64).squeeze()
    for system, calibration in calibrations.items():
        answer = predict(SPATIAL, 16, calibration, system)
        expected = answer["intervals"]["iteration_time"]["p90"] * answer["iterations"]
        assert float(one.epoch_time_p90.sel(system=system)) == pytest.approx(expected, rel=1e-5)


def test_a_store_holds_its_calibration(cube) -> None:
    """A store is complete: the file, or the catalogue, may be gone."""
    again = paradl.open_dataset(cube)
    (written,) = json.loads(again.attrs["paradl_spec"])["calibration"]
    assert (written["name"], written["error"]) == ("mine", CALIBRATION["error"])
    assert np.isfinite(again.epoch_time_p90.values).all()


def test_a_calibrated_sweep_is_resumed_as_it_was_begun(cube) -> None:
    before = paradl.open_dataset(cube).attrs["history"]
    assert paradl.run(SPEC, cube).attrs["history"] == before
    other = CALIBRATION | {"error": CALIBRATION["error"] | {"serial": 0.05}}
    with pytest.raises(
        InputError, match=r"calibration\.abci\.error\.serial: 0\.03 in the store, 0"
    ):
        paradl.run(SPEC | {"calibration": other}, cube)


def test_a_machine_that_is_calibrated_joins_others(tmp_path) -> None:
    """By auto: what is shipped for the new system changes none of the old one's cells."""
    place, old = tmp_path / "cube.zarr", "dgx-h100"
    axes = {**AXES, "strategy": SPATIAL}
    spec = {"axes": {**axes, "system": [old]}, "outputs": SPEC["outputs"]}
    before = paradl.run(spec, place).load()
    both = paradl.run({**spec, "axes": {**axes, "system": [old, "abci"]}}, place, extend=True)
    (written,) = json.loads(both.attrs["paradl_spec"])["calibration"]
    assert written["name"] == "abci"
    np.testing.assert_array_equal(both.epoch_time_p90.sel(system=[old]), before.epoch_time_p90)
    answer = predict(SPATIAL, calibration="auto")
    stored = both.sel(system="abci", strategy=SPATIAL, pe=16, batch=64).squeeze()
    for percentile in ("p50", "p90"):
        expected = answer["intervals"]["iteration_time"][percentile] * answer["iterations"]
        assert float(stored[f"epoch_time_{percentile}"]) == pytest.approx(expected, rel=1e-5)


def test_extrapolation_is_stated() -> None:
    assert predict(pe=128)["extrapolation"] == [
        "no run of data+filter was calibrated",
        "p = 128 is outside the calibrated 1 to 64",
    ]
    known = CALIBRATION | {"layers": ["conv2d"]}
    result = ["no run with layers of matmul was calibrated"]
    assert predict("data", calibration=known)["extrapolation"] == result


@pytest.mark.parametrize(
    ("system", "named"),
    [
        ("dgx-h100", ("dgx-h100", "amp", "ddp")),
        ("abci:precision=amp", ("abci", "amp", "plain")),
        ("abci:software=ddp", ("abci", "fp32", "ddp")),
    ],
)
def test_another_machine_precision_or_software_is_an_extrapolation(system, named) -> None:
    answer = predict("data", calibration="auto", system=system)
    assert answer["calibration"] is None
    (note,) = answer["extrapolation"]
    assert set(named) <= set(re.findall(r"[\w-]+", note))
    with pytest.raises(InputError, match=r"'mine'.* abci:precision=fp32,software=plain"):
        predict("data", system=system)


# Chances.


def test_the_best_is_so_with_a_probability(cube) -> None:
    first, second = paradl.best(cube).to_dict("records")
    assert 0.5 < first["faster_than_next"] <= 1
    assert second["faster_than_next"] is None
    dataset = paradl.best(paradl.open_dataset(cube)).to_dict("records")
    assert dataset[0]["faster_than_next"] == pytest.approx(first["faster_than_next"])


def test_a_chance_is_of_the_same_draws(cube) -> None:
    """What slows both alike does not count; the models' own errors are independent."""
    ranked = paradl.best(cube, selection={"pe": [16], "batch": [64]}).to_dict("records")
    ways = [row["strategy"] for row in ranked]
    assert set(ways) == set(AXES["strategy"])
    samples = [predict(way)["global_batch"] for way in ways]
    first, second = (
        draw_times(way)["iteration_time"] / count for way, count in zip(ways, samples, strict=True)
    )
    errors = [
        read_spread(predict(way, calibration=SURE, **STATED), "iteration_time") for way in ways
    ]
    apart = np.log(second / first) / float(np.hypot(errors[0], errors[1]))
    expected = float(np.mean([NormalDist().cdf(value) for value in apart.tolist()]))
    assert ranked[0]["faster_than_next"] == pytest.approx(expected, rel=1e-6)
    assert 0.5 < expected < 1


def test_the_chosen_group_is_the_one_that_has_chances() -> None:
    chances = []
    chosen = paradl.predict(
        "cosmoflow", "data+spatial:group=best", 64, 1, dataset="cosmoflow-256", system="abci"
    )
    for group in ("best", str(chosen["group"])):
        rivals = [f"data+spatial:group={group}", "data+filter:group=4"]
        space = paradl.predict("cosmoflow", rivals, 64, 1, dataset="cosmoflow-256", system="abci")
        ranked = paradl.best(space).to_dict("records")
        assert {row["strategy"] for row in ranked} == set(rivals)
        chances.append(ranked[0]["faster_than_next"])
    assert chances[0] == pytest.approx(chances[1])


@pytest.mark.parametrize("calibration", ["none", "auto"])
def test_the_chosen_group_is_stated_as_if_it_had_been_asked_for(calibration) -> None:
    """Groups of 2 to 64 compete; of the two answers only the label may differ."""
    options: dict[str, Any] = {"dataset": "cosmoflow-512", "system": "abci"}
    options["settings"] = {"calibration": calibration}
    best = paradl.explain("cosmoflow", "data+spatial:group=best", 64, 1, **options)
    label = f"data+spatial:group={best['group']}"
    same = paradl.explain("cosmoflow", label, 64, 1, **options)
    assert round_numbers(best | {"strategy": label}) == round_numbers(same)


def round_numbers(answer: object) -> object:
    """The answer to 12 digits: other programs round differently."""
    return json.loads(json.dumps(answer), parse_float=lambda number: float(f"{float(number):.12g}"))


def test_a_chance_needs_the_cubes_own_labels(cube) -> None:
    """Another cube's, put beside this one's, follow from a spec that is not at hand."""
    other = paradl.open_dataset(cube).assign_coords(model=["other"])
    with pytest.raises(InputError, match="model 'other'"):
        paradl.best(other)
