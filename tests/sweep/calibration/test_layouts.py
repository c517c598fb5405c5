"""Runs of transformers' layouts: compared with predictions, and calibrated."""

import csv
import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from measured_runs import list_runs

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.calibration import DRAWN_OF_BLOCKS, CalibrationFile
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.transformer_rates import SPREAD, find_spread
from paradl.grids.library import find
from paradl.grids.notes import list_warnings
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.layout_terms import LAYOUT_FORMULAS
from paradl.kernels.names.stored import PERCENTILES
from paradl.sweep.answers.types.schemas import build_schemas
from paradl.sweep.calibration.calibrate import format_file
from paradl.sweep.calibration.layouts import fit_times, move_times
from paradl.sweep.questions.best.question import rank_strategies
from paradl.sweep.text.comparison import NOTICED, show_calibration

SYSTEM = "dgx-a100:precision=bf16,software=megatron"
HEAD = "model,dataset,system,strategy,p,samples_per_replica,total_s"
RUNS = (
    ("data+tensor:tensor=2,micro=1,zero=1", 64, 4),
    ("data+tensor:tensor=8,micro=1,zero=1", 256, 8),
    ("megatron:tensor=2,pipeline=2,micro=1", 32, 8),
    ("fsdp:micro=1", 64, 2),
)
NOTHING = (0.0,) * len(RUNS)


def ask(strategy: str, p: int, batch: int, calibration: str = "none", model: str = "llama2_7b"):
    return paradl.predict(
        *(model, strategy, p, batch),
        dataset="pile:length=4096",
        system=SYSTEM,
        settings={"calibration": calibration},
    )


@pytest.fixture(scope="module")
def write(tmp_path_factory):
    """Write runs that took `factor` times the predicted time, each off by its own share."""
    seconds = [ask(*run)["iteration_time"] for run in RUNS]

    def write(factor: float, off=NOTHING, more: str = "") -> Path:
        path = tmp_path_factory.mktemp("runs") / "runs.csv"
        rows = [
            f'llama2_7b,pile:length=4096,"{SYSTEM}","{strategy}",{p},{batch},'
            f"{time * factor * math.exp(share):.17g}"
            for (strategy, p, batch), time, share in zip(RUNS, seconds, off, strict=True)
        ]
        path.write_text("\n".join([HEAD, *rows]) + "\n" + more)
        return path

    return write


@pytest.fixture(scope="module")
def calibrated(write) -> CalibrationFile:
    return paradl.calibrate(write(1.3, (0.05, -0.02, 0.03, -0.06)))


def test_the_fit_is_the_most_probable_one() -> None:
    """Least squares of runs, in spreads of SPREAD, and of moves, in spreads of their priors."""
    generator = np.random.default_rng(1)
    off, slopes = generator.normal(0, 0.2, 7), generator.normal(0, 0.5, (7, 3))
    priors = {"rail": 0.3, "overlap": 0.2, "host_pause": 0.0}
    times = fit_times(off, np.full(7, SPREAD), slopes, priors)
    assert times
    assert times.parameters.keys() == {"rail", "overlap"}  # what software settles stays
    columns = np.column_stack([slopes * [0.3, 0.2, 0.0], np.full(7, 0.05)])
    rows, goals = np.vstack([columns / SPREAD, np.eye(4)]), np.append(off / SPREAD, np.zeros(4))
    rail, overlap, _, factor = np.linalg.lstsq(rows, goals)[0] * [0.3, 0.2, 0.0, 0.05]
    fitted = [times.parameters["rail"], times.parameters["overlap"], times.factor]
    assert np.log(fitted) == pytest.approx([rail, overlap, factor])
    moved = move_times(times, slopes, priors)
    assert moved == pytest.approx(slopes @ [rail, overlap, 0.0] + factor)
    rest = (off - moved) / SPREAD
    assert times.scatter == pytest.approx(math.sqrt((2 + sum(rest**2)) / 9))


def test_runs_of_one_error_are_met(calibrated) -> None:
    assert calibrated.layouts
    assert calibrated.layouts.runs == 4
    assert 1 < calibrated.layouts.factor < 1.3
    # Slower by 1.3: parameters that slow all four move, and no share exceeds 1.
    assert calibrated.layouts.parameters["efficiency_blocks"] < 1
    assert calibrated.layouts.parameters.keys() <= {*DRAWN_OF_BLOCKS}


def test_a_file_moves_predictions_of_layouts_and_of_nothing_else(calibrated, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(format_file(calibrated))
    before, after = ask(*RUNS[0]), ask(*RUNS[0], str(path))
    # The run took 1.3 x exp(0.05) times as long as predicted.
    assert 1.15 < after["iteration_time"] / before["iteration_time"] < 1.37
    assert after["intervals"]["iteration_time"]["p50"] == pytest.approx(after["iteration_time"])
    assert sum(after["terms"].values()) == pytest.approx(after["epoch_time"])
    assert (before["calibration"], after["calibration"]) == (None, SYSTEM)

    def ask_network(calibration: str):
        settings = {"calibration": calibration}
        place = ("resnet50", "data", 16, 32)
        return paradl.predict(*place, dataset="imagenet", system=SYSTEM, settings=settings)

    assert ask_network(str(path)) == ask_network("none")


@pytest.mark.parametrize("formulas", [LAYOUT_FORMULAS - 1, None, LAYOUT_FORMULAS])
def test_files_by_earlier_formulas_still_count_and_are_told(calibrated, tmp_path, formulas) -> None:
    path, written = tmp_path / "mine.yaml", format_file(calibrated)
    current = f"formulas: {LAYOUT_FORMULAS}"
    assert current in written
    written = written.replace(current, f"formulas: {formulas}")
    path.write_text(written if formulas else written.replace(", formulas: None", ""))
    assert ask(*RUNS[0], str(path))["calibration"] == SYSTEM
    grid = make_grid(
        SpaceValues(
            *("llama2_7b", 64, 4, "pile", SYSTEM, "data"), settings={"calibration": str(path)}
        )
    )
    told = [text for text in list_warnings(grid) if "earlier formulas" in text]
    assert len(told) == (formulas != LAYOUT_FORMULAS)


def read_spread(answer) -> float:
    """The spread of an answer's interval, a Student t with four degrees of freedom."""
    interval = answer["intervals"]["iteration_time"]
    return math.log(interval["p90"] / interval["p10"]) / (2 * PERCENTILES[90])


def test_intervals_are_as_wide_as_the_runs_scatter(calibrated, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(format_file(calibrated))
    assert calibrated.layouts
    # By hand: the runs' scatter, and the factor, which four of them leave unsure.
    runs = SPREAD * calibrated.layouts.scatter
    unsure = (1 / 0.08**2 + 4 / runs**2) ** -0.5
    spread = read_spread(ask(*RUNS[0], str(path)))
    assert spread == pytest.approx(math.hypot(runs, unsure), rel=2e-3)  # rounded in the file
    assert calibrated.layouts.scatter < 1  # they are off by 0.05 at most


def test_software_that_runs_have_measured_widens_no_interval(write, tmp_path) -> None:
    unstated = SYSTEM.removesuffix(",software=megatron")
    runs = write(1.0)
    runs.write_text(runs.read_text().replace(SYSTEM, unstated))
    file = paradl.calibrate(runs, cross_validation=False)
    path = tmp_path / "mine.yaml"
    path.write_text(format_file(file))
    narrow, wide = (
        paradl.predict(
            *("llama2_7b", *RUNS[0]),
            dataset="pile:length=4096",
            system=unstated,
            settings={"calibration": calibration},
        )
        for calibration in (str(path), "none")
    )
    assert read_spread(narrow) < SPREAD < read_spread(wide)
    assert "not stated" in wide["times"]
    assert "not stated" not in narrow["times"]


def test_intervals_hold_what_they_promise_of_runs_left_out() -> None:
    """Of 400 stacks that differ as those of the catalogue do, by four runs of each."""
    generator = np.random.default_rng(0)
    priors, held = {"rail": 0.3, "overlap": 0.3, "block_passes": 0.3}, []
    for _ in range(400):
        slopes, moves = generator.normal(0, 0.12, (5, 3)), generator.normal(0, 0.3, 3)
        stack = generator.normal(0, math.hypot(0.05, 0.08))
        off = slopes @ moves + stack + SPREAD * generator.standard_t(4, 5)
        times = fit_times(off[:4], np.full(4, SPREAD), slopes[:4], priors)
        spread = find_spread("a100", "bf16", "dense", is_known=False, calibrated=times)
        left = off[4] - float(move_times(times, slopes[4:], priors)[0])
        held.append(abs(left) <= PERCENTILES[90] * spread)
    assert 0.72 < np.mean(held) < 0.88


def test_left_out_runs_are_met_better_than_without(calibrated) -> None:
    rated = calibrated.accuracy
    assert rated["layouts, run"]["total"] > rated["layouts, uncalibrated"]["total"]
    assert rated["layouts, fit"]["total"] >= rated["layouts, run"]["total"]


def test_only_cross_validation_leaves_runs_out(write, tmp_path) -> None:
    path = write(1.1)
    rows = path.read_text().splitlines(keepends=True)
    alone = tmp_path / "alone.csv"
    alone.write_text("".join(rows[:2]))
    assert "layouts, run" in paradl.calibrate(path).accuracy
    assert "layouts, run" not in paradl.calibrate(path, cross_validation=False).accuracy
    file = paradl.calibrate(alone)  # of a single run, none would remain
    assert file.accuracy.keys() == {"layouts, uncalibrated", "layouts, fit"}


def test_networks_that_err_differently_leave_others_as_unsure_as_they_are(tmp_path) -> None:
    """One as predicted, the other in twice the time: nobody knows which of them a third is like."""
    path, written = tmp_path / "runs.csv", tmp_path / "mine.yaml"
    rows = [
        f'{model},pile:length=4096,"{SYSTEM}","{RUNS[n][0]}",{RUNS[n][1]},{RUNS[n][2]},{seconds}'
        for model, factor in (("llama2_7b", 1.0), ("llama2_13b", 2.0))
        for n in range(2)
        for seconds in [factor * ask(*RUNS[n], model=model)["iteration_time"]]
    ]
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    file = paradl.calibrate(path)
    written.write_text(format_file(file))
    rated = file.accuracy["layouts, model"]
    assert rated["total"] < file.accuracy["layouts, run"]["total"] < 0.8
    assert rated["total_in_interval"] >= 0.8
    interval = ask(*RUNS[1], str(written), model="llama2_70b")["intervals"]["iteration_time"]
    assert interval["p50"] / interval["p10"] > 0.95 / rated["total"]
    assert interval["p90"] / interval["p50"] > 0.95 / rated["total"]
    # Left-out networks are what says so.
    assert file.layouts
    assumed = paradl.calibrate(path, cross_validation=False).layouts
    assert assumed
    assert file.layouts.scatter > 1.1 * assumed.scatter


def test_the_answer_has_the_factor(write, cli, tmp_path) -> None:
    arguments = ("calibrate", write(1.3), "-o", tmp_path / "mine.yaml", "--format")
    code, out, err = cli(*arguments, "json")
    assert code == 0, err
    Draft202012Validator(build_schemas()["calibrate"]).validate(answer := json.loads(out))
    code, out, err = cli(*arguments, "csv")
    assert code == 0, err
    row, *moves = csv.DictReader(io.StringIO(out))
    assert float(row["value"]) == answer["layouts"]["factor"]
    assert 0 < float(row["spread"]) < float(row["prior_spread"])
    factors = {
        row["parameter"].removesuffix(" of layouts"): float(row["value"]) / float(row["prior"])
        for row in moves
    }
    far = {
        name: factor
        for name, factor in answer["layouts"]["parameters"].items()
        if abs(math.log(factor)) >= NOTICED
    }
    assert 3 < len(far) < len(answer["layouts"]["parameters"])
    assert factors == pytest.approx(far)


def test_no_terminal_of_80_columns_drops_a_value(calibrated, monkeypatch, capsys) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    show_calibration(calibrated, find("system", SYSTEM, Path()), "table")
    lines = capsys.readouterr().out.splitlines()
    head = next(line for line in lines if line.startswith(" parameter"))
    assert head.split()[:3] == ["parameter", "unit", "value"]
    rows = [line.split() for line in lines if " of layouts " in line]
    for name, _, _, unit, value, _, prior, *_ in rows:
        factor = calibrated.layouts.parameters[name]
        assert unit == PARAMETERS[name].unit
        assert float(value) == pytest.approx(factor * float(prior), rel=1e-3)
    assert len(rows) > 2


def test_both_kinds_of_runs_make_one_file(write) -> None:
    names = HEAD.split(",")
    rows = list_runs(SYSTEM)
    rows[0]["strategy"] = "data:micro=32"  # data parallelism, in words of layouts
    networks = [[f'"{row[name]}"' for name in names] for row in rows]
    more = "\n".join(map(",".join, networks))
    file = paradl.calibrate(write(1.3, more=more), cross_validation=False)
    assert file.parameters
    assert file.layouts
    assert file.layouts.runs == len(RUNS)
    assert {"fit", "layouts, fit"} <= file.accuracy.keys()


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ("llama2_7b,pile,dgx-h100,fsdp:micro=1,64,2,1.0", "dgx-h100"),
        (f'llama2_7b,pile,"{SYSTEM}",data+tensor:tensor=3,64,2,1.0', "does_not_divide"),
        (f'resnet50,imagenet,"{SYSTEM}",data+tensor:tensor=2,64,2,1.0', "resnet50"),
        (f"resnet50,imagenet,{'dgx-h100'},data,8,32,0.04", "dgx-h100"),
    ],
)
def test_runs_that_do_not_belong_are_refused_with_their_line(write, row: str, why: str) -> None:
    with pytest.raises(InputError, match=why) as refused:
        paradl.calibrate(write(1.0, more=row + "\n"))
    assert "runs.csv:6" in str(refused.value)


def test_a_run_far_from_its_prediction_stands_out(write) -> None:
    compared = paradl.compare(write(1.0, (0.0, 0.0, 1.2, 0.0)))
    anomalies = [row["anomaly"] for row in compared["rows"]]
    assert [bool(anomaly) for anomaly in anomalies] == [False, False, True, False]
    assert anomalies[2]["term"] in compared["rows"][2]["anomaly"]["what"]
    assert compared["rows"][0]["accuracy_total"] == pytest.approx(1.0)


def test_best_takes_a_calibration_of_its_system(calibrated, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(format_file(calibrated))

    def rank(given: str, system: str = SYSTEM) -> Any:
        space = SpaceValues(
            *("llama2_7b", 64),
            system=system,
            global_batch=256,
            sequence=4096,
            settings={"calibration": given},
        )
        return rank_strategies(make_grid(space), layouts=1)[0]

    plain, moved = rank("none"), rank(str(path))
    assert 1.1 < moved["iteration_time"] / plain["iteration_time"] < 1.4
    assert rank("auto") == plain
    with pytest.raises(InputError, match="calibration"):
        rank(str(path), "dgx-h100")
