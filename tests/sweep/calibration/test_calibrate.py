"""`paradl calibrate`: the whole of it, its file, and what is shipped."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from measured_runs import list_runs

import paradl
from paradl.grids.entries.calibration import ASSUMED, STAGED, CalibrationFile, list_priors
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.sweep.answers.types.schemas import build_schemas
from paradl.sweep.calibration.calibrate import format_file
from paradl.sweep.calibration.cross_validation import leave_out
from paradl.sweep.calibration.residuals import find_residuals, find_unseen_spread
from paradl.sweep.cli.main import main as run_command
from paradl.sweep.text.comparison import show_calibration


def main(monkeypatch, *arguments) -> int:
    """The command's exit code."""
    monkeypatch.setattr("sys.argv", ["paradl", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        run_command()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def calibrated(measured, shipped) -> CalibrationFile:
    return paradl.calibrate(measured(shipped), system="abci", cross_validation=False)


def test_the_file_is_what_was_fitted(calibrated, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(format_file(calibrated))
    read = find("calibration", str(path), Path())
    assert {**read.definition(), **ROUNDED} == {**calibrated.definition(), **ROUNDED}
    for name, parameter in read.parameters.items():
        fitted = calibrated.parameters[name]
        assert parameter.value == pytest.approx(fitted.value, rel=1e-3)
        assert parameter.spread == pytest.approx(fitted.spread, rel=1e-2)
        assert parameter.determined == fitted.determined
    assert read.covariance == pytest.approx(calibrated.covariance, abs=0.01)
    assert read.serial.keys() == calibrated.serial.keys()
    assert read.accuracy.keys() == {"fit"}


ROUNDED = dict.fromkeys(
    (
        *("parameters", "correlation", "serial", "error", "accuracy"),
        *("profile_factor", "profile_spread", "roofline_factor", "roofline_spread"),
    )
)


def test_every_parameter_has_its_unit_and_meaning(calibrated) -> None:
    lines = format_file(calibrated).splitlines()
    for name, prior in list_priors("fp32", "plain").items():
        line = next(line for line in lines if line.startswith(f"  {name}:"))
        assert prior.row.meaning in line
        assert ("[s]" in line) == (prior.row.unit == "s")


def test_it_says_what_it_was_made_of(calibrated) -> None:
    assert calibrated.title == "abci, calibrated from 56 measured runs"
    assert calibrated.source == ("measured.csv, 34 of TR-fig2, 1 of TR-table9, 21 of raw-log",)
    series = {(line.model, line.strategy): line.pe for line in calibrated.series}
    assert series["resnet50", "filter"] == (4, 16, 64)
    assert calibrated.layers == ("conv2d", "conv3d", "matmul")
    assert calibrated.oracle == "machine"
    assert calibrated.belongs_to(find("system", "abci", Path()))


def test_without_cross_validation_errors_are_assumed(calibrated, capsys) -> None:
    assert calibrated.error == ASSUMED
    show_calibration(calibrated, find("system", "abci", Path()), "table")
    shown = capsys.readouterr().out
    assert "nothing (fit)" in shown
    assert "mostly the prior" in shown


def test_names_that_need_quotes_are_quoted(calibrated, tmp_path) -> None:
    changed = calibrated.model_copy(
        update={"title": "a: b # c", "serial": {"no": calibrated.serial["vgg16"]}}
    )
    path = tmp_path / "mine.yaml"
    path.write_text(format_file(changed))
    read = find("calibration", str(path), Path())
    assert read.title == "a: b # c"
    assert list(read.serial) == ["no"]


def test_command(measured, seven, tmp_path, monkeypatch, capsys) -> None:
    """Of a machine whose links pass no host memory."""
    output = tmp_path / "mine.yaml"
    arguments = ("calibrate", measured(seven), "-o", output)
    assert main(monkeypatch, *arguments, "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert {"fit", "configuration", "scale", "series", "strategy"} <= shown["accuracy"].keys()
    assert tuple(shown["parameters"]) == tuple(list_priors("tf32", "ddp", staged=False))
    expect_for_its_machine(output, "dgx-a100")


def test_runs_of_an_extreme_time_have_an_answer_of_the_schema(
    measured, seven, tmp_path, monkeypatch, capsys
) -> None:
    path = measured(
        [row | {"total_s": "1e-12", "comp_s": "1e-12", "comm_s": "1e-12"} for row in seven]
    )
    options = ("-o", tmp_path / "mine.yaml", "--no-cross-validation", "--format", "json")
    assert main(monkeypatch, "calibrate", path, *options, "--keep-anomalies") == 0
    answer = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)  # no NaN
    assert answer["accuracy"]
    Draft202012Validator(build_schemas()["calibrate"]).validate(answer)


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("nowhere/mine.yaml", "nowhere"),
        (".", "a folder"),
    ],
)
def test_no_place_for_the_file(
    measured, seven, tmp_path, monkeypatch, capsys, output, message
) -> None:
    assert main(monkeypatch, "calibrate", measured(seven), "-o", tmp_path / output) == 2
    assert message in capsys.readouterr().err


def test_measured_runs_are_not_overwritten(measured, seven, tmp_path, monkeypatch, capsys) -> None:
    path = measured(seven)
    before = path.read_bytes()
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    for output in (path, link):
        assert main(monkeypatch, "calibrate", path, "-o", output) == 2
        assert str(output) in capsys.readouterr().err
    assert path.read_bytes() == before


def test_bad_input_is_one_message(measured, seven, tmp_path, monkeypatch, capsys) -> None:
    rows = [seven[0] | {"total_s": "fast"}]
    output = tmp_path / "mine.yaml"
    assert main(monkeypatch, "calibrate", measured(rows), "-o", output) == 2
    message = capsys.readouterr().err
    assert "measured.csv:2: total_s" in message
    assert len(message.splitlines()) == 1
    assert not output.exists()


def test_other_machines_can_be_calibrated_from_seven_runs(measured, tmp_path) -> None:
    """Of another precision and software; the same runs give the same bytes."""
    system = "dgx1-v100:precision=amp"
    rows = [row | {"system": ""} for row in list_runs(system)]
    first, again = (
        format_file(paradl.calibrate(measured(rows), system=system, cross_validation=False))
        for _ in range(2)
    )
    assert first == again
    written = tmp_path / "mine.yaml"
    written.write_text(first)
    expect_for_its_machine(written, system)


def test_runs_far_from_their_prediction_are_met(measured, seven) -> None:
    """By the factor of their network: all of its runs are no outliers."""
    rows = [
        row | {"total_s": repr(6 * float(row["total_s"])), "comp_s": "", "comm_s": ""}
        if row["model"] == "vgg16"
        else row
        for row in seven
    ]
    file = paradl.calibrate(measured(rows), cross_validation=False, keep_anomalies=True)
    assert file.accuracy["fit"]["total"] > 0.9


# Slow enough for work, and not for starting kernels, to take the time.
P100 = "dgx1-p100"


def test_runs_of_an_own_network_on_a_slow_machine(measured, tmp_path) -> None:
    """1.2 times as slow: predictions then meet them, and of networks that did not run are no less
    sure.
    """
    own = find("model", "alexnet", Path()).definition() | {"name": "mine", "profiles": []}
    network = tmp_path / "network.yaml"
    network.write_text(json.dumps(own))
    rows = list_runs(P100, str(network))
    for row in rows:
        row |= {name: repr(1.2 * float(row[name])) for name in ("total_s", "comp_s", "comm_s")}
    path, written = measured(rows), tmp_path / "calibration.yaml"
    fitted = paradl.calibrate(path, cross_validation=False)
    written.write_text(format_file(fitted))
    before, after = (
        paradl.compare(path, calibration=name)["summary"]["overall"]
        for name in ("none", str(written))
    )
    for part in ("total", "comp", "comm"):
        assert after[part]["mean"] == pytest.approx(fitted.accuracy["fit"][part], abs=2e-3)
    assert after["total"]["mean"] > before["total"]["mean"] + 0.05
    assert after["coverage"]["total"] == fitted.accuracy["fit"]["total_in_interval"]
    assert set(fitted.serial) == {"mine", "resnet50"}
    before, after = (predict_unseen(name) for name in ("none", str(written)))
    assert 1.08 < after["p50"] / before["p50"] < 1.45
    # As wide, but for what correlated draws of a finite number differ in: 0.07 %.
    assert after["p90"] / after["p10"] < 1.005 * before["p90"] / before["p10"]


def predict_unseen(calibration: str) -> dict[str, float]:
    """Percentiles of an iteration of a network that did not run."""
    settings = {"calibration": calibration}
    where: dict[str, Any] = {"dataset": "imagenet", "system": P100, "settings": settings}
    return paradl.predict("vgg16", "data", 8, 32, **where)["intervals"]["iteration_comp_time"]


@pytest.mark.parametrize(("first", "second"), [(4.5, 1.2), (1.0, 3.0)])
def test_networks_that_err_differently_leave_others_as_unsure_as_they_are(
    measured, seven, tmp_path, first, second
) -> None:
    """The former of them by so much that hosts, rather than devices, would set the time."""
    rows = [
        row | {name: repr(factor * float(row[name])) for name in ("total_s", "comp_s")}
        for row in seven
        for factor in [first if row["model"] == "resnet50" else second]
    ]
    file = paradl.calibrate(measured(rows), keep_anomalies=True)
    path = tmp_path / "mine.yaml"
    path.write_text(format_file(file))
    rated = file.accuracy["model"]
    assert rated["total"] < 0.8
    assert rated["total_in_interval"] >= 0.8

    def predict(model: str, dataset: str) -> dict[str, float]:
        settings = {"calibration": str(path)}
        where: dict[str, Any] = {"dataset": dataset, "system": "dgx-a100", "settings": settings}
        return paradl.predict(model, "data", 8, 32, **where)["intervals"]["iteration_time"]

    third, known = predict("inception_v3", "imagenet-299"), predict("vgg16", "imagenet")
    assert third["p50"] / third["p10"] > 1 / rated["total"]
    assert third["p90"] / third["p50"] > 1 / rated["total"]
    assert known["p90"] / known["p50"] < 1.2


def test_networks_of_one_name_are_refused(measured, shipped, tmp_path) -> None:
    other = find("model", "alexnet", Path()).definition() | {"name": "resnet50", "profiles": []}
    network = tmp_path / "network.yaml"
    network.write_text(json.dumps(other))
    data = next(row for row in shipped if row["model"] == "resnet50" and row["strategy"] == "data")
    with pytest.raises(InputError, match=r"measured\.csv:3: model"):
        paradl.calibrate(measured([data, data | {"model": str(network)}]), system="abci")


def expect_for_its_machine(path: Path, system: str) -> None:
    """A calibration by seven runs of a machine that passes nothing through host memory."""
    file = find("calibration", str(path), Path())
    assert file.belongs_to(find("system", system, Path()))
    assert all(0 < parameter.spread < 2 for parameter in file.parameters.values())
    assert file.accuracy["fit"]["total"] > 0.9
    assert find("system", system, Path()).staging is None
    assert not {*STAGED, "log_open"} & set(file.parameters)  # it has neither
    assert len(file.correlation) == len(file.parameters)
    options: dict[str, Any] = {"dataset": "imagenet", "system": system}
    prediction = paradl.predict(
        "resnet50", "data", 8, 32, **options, settings={"calibration": str(path)}
    )
    assert prediction["calibration"] == system
    assert prediction["extrapolation"] == []


def test_what_is_shipped_was_made_by_the_command(calibrated) -> None:
    """Of the runs that are shipped; its accuracies take longer than a test may."""
    file, again = find("calibration", "abci", Path()), calibrated
    for name, parameter in file.parameters.items():
        # The file has four digits of one, three of the other.
        assert parameter.value == pytest.approx(again.parameters[name].value, rel=1e-3), name
        assert parameter.spread == pytest.approx(again.parameters[name].spread, rel=1e-2), name
    for model, serial in file.serial.items():
        assert serial.factor == pytest.approx(again.serial[model].factor, rel=1e-3), model
    assert file.series == again.series
    for part in ("total", "comp", "comm"):
        fitted = again.accuracy["fit"][part]
        assert file.accuracy["fit"][part] == pytest.approx(fitted, abs=2e-3)


def test_networks_of_the_shipped_runs_err_as_is_assumed(observed, shipped) -> None:
    observations = observed(shipped)
    residuals = find_residuals(observations, leave_out(observations, ("model",)))
    assert find_unseen_spread(residuals) == 0
    assert find("calibration", "abci", Path()).unseen_spread is None
