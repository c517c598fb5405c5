"""Draws of uncertain parameters: which, how wide, and the same everywhere."""

from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import jax
import numpy as np
import pytest
from calibrations import ERROR, define_calibration

from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.grid import Grid
from paradl.grids.inputs.uncertainty import (
    GROUPED_SPREAD,
    NAMES,
    PRIOR_ERROR,
    PROFILE_SPREAD,
    ROOFLINE_SPREAD,
    VOLUME_SPREAD,
)
from paradl.grids.spec import validate_spec
from paradl.kernels.arrays import use_numpy
from paradl.kernels.configuration.answers import Spread
from paradl.kernels.configuration.case import Case, Uncertainty
from paradl.kernels.oracle.formulas import time_iteration
from paradl.kernels.oracle.uncertainty import spread

KEYS = ("compute", "communication", "total")


def make_case(
    system="dgx-h100",
    strategy="data",
    pe=16,
    calibration="auto",
    parameters=None,
    model="resnet50",
    times="measured",
    **axes,
) -> Case:
    named = {"model": model, "dataset": "imagenet", "system": system, "strategy": strategy}
    spec = {
        "axes": {**named, "pe": pe, "batch": 32, **axes},
        "calibration": calibration,
        "parameters": parameters or {},
        "times": times,
        "outputs": ["epoch_time_p10"],
    }
    case = Grid.from_spec(validate_spec(spec, "spec")).case((0, 0, 0, 0))
    assert isinstance(case, Case)
    return case


def test_of_products_of_sequences_images_per_second_tell_nothing() -> None:
    prior = PARAMETERS["efficiency_matmul"].prior
    assert prior is not None
    expected = prior.spread["amp"]
    spreads = {
        "vit_b_16": expected,
        "vgg16": ROOFLINE_SPREAD,  # which has matrix products, too, behind convolutions
        "efficientnet_b0": GROUPED_SPREAD,
        "unet3d": VOLUME_SPREAD,
    }
    for model, wanted in spreads.items():
        data = {"dataset": "kits19"} if model == "unet3d" else {}
        spread = np.log(np.asarray(ask(model=model, strategy="filter", **data).serial)).std()
        assert spread == pytest.approx(wanted, rel=1e-6)


def ask(**query) -> Uncertainty:
    uncertainty = make_case(**query).uncertainty
    assert uncertainty is not None
    return uncertainty


def take_logs(uncertainty: Uncertainty) -> dict[str, np.ndarray]:
    """Return ln of the factors on each parameter [draw]."""
    factors = asdict(uncertainty.factors)
    return {name: np.log(np.reshape(factors[name], -1)) for name in NAMES}


def test_before_any_run_parameters_are_as_far_off_as_their_priors_say() -> None:
    for name, logs in take_logs(ask()).items():
        prior = PARAMETERS[name].prior
        assert prior is not None
        # A DGX's software, ddp, opens no log files, and does not pause.
        expected = 0 if name in ("log_open", "host_pause") else prior.spread["amp"]
        assert logs.std() == pytest.approx(expected), name
        assert logs.mean() == pytest.approx(0, abs=1e-12), name


def test_what_software_settles_is_not_drawn() -> None:
    """Plain software sends one message, and hides nothing."""
    logs = take_logs(ask(system="dgx-h100:software=plain"))
    assert not logs["bucket"].any()
    assert not logs["overlap"].any()
    assert logs["rail"].any()


@pytest.mark.parametrize("how", ["fixed", "axis"])
@pytest.mark.parametrize("calibration", ["auto", "none"])
def test_what_a_user_states_is_not_drawn(how, calibration) -> None:
    stated = {"rail": 0.9, "jitter": 0.01}
    options = {"parameters": stated} if how == "fixed" else stated
    logs = take_logs(ask(system="abci", calibration=calibration, **options))
    assert not logs["rail"].any()
    assert not logs["jitter"].any()
    assert logs["flow"].any()


def test_runs_take_the_place_of_priors() -> None:
    calibration = define_calibration(spread=0.04)
    logs = take_logs(ask(system="abci", calibration=[calibration]))
    for name, log in logs.items():
        if name in calibration["parameters"]:
            assert log.std() == pytest.approx(0.04), name
    prior = PARAMETERS["startup"].prior
    assert prior is not None
    assert logs["startup"].std() == pytest.approx(prior.spread["fp32"])


def test_calibrated_parameters_vary_together_as_runs_left_them() -> None:
    names = list(define_calibration()["parameters"])
    rows = [[0.0] * n + [1.0] for n in range(len(names))]
    rows[names.index("assembly")][names.index("flow")] = 0.9
    rows[names.index("packing")][names.index("rail")] = -0.7
    calibration = define_calibration(spread=0.2, correlation=rows)
    logs = take_logs(ask(system="abci", calibration=[calibration]))
    for one, other, expected in (("flow", "assembly", 0.9), ("packing", "rail", -0.7)):
        # Within the chance correlations of 32 draws.
        assert np.corrcoef(logs[one], logs[other])[0, 1] == pytest.approx(expected, abs=0.15)
    assert np.corrcoef(logs["flow"], logs["rail"])[0, 1] == pytest.approx(0, abs=0.4)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ({}, ROOFLINE_SPREAD),  # profiles are of V100s in fp32
        ({"system": "dgx1-v100"}, PROFILE_SPREAD),
        ({"system": "dgx1-v100", "times": "roofline"}, ROOFLINE_SPREAD),
        ({"system": "abci", "calibration": [define_calibration()]}, 0.15),
        (
            {
                "system": "abci",
                "calibration": [
                    define_calibration(serial={"resnet50": {"factor": 2, "spread": 0.03}})
                ],
            },
            0.03,
        ),
    ],
)
def test_the_time_on_one_pe(query, expected) -> None:
    assert np.log(ask(**query).serial).std() == pytest.approx(expected)


def test_errors_are_assumed_before_any_run() -> None:
    assumed, known = ask(), ask(system="abci", calibration=[define_calibration()])
    names = {"whole": "serial", "group": "group", "reduce": "reduce", "exchange": "exchange"}
    for name, error in names.items():
        assert np.unique(getattr(assumed, name)) == [getattr(PRIOR_ERROR, error)]
        assert np.unique(getattr(known, name)) == [ERROR[error]]
    assert np.unique(assumed.widening) == [1]
    assert np.unique(known.widening) == [1 + 2 * ERROR["distance"]]  # 16 PEs, of 4 and 64


def test_errors_of_left_out_networks_widen_the_computing_of_others_alone() -> None:
    """Whether devices or hosts set its time: one factor on both."""
    calibration = define_calibration(unseen_spread=0.5)

    def find_spreads(model: str, calibration: dict[str, Any]) -> list[float]:
        uncertainty = ask(system="abci", model=model, calibration=[calibration])
        host, device = uncertainty.factors.layer_overhead, uncertainty.serial
        return [float(np.log(np.ravel(drawn)).std()) for drawn in (host, device)]

    for wide, usual in zip(
        find_spreads("vgg16", calibration), find_spreads("vgg16", define_calibration()), strict=True
    ):
        # Within the chance correlations of 32 draws.
        assert wide == pytest.approx(np.hypot(usual, 0.5), rel=0.1)
    assert find_spreads("resnet50", calibration) == find_spreads("resnet50", define_calibration())


def test_only_errors_of_left_out_networks_may_exceed_those_before_any_run() -> None:
    large = {"serial": 0.5, "group": 0.5, "reduce": 0.5, "exchange": 0.5}
    assumed = define_calibration(error=ERROR | large)
    measured = assumed | {"accuracy": {"model": {"rows": 2.0}}}
    for name in ("whole", "group", "reduce", "exchange"):
        bounded, free = (
            np.max(getattr(ask(system="abci", model="vgg16", calibration=[file]), name))
            for file in (assumed, measured)
        )
        assert bounded < 0.3
        assert free == 0.5


def test_a_cube_without_percentiles_draws_nothing() -> None:
    axes = {"model": "resnet50", "dataset": "imagenet", "system": "abci", "strategy": "data"}
    grid = Grid.from_spec(validate_spec({"axes": {**axes, "pe": 4, "batch": 32}}, "spec"))
    case = grid.case((0, 0, 0, 0))
    assert case is not None
    assert case.uncertainty is None


CELLS = [
    ("dgx-h100", "data", 64),
    ("dgx-h100", "data+pipeline:group=4", 64),
    ("dgx1-v100", "filter", 4),
    ("dgx1-v100", "data", 32),
    ("abci", "data+spatial:group=4", 64),
    ("abci", "data+filter:group=4", 64),
]


@pytest.mark.parametrize(("system", "strategy", "pe"), CELLS)
def test_as_many_draws_as_are_needed(system, strategy, pe) -> None:
    """4,096 ordinary random draws give the same within 16 % of a spread."""
    case = make_case(system=system, strategy=strategy, pe=pe, calibration="none")
    few = case.uncertainty
    assert few is not None
    random = np.random.default_rng(1)

    def draw(leaf: Any) -> np.ndarray:
        shape = (4096, *np.shape(leaf)[1:])
        return np.asarray(np.exp(np.log(leaf).std() * random.standard_normal(shape)))

    def find_spread(how: Callable[[Any], np.ndarray]) -> Spread:
        drawn = replace(few, factors=jax.tree.map(how, few.factors), serial=how(few.serial))
        with use_numpy():
            return spread(replace(case, uncertainty=drawn), time_iteration(case))

    ours, theirs = find_spread(np.asarray), find_spread(draw)
    for key in KEYS:
        expected = float(np.squeeze(getattr(theirs, key)))
        assert float(np.squeeze(getattr(ours, key))) == pytest.approx(expected, rel=0.16), key
