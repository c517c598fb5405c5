"""Look-up of calibrations: every system gets the one measured on it."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from calibrations import define_calibration

from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.grid import Grid
from paradl.grids.library import look_up_calibrations
from paradl.grids.reading.errors import InputError
from paradl.grids.spec import validate_spec

AXES = {"model": "resnet50", "dataset": "imagenet", "strategy": "data", "pe": [4], "batch": [32]}
KEY = "calibration"
AMP: dict[str, Any] = {"precision": "amp", "name": "mixed"}


def read(system: object, calibration: object = "auto", **more: Any) -> Grid:
    axes: dict[str, object] = {**AXES, "system": system}
    return Grid.from_spec(validate_spec({"axes": axes, "calibration": calibration, **more}, "spec"))


def name_calibrations(grid: Grid) -> dict[str, str]:
    return {label: calibration.name for label, calibration in grid.calibrations.items()}


def test_auto_takes_what_is_shipped_for_each_system() -> None:
    systems = ["dgx-h100", "abci", "abci:precision=amp", "abci:software=ddp"]
    assert name_calibrations(read(systems)) == {"abci": "abci"}


def test_a_system_of_ones_own_is_another_machine() -> None:
    """Even with the PEs and network of ABCI it was not measured."""
    definition = read("abci").systems[0].definition() | {"name": "ours"}
    assert read([definition]).calibrations == {}


@pytest.mark.parametrize(("calibration", "oracle"), [("none", "machine"), ("auto", "paper")])
def test_none(calibration, oracle) -> None:
    assert read("abci", calibration, oracle=oracle).calibrations == {}


def test_two_calibrations_for_two_systems() -> None:
    both = [define_calibration(), define_calibration(**AMP)]
    grid = read(["abci:precision=amp", "dgx-h100", "abci"], both)
    assert name_calibrations(grid) == {"abci:precision=amp": "mixed", "abci": "mine"}
    seen = [grid.workload(0, 0, position) for position in range(3)]
    names = [value.calibrated.file.name if value and value.calibrated else None for value in seen]
    assert names == ["mixed", None, "mine"]


def test_a_definition_keeps_calibrations_of_one_name_apart() -> None:
    both = [define_calibration(), define_calibration(precision="amp", times=1.2)]
    grid = read(["abci", "abci:precision=amp"], both)
    again = Grid.from_definition(grid.definition())
    assert again.calibrations == grid.calibrations
    values = [calibration.parameters["rail"].value for calibration in again.calibrations.values()]
    assert all(one != other for one, other in pairwise(values))


def test_a_definition_names_no_file_and_no_catalogue() -> None:
    (shipped,) = cast("list[dict[str, object]]", read(["abci", "dgx-h100"]).definition()[KEY])
    assert shipped == read("abci").calibrations["abci"].definition()
    assert read("dgx-h100").definition()[KEY] == "none"


@pytest.mark.parametrize(
    ("system", "calibration", "message"),
    [
        (
            "abci:precision=amp",
            define_calibration(),
            "'mine' calibrates abci:precision=fp32,software=plain, "
            "got 'abci:precision=amp,software=plain'",
        ),
        ("abci:software=ddp", define_calibration(), "got 'abci:precision=fp32,software=ddp'"),
        ("dgx-h100", "abci", "'abci' calibrates abci:precision=fp32,software=plain, got 'dgx-h100"),
        (["abci", "dgx-h100"], [define_calibration(), define_calibration(**AMP)], "'mixed' calibr"),
        ("abci", [define_calibration(), "abci"], "'mine' and 'abci' calibrate the same machine"),
        ("abci", "abcj", "unknown calibration 'abcj'; did you mean 'abci'?"),
        ("abci", ["auto", "abci"], "expected auto, none, or files, got several"),
        ("abci", ["none", define_calibration()], "expected auto, none, or files"),
        ("abci", [], "expected at least one entry"),
    ],
)
def test_what_does_not_belong_is_refused(system, calibration, message) -> None:
    with pytest.raises(InputError) as error:
        read(system, calibration)
    assert message in str(error.value)
    assert "calibration" in str(error.value)
    assert len(str(error.value)) < 1000


def test_many_systems_make_no_long_message() -> None:
    systems = read([f"abci:precision={value}" for value in ("amp",)]).systems * 1000
    with pytest.raises(InputError) as error:
        look_up_calibrations((define_calibration(),), "machine", systems, Path())
    assert len(str(error.value)) < 1000


def test_no_run_corrects_table_iii() -> None:
    with pytest.raises(InputError, match=r"calibration: .*Table III"):
        read("abci", "abci", oracle="paper")


def test_a_file_is_relative_to_the_spec(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(json.dumps(define_calibration()))
    systems = read("abci").systems
    calibrations = look_up_calibrations(("mine.yaml",), "machine", systems, tmp_path)
    assert calibrations == {"abci": CalibrationFile.from_definition(define_calibration())}
