"""Calibrations: their form, and how far they hold."""

import re
from pathlib import Path

import numpy as np
import pytest

from grids.entries.calibration import PRIORS, CalibrationFile
from grids.entries.strategies import parse_strategy
from grids.inputs.calibrated import Calibrated
from grids.library import find, list_names
from grids.reading.errors import InputError
from kernels.calibration import Calibration

ERROR = {"serial": 0.1, "group": 0.1, "reduce": 0.1, "exchange": 0.1, "unseen": 0.5, "distance": 1}
SERIES = {"model": "resnet50", "dataset": "imagenet", "strategy": "data", "pe": [4, 64]}


def definition(**changes) -> dict:
    parameters = {name: {"value": prior.median, "spread": 0.1} for name, prior in PRIORS.items()}
    usual = {"name": "mine", "system": "abci", "parameters": parameters, "error": ERROR}
    return usual | {"series": [SERIES | {"batch": [32]}]} | changes


def calibrated(model="resnet50", **changes) -> Calibrated:
    return Calibrated(
        CalibrationFile.from_definition(definition(**changes)), model, "imagenet", True
    )


def test_priors_are_in_the_order_of_the_kernels() -> None:
    assert tuple(PRIORS) == tuple(Calibration.__dataclass_fields__)


def test_priors_lie_within_their_bounds() -> None:
    assert all(each.low < each.median < each.high for each in PRIORS.values())


@pytest.mark.parametrize("name", list_names("calibration"))
def test_what_is_shipped_can_be_read(name) -> None:
    entry = find("calibration", name, Path())
    assert entry.name == name
    assert find("calibration", entry.definition(), Path()) == entry
    assert entry.source
    assert (np.linalg.eigvalsh(entry.covariance) > -1e-6).all()


def test_covariance_has_the_spreads_on_its_diagonal() -> None:
    rows = [[0.0] * n + [1.0] for n in range(len(PRIORS))]
    rows[1][0] = 0.5
    covariance = CalibrationFile.from_definition(definition(correlation=rows)).covariance
    assert np.sqrt(np.diag(covariance)).tolist() == pytest.approx([0.1] * len(PRIORS))
    assert covariance[0, 1] == covariance[1, 0] == pytest.approx(0.5 * 0.1 * 0.1)


def test_directions_make_the_covariance() -> None:
    own = calibrated()
    directions = own.uncertainty(parse_strategy("data"), np.array([[4.0]])).directions.reshape(
        len(PRIORS), -1
    )
    np.testing.assert_allclose(directions.T @ directions, own.file.covariance, atol=1e-12)


@pytest.mark.parametrize(
    ("strategy", "p", "widening"),
    [
        ("data", 4, 1),
        ("data", 8, 1 + 1),  # a factor of two from 4
        ("data", 256, 1 + 2),  # two of them from 64
        ("filter", 64, 1 + 0.5),  # a series that was not fitted
        ("serial", 1, 1 + 2),
    ],
)
def test_doubt_widens_away_from_the_runs(strategy, p, widening) -> None:
    doubt = calibrated().uncertainty(parse_strategy(strategy), np.array([[float(p)]]))
    assert np.asarray(doubt.widening).tolist() == [[widening]]


def test_a_model_without_runs_of_its_own_has_its_profile_or_roofline() -> None:
    own = calibrated(serial={"vgg16": {"factor": 0.9, "spread": 0.02}})
    assert (own.serial.factor, own.serial.spread) == (1, 0.15)
    assert (
        calibrated("vgg16", serial={"vgg16": {"factor": 0.9, "spread": 0.02}}).serial.factor == 0.9
    )
    assert Calibrated(own.file, "mine", "imagenet", measured=False).serial.spread == 0.5


@pytest.mark.parametrize(
    ("model", "strategy", "p", "b", "said"),
    [
        ("resnet50", "data", 16, 32, []),
        ("resnet50", "serial", 4, 32, []),
        ("resnet50", "data:", 128, 32, ["p = 128 is outside the calibrated 4 to 64"]),
        ("resnet50", "data", 16, 8, ["b = 8 is outside the calibrated 32 to 32"]),
        ("vgg16", "data", 16, 32, ["no run of vgg16 was calibrated"]),
        ("resnet50", "pipeline", 16, 32, ["no run of pipeline was calibrated"]),
    ],
)
def test_extrapolation_is_told(model, strategy, p, b, said) -> None:
    assert calibrated(model).extrapolation(parse_strategy(strategy), p, b) == said


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"reduse": {"value": 1, "spread": 0}}}, "did you mean 'reduce'"),
        ({"parameters": {"reduce": {"value": 1, "spread": 0}}}, "'elementwise_passes'"),
        ({"correlation": [[1.0]]}, "lower triangle of 14 rows"),
        ({"correlation": [[float("nan")]]}, "less than or equal to 1.001, got nan"),
        (
            {"parameters": {"reduce": {"value": 1e308, "spread": 0}}},
            "less than or equal to 1000000000000000, got 1e+308",
        ),
        ({"error": ERROR | {"serial": -1}}, "greater than or equal to 0"),
    ],
)
def test_what_is_wrong_is_told(changes, message) -> None:
    with pytest.raises(InputError, match=re.escape(message)):
        find("calibration", definition(**changes), Path())
