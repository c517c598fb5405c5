"""A calibration for one model: how far it reaches, and what it extrapolates."""

import numpy as np
import pytest
from calibrations import define_calibration

from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.inputs.calibrated import Calibrated

ERROR = {"serial": 0.1, "group": 0.1, "reduce": 0.1, "exchange": 0.1, "unseen": 0.5, "distance": 1}


def calibrated(model="resnet50", layers=(), **changes) -> Calibrated:
    file = CalibrationFile.from_definition(define_calibration(error=ERROR, **changes))
    return Calibrated(file, model, "imagenet", True, layers)


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
def test_errors_widen_away_from_the_runs(strategy, p, widening) -> None:
    errors = calibrated().find_widening(parse_strategy(strategy), np.array([[float(p)]]))
    assert errors.tolist() == [[widening]]


def test_scales_are_those_of_the_own_series() -> None:
    """For a series that was not fitted, all others say at which scales the machine is known."""
    filters = {"model": "resnet50", "dataset": "imagenet", "strategy": "filter", "pe": [16]}
    series = [filters | {"batch": [32]}, filters | {"strategy": "data", "pe": [4], "batch": [32]}]
    own = calibrated(series=series)
    for strategy, expected in (("filter", 1 + 2), ("data", 1), ("channel", 1 + 0.5)):
        widening = own.find_widening(parse_strategy(strategy), np.array([4.0]))
        assert widening.tolist() == [expected], strategy


@pytest.mark.parametrize(
    ("model", "strategy", "p", "b", "message"),
    [
        ("resnet50", "data", 16, 32, []),
        ("resnet50", "serial", 4, 32, []),
        ("resnet50", "data:", 128, 32, ["p = 128 is outside the calibrated 4 to 64"]),
        ("resnet50", "data", 16, 8, ["b = 8 is outside the calibrated 32 to 32"]),
        ("vgg16", "data", 16, 32, ["no run of vgg16 was calibrated"]),
        ("resnet50", "pipeline", 16, 32, ["no run of pipeline was calibrated"]),
    ],
)
def test_extrapolation_is_stated(model, strategy, p, b, message) -> None:
    assert calibrated(model).extrapolation(parse_strategy(strategy), p, b) == message


@pytest.mark.parametrize(
    ("ran", "message"),
    [
        ([], []),  # the file does not say
        (["conv2d", "conv3d", "matmul"], []),
        (["conv2d", "matmul"], ["no run with layers of conv3d was calibrated"]),
        (["conv2d"], ["no run with layers of conv3d and matmul was calibrated"]),
    ],
)
def test_kinds_of_layers_that_no_network_has_are_stated(ran, message) -> None:
    own = calibrated(layers=("conv3d", "matmul"))
    file = own.file.model_copy(update={"layers": tuple(ran)})
    known = Calibrated(file, own.model, own.dataset, own.measured, own.layers)
    assert known.extrapolation(parse_strategy("data"), 16, 32) == message


def test_another_network_of_the_same_name_did_not_run() -> None:
    """Calibrations without fingerprints hold for any network of the name."""
    serial = {"resnet50": {"factor": 1.5, "spread": 0.02}}
    file = CalibrationFile.from_definition(
        define_calibration(serial=serial, architectures={"resnet50": "abc"}, profile_factor=1.2)
    )
    for architecture, factor in (("abc", 1.5), ("def", 1.2)):
        known = Calibrated(file, "resnet50", "imagenet", True, architecture=architecture)
        assert known.serial.factor == factor
        assert known.has_run == (factor == 1.5)
        said = known.extrapolation(parse_strategy("data"), 16, 32)
        assert said == ([] if known.has_run else ["no run of resnet50 was calibrated"])
    old = CalibrationFile.from_definition(define_calibration(serial=serial))
    assert Calibrated(old, "resnet50", "imagenet", True, architecture="def").serial.factor == 1.5
