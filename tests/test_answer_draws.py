"""Drawn answers equal the times of each draw by itself."""

from dataclasses import replace

import numpy as np
import pytest
from machine_answers import STRATEGIES

from paradl.grids.grid import Grid
from paradl.grids.spec import Spec
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.configuration.case import Case
from paradl.kernels.oracle.uncertainty import draw_times
from paradl.sweep.uncertainty.draws import answer_draws

DRAW_TIMES = compiled(numpy=True)(draw_times)


def make_case(strategy: str) -> Case:
    named = {"model": "alexnet", "dataset": "imagenet", "system": "abci", "strategy": strategy}
    axes = {**named, "pe": [8, 64], "batch": 32, "inter_bandwidth": ["1 GB/s", "9 GB/s", "20 GB/s"]}
    spec = {"axes": axes, "outputs": ["epoch_time_p10"]}
    case = Grid.from_spec(Spec.model_validate(spec)).case((0, 0, 0, 0))
    assert isinstance(case, Case)
    return case


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_draws_stand_along_the_last_dimension(strategy: str) -> None:
    case = make_case(strategy)
    times, error = fetch(DRAW_TIMES(case))
    answer, errors = answer_draws(case)
    drawn = np.asarray(answer.epoch_time / answer.iterations)
    np.testing.assert_allclose(np.moveaxis(drawn, -1, 0), times, rtol=1e-12)
    assert answer.spread is None
    # Errors of the middle, put together by hand, are those of its time.
    middle, _ = answer_draws(_forget_draws(case))
    terms, iterations = middle.terms, middle.iterations
    rings = np.where(errors.rings, terms.gradient_exchange, 0)
    rest = middle.communication - rings
    parts = (errors.computing * middle.compute, errors.reducing * rings, errors.exchanging * rest)
    spread = errors.widening * np.sqrt(sum(np.square(part / iterations) for part in parts))
    expected = error * np.asarray(middle.epoch_time / iterations)[..., 0]
    np.testing.assert_allclose(spread[..., 0], expected, rtol=1e-9)


def _forget_draws(case: Case) -> Case:
    """The case of one draw, in which nothing is moved."""
    uncertainty = case.uncertainty
    assert uncertainty is not None
    software = uncertainty.factors
    ones = {name: np.ones_like(np.asarray(var)[:1]) for name, var in vars(software).items()}
    still = replace(
        uncertainty,
        factors=replace(software, **ones),
        serial=np.ones_like(np.asarray(uncertainty.serial)[:1]),
    )
    return replace(case, uncertainty=still)
