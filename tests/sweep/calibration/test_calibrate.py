"""`paradl calibrate`: the whole of it, its file, and what is shipped."""

import json
from pathlib import Path

import pytest

import sweep
from grids.entries.calibration import PRIORS, CalibrationFile
from grids.library import find
from sweep.calibration import model_error
from sweep.calibration.write import text
from sweep.cli.main import main as run_command
from sweep.measured.predicted_runs import AS_MEASURED

PAPER = {**AS_MEASURED, "oracle": "paper"}


def main(monkeypatch, *arguments) -> int:
    """The command's exit code."""
    monkeypatch.setattr("sys.argv", ["paradl", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        run_command()
    return int(ended.value.code or 0)


@pytest.fixture(scope="module")
def few(dozen) -> list[dict[str, str]]:
    return dozen[:4]


@pytest.fixture
def calibrated(measured, dozen) -> CalibrationFile:
    return sweep.calibrate(measured(dozen), cross_validation=False)


def test_the_same_runs_give_the_same_bytes(measured, dozen, calibrated) -> None:
    again = sweep.calibrate(measured(dozen), cross_validation=False)
    assert text(again) == text(calibrated)


def test_the_file_is_what_was_found(calibrated, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text(calibrated))
    read = find("calibration", str(path), Path())
    assert {**read.definition(), **ROUNDED} == {**calibrated.definition(), **ROUNDED}
    for name, each in read.parameters.items():
        found = calibrated.parameters[name]
        assert each.value == pytest.approx(found.value, rel=1e-3)
        assert each.spread == pytest.approx(found.spread, rel=1e-2)
        assert each.determined == found.determined
    assert read.covariance == pytest.approx(calibrated.covariance, abs=0.01)
    assert read.serial.keys() == calibrated.serial.keys()
    assert read.accuracy.keys() == {"fit"}


ROUNDED = dict.fromkeys(("parameters", "correlation", "serial", "error", "accuracy"))


def test_every_parameter_has_its_unit_and_meaning(calibrated) -> None:
    lines = text(calibrated).splitlines()
    for name, prior in PRIORS.items():
        line = next(line for line in lines if line.startswith(f"  {name}:"))
        assert prior.meaning in line
        assert ("[s]" in line) == (prior.unit == "s")


def test_it_says_what_it_was_made_of(calibrated) -> None:
    assert calibrated.title == "abci, calibrated from 12 measured runs"
    assert calibrated.source == ("measured.csv, 12 of TR-fig2",)
    series = {(each.model, each.strategy): each.pe for each in calibrated.series}
    assert series["resnet50", "filter"] == (4, 16, 64)


def test_without_cross_validation_errors_are_assumed(calibrated) -> None:
    assert calibrated.error == model_error.DEFAULT


def test_a_calibration_is_closer_to_its_runs(measured, dozen, calibrated, tmp_path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text(calibrated))
    before, after = (
        sweep.compare(measured(dozen), calibration=name, settings=PAPER)["summary"]["overall"]
        for name in ("none", str(path))
    )
    assert after["total"]["mean"] > before["total"]["mean"] + 0.1
    assert after["total"]["mean"] == pytest.approx(calibrated.accuracy["fit"]["total"], abs=2e-3)
    assert after["coverage"]["total"] == calibrated.accuracy["fit"]["total_in_interval"]


def test_names_that_need_quotes_are_quoted(calibrated, tmp_path) -> None:
    changed = calibrated.model_copy(
        update={"title": "a: b # c", "serial": {"no": calibrated.serial["vgg16"]}}
    )
    path = tmp_path / "mine.yaml"
    path.write_text(text(changed))
    read = find("calibration", str(path), Path())
    assert read.title == "a: b # c"
    assert list(read.serial) == ["no"]


def test_command(measured, few, tmp_path, monkeypatch, capsys) -> None:
    output = tmp_path / "mine.yaml"
    arguments = ("calibrate", measured(few), "-o", output)
    assert main(monkeypatch, *arguments, "--format", "json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert {"fit", "configuration", "scale"} <= shown["accuracy"].keys()
    assert shown["parameters"].keys() == PRIORS.keys()
    assert find("calibration", str(output), Path()).name == "abci"
    assert main(monkeypatch, *arguments, "--no-cross-validation") == 0
    shown = capsys.readouterr().out
    assert "nothing (fit)" in shown
    assert "mostly the prior" in shown


@pytest.mark.parametrize(
    ("output", "message"),
    [
        ("nowhere/mine.yaml", "no folder"),
        (".", "expected a file, got a folder"),
    ],
)
def test_no_place_for_the_file(
    measured, few, tmp_path, monkeypatch, capsys, output, message
) -> None:
    assert main(monkeypatch, "calibrate", measured(few), "-o", tmp_path / output) == 2
    assert message in capsys.readouterr().err


def test_measured_runs_are_not_overwritten(measured, few, tmp_path, monkeypatch, capsys) -> None:
    path = measured(few)
    before = path.read_bytes()
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    for output in (path, link):
        assert main(monkeypatch, "calibrate", path, "-o", output) == 2
        assert "it holds the measured runs; name another file" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_bad_input_is_one_message(measured, few, tmp_path, monkeypatch, capsys) -> None:
    rows = [few[0] | {"total_s": "fast"}]
    output = tmp_path / "mine.yaml"
    assert main(monkeypatch, "calibrate", measured(rows), "-o", output) == 2
    told = capsys.readouterr().err
    assert "measured.csv:2: total_s" in told
    assert len(told.splitlines()) == 1
    assert not output.exists()


@pytest.mark.parametrize("system", ["dgx-h100", "dgx1-v100"])
def test_a_machine_without_a_path_through_host_memory(measured, system) -> None:
    """Runs as the paper's formulas predict them, 5 % up and down: its PEs see each other."""
    path = measured(runs_near_predictions(system))
    found = sweep.calibrate(path, system=system, cross_validation=False)
    spreads = [each.spread for each in found.parameters.values()]
    assert all(0 < each < 2 for each in spreads)
    assert found.accuracy["fit"]["total"] > 0.9
    assert not found.parameters["packing"].determined  # nothing passes there


def runs_near_predictions(system: str) -> list[dict[str, str]]:
    rows = []
    for strategy, p, off in [
        *(("data", p, off) for p, off in ((1, 0.95), (8, 1.05), (16, 0.95), (64, 1.05))),
        *(("filter", p, off) for p, off in ((4, 0.95), (16, 1.05))),
        *(("spatial", p, off) for p, off in ((2, 1.05), (8, 0.95))),
        *(("data+filter:group=4", p, off) for p, off in ((16, 1.05), (64, 0.95))),
        *(("channel", p, off) for p, off in ((4, 1.05), (16, 0.95))),
    ]:
        told = sweep.predict(
            "resnet50",
            strategy,
            p,
            32,
            dataset="imagenet-226",
            system=system,
            settings={"oracle": "paper"},
        )
        seconds = {part: str(off * told[f"iteration_{name}time"]) for part, name in TIMES.items()}
        run = {"model": "resnet50", "dataset": "imagenet-226", "strategy": strategy}
        rows.append(run | {"p": str(p), "samples_per_replica": "32"} | seconds)
    return rows


TIMES = {"total_s": "", "comp_s": "comp_", "comm_s": "comm_"}


def test_what_is_shipped_was_made_by_the_command(measured, shipped) -> None:
    """Of the runs that are shipped; its accuracies take longer than a test may."""
    found = find("calibration", "abci", Path())
    again = sweep.calibrate(measured(shipped), cross_validation=False)
    for name, each in found.parameters.items():
        assert each.value == pytest.approx(again.parameters[name].value, rel=0.01), name
        assert each.spread == pytest.approx(again.parameters[name].spread, rel=0.05), name
    for model, serial in found.serial.items():
        assert serial.factor == pytest.approx(again.serial[model].factor, rel=0.01), model
    assert found.series == again.series
    for part in ("total", "comp", "comm"):
        fitted = again.accuracy["fit"][part]
        assert found.accuracy["fit"][part] == pytest.approx(fitted, abs=2e-3)
