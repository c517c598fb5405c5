"""Fetching by grouped convolutions: shipped rows, the scalar form, the shipped value."""

import numpy as np
import pytest
from one_pe import time_run

from benchmarks import priors
from paradl.grids.entries.parameters import PARAMETERS


@pytest.fixture(scope="module")
def made() -> priors.Study:
    return priors.study(priors.read_runs(priors.GROUPED_RUNS), priors.FETCHING)


@pytest.mark.parametrize(
    "run", priors.read_runs(priors.GROUPED_RUNS)[::5], ids=lambda run: run.model
)
def test_the_form_agrees_with_the_scalar_reference(run: priors.Run) -> None:
    values = priors.list_shipped() | {"window_fetch": 0.3}
    assert priors.seconds([run], values) == pytest.approx(time_run(run, values), rel=1e-12)


def test_the_shipped_value_is_that_of_the_fit(made: priors.Study) -> None:
    prior = PARAMETERS["window_fetch"].prior
    assert prior is not None
    assert prior.median["fp32"] == pytest.approx(made.values["window_fetch"], rel=0.01)
    assert prior.spread["fp32"] == pytest.approx(priors.spread_fetching(made), abs=0.02)


def test_fetching_earns_its_parameter(made: priors.Study) -> None:
    """Also on a network and a device that the fit has not seen."""
    values = {**made.values, "window_fetch": priors.AT_ONCE}
    at_once = priors.errors(made.runs, values)
    assert priors.mean_error(made.without_network) < 0.4 * priors.mean_error(at_once)
    checks = priors.errors(made.checks, values)
    assert priors.mean_error(made.checked) < 0.4 * priors.mean_error(checks)
    assert np.exp(np.abs(made.fitted)).max() < 1.6


def test_dense_networks_do_not_fetch() -> None:
    runs, values = priors.read_runs(), priors.list_shipped()
    assert (
        priors.seconds(runs, {**values, "window_fetch": 0.01}) == priors.seconds(runs, values)
    ).all()
