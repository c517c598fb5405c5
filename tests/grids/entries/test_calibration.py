"""Calibrations: their form, their machine, and what is refused."""

import re
from itertools import product
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from calibrations import ERROR, define_calibration

from paradl.grids.entries.calibration import CALIBRATED, LEAST, STAGED, CalibrationFile, list_priors
from paradl.grids.entries.names import list_names
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.software import SOFTWARE, SoftwareName
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError

SIZE = len(CALIBRATED)
INDEPENDENT = [[0.0] * row + [1.0] for row in range(SIZE)]


def read(**changes) -> CalibrationFile:
    return CalibrationFile.from_definition(define_calibration(**changes))


@pytest.mark.parametrize(
    ("precision", "software"), list(product(PRECISIONS, get_args(SoftwareName)))
)
def test_priors_lie_within_their_bounds(precision, software) -> None:
    priors = list_priors(precision, software)
    settled = SOFTWARE[software].settled
    assert tuple(priors) == tuple(name for name in CALIBRATED if name not in settled)
    for name, prior in priors.items():
        assert LEAST <= prior.low <= prior.median <= prior.high <= 1 / LEAST, name
        assert prior.spread > 0


def test_machines_have_the_parameters_of_their_software_and_their_host_path() -> None:
    """Only plain software opens log files; a path through host memory has its own parameters."""
    assert "log_open" in list_priors("fp32", "plain")
    assert "log_open" not in list_priors("fp32", "ddp")
    direct = list_priors("fp32", "plain", staged=False)
    assert tuple(direct) == tuple(name for name in CALIBRATED if name not in STAGED)
    assert set(STAGED) < set(CALIBRATED)


@pytest.mark.parametrize(("software", "count"), [("plain", SIZE - 5), ("ddp", SIZE - 6)])
def test_a_calibration_carries_what_its_machine_has(software, count) -> None:
    """No log files with ddp, and no host path; the correlations have as many rows."""
    usual = define_calibration(software=software)
    held = list_priors("fp32", software, staged=False)
    assert len(held) == count
    parameters = {name: usual["parameters"][name] for name in held}
    own = CalibrationFile.from_definition(usual | {"parameters": parameters})
    assert own.covariance == pytest.approx(np.diag([0.01] * count))
    rows = [[0.0] * n + [1.0] for n in range(SIZE)]
    with pytest.raises(InputError, match=f"lower triangle of {count} rows"):
        find("calibration", usual | {"parameters": parameters, "correlation": rows}, Path())


def test_software_goes_before_a_prior() -> None:
    row = PARAMETERS["flow"].prior
    assert row is not None
    assert list_priors("fp32", "plain")["flow"].median == SOFTWARE["plain"].parameters["flow"]
    assert list_priors("fp32", "ddp")["flow"].median == row.median["fp32"]


@pytest.mark.parametrize("name", list_names("calibration"))
def test_what_is_shipped_can_be_read(name) -> None:
    entry = find("calibration", name, Path())
    assert entry.name == name
    assert find("calibration", entry.definition(), Path()) == entry
    assert entry.source
    assert (np.linalg.eigvalsh(entry.covariance) > -1e-3).all()  # correlations have two digits
    assert entry.belongs_to(find("system", entry.system, Path()))
    assert entry.layers


def test_covariance_has_the_spreads_on_its_diagonal() -> None:
    rows = [[0.0] * n + [1.0] for n in range(SIZE)]
    rows[1][0] = 0.5
    covariance = read(correlation=rows).covariance
    assert np.sqrt(np.diag(covariance)).tolist() == pytest.approx([0.1] * SIZE)
    assert covariance[0, 1] == covariance[1, 0] == pytest.approx(0.5 * 0.1 * 0.1)


def test_without_correlations_parameters_are_independent() -> None:
    assert read().covariance == pytest.approx(np.diag([0.01] * SIZE))


@pytest.mark.parametrize(
    ("system", "belongs"),
    [
        ("abci", True),
        ("abci:precision=amp", False),
        ("abci:software=ddp", False),
        ("dgx1-v100", False),
    ],
)
def test_it_belongs_to_a_machine_in_a_precision_with_a_software(system, belongs) -> None:
    assert read().belongs_to(find("system", system, Path())) is belongs


def test_a_model_without_runs_of_its_own_has_its_profile_or_roofline() -> None:
    own = read(serial={"vgg16": {"factor": 0.9, "spread": 0.02}}, roofline_spread=0.4)
    assert own.serial_time("vgg16", measured=False).factor == 0.9
    assert (own.serial_time("mine", True).factor, own.serial_time("mine", True).spread) == (1, 0.15)
    assert own.serial_time("mine", measured=False).spread == 0.4


@pytest.mark.parametrize("oracle", ["paper", None])
def test_a_calibration_of_table_iii_is_refused(oracle) -> None:
    """Files without an oracle are from the time of Table III alone."""
    definition = define_calibration()
    if oracle is None:
        del definition["oracle"]
    else:
        definition["oracle"] = oracle
    with pytest.raises(
        InputError, match=r"expected 'oracle: machine'.*'paradl calibrate'"
    ) as error:
        find("calibration", definition, Path())
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize("former", ["layer_wait", "jitter", "node_reduce"])
def test_a_calibration_of_an_earlier_version_is_refused_as_such(former) -> None:
    definition = define_calibration()
    parameters = {**definition["parameters"], former: {"value": 1, "spread": 0.1}}
    with pytest.raises(InputError, match=rf"earlier paradl .*{former}.* 'paradl calibrate'"):
        find("calibration", definition | {"parameters": parameters}, Path())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"rial": {"value": 1, "spread": 0}}}, "did you mean 'rail'"),
        ({"parameters": {"rail": {"value": 1, "spread": 0}}}, "'layer_overhead'"),
        ({"parameters": {"startup": {"value": 1, "spread": 0}}}, "unknown parameter 'startup'"),
        ({"correlation": [*INDEPENDENT[:-1], [0.0] * SIZE]}, "1 at the end of each row"),
        ({"correlation": [[1.0]]}, f"lower triangle of {SIZE} rows"),
        ({"correlation": [[float("nan")]]}, "less than or equal to 1.001, got nan"),
        (
            {"parameters": {"rail": {"value": 1e308, "spread": 0}}},
            "less than or equal to 1000000000000000, got 1e+308",
        ),
        (
            {"layouts": {"factor": 1, "parameters": {"node_collectiv": 1}, "runs": 1}},
            "unknown parameter of layouts 'node_collectiv'; did you mean 'node_collective'",
        ),
        ({"error": ERROR | {"serial": -1}}, "greater than or equal to 0"),
        ({"precision": "fp23"}, "fp23"),
        ({"software": "ddq"}, "did you mean 'ddp'"),
    ],
)
def test_what_is_wrong_is_told(changes, message) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        find("calibration", define_calibration() | changes, Path())
