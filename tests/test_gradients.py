"""The epoch's time is differentiable, through both stages, in every continuous parameter.

ResNet-50 on ABCI under several strategies: reverse-mode derivatives against central differences.
Each parameter is multiplied by a factor theta, and the derivatives are taken at theta = 1, where
latencies of microseconds and bandwidths of gigabytes a second weigh alike.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import jax
import numpy as np
import pytest
from jax import Array
from jax.typing import ArrayLike

from grids.grid import Grid
from grids.spec import Spec
from kernels.compiled import compiled
from kernels.configuration.case import Case
from kernels.names.arrays import Floats
from kernels.namespace import xp
from kernels.oracle.answer import evaluate
from kernels.oracle.formulas import reduce_layers

pytestmark = pytest.mark.usefixtures("float64")

Function = Callable[[ArrayLike], tuple[Array, Array]]
PARAMETERS = ("alpha", "beta", "peak_flops", "memory_bandwidth", "b", "p", "gamma", "delta", "phi")
TIME = tuple(name for name in PARAMETERS if name != "gamma")
MEMORY = ("b", "gamma", "delta")
STRATEGIES = ("data+spatial:group=4", "data+pipeline:group=4")

# Times are piecewise smooth; a step of 1e-5 stays on a piece and well above rounding.
STEP = 1e-5
TOLERANCE = 1e-5
ONES = np.ones(len(PARAMETERS))


def read_grid(strategy: str) -> Grid:
    """ResNet-50 on 64 PEs under one strategy."""
    spec = {
        "oracle": "paper",
        "axes": {
            "model": "resnet50",
            "dataset": "imagenet-226",
            "system": "abci",
            "strategy": strategy,
            "pe": 64,
            "batch": 32,
        },
        "parameters": {"gamma": 0.7, "phi": 1.5},
    }
    return Grid.from_spec(Spec.model_validate(spec))


def scale(case: Case, theta: Any) -> Case:
    """The case with each parameter times its theta; p changes the number of replicas alone."""
    factor = dict(zip(PARAMETERS, theta, strict=True))
    run, network, pe = case.run, case.network, case.pe
    p, b = run.p * factor["p"], run.spec_batch * factor["b"]
    return replace(
        case,
        pe=replace(
            pe,
            peak_flops=pe.peak_flops * factor["peak_flops"],
            memory_bandwidth=pe.memory_bandwidth * factor["memory_bandwidth"],
        ),
        network=replace(
            network,
            latency=network.latency * factor["alpha"],
            staging_latency=network.staging_latency * factor["alpha"],
            bandwidth=network.bandwidth / factor["beta"],
            staging_bandwidth=network.staging_bandwidth / factor["beta"],
        ),
        run=replace(
            run,
            p=p,
            replicas=p / run.group,
            spec_batch=b,
            gamma=run.gamma * factor["gamma"],
            delta=run.delta * factor["delta"],
            phi=run.phi * factor["phi"],
        ),
    )


def make_function(strategy: str) -> Function:
    """Epoch time and memory of theta."""
    grid = read_grid(strategy)
    case, groups = grid.case((0, 0, 0, 0)), grid.groups((0, 0, 0, 0))
    assert isinstance(case, Case)
    assert groups is not None
    division = groups.divide(groups.place()[0])

    def answer(theta: ArrayLike) -> tuple[Array, Array]:
        query = scale(case, theta)
        divided = replace(division, pe=query.pe, degrees=query.run.degrees, delta=query.run.delta)
        said = evaluate(replace(query, work=reduce_layers(divided)))
        return xp.sum(said.compute + said.communication), xp.sum(said.memory)

    return answer


@cache
def differentiate(strategy: str) -> Floats:
    """Gradients of the epoch's time and of memory at theta = 1 [2, parameter], by a program."""
    return np.asarray(compiled()(jax.jacrev(make_function(strategy)))(ONES))


def take_differences(function: Function) -> Floats:
    """Central differences at theta = 1 [parameter, 2], by numpy."""
    steps = STEP * np.eye(len(PARAMETERS))
    after, before = (np.array([function(ONES + sign * step) for step in steps]) for sign in (1, -1))
    return np.asarray((after - before) / (2 * STEP))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_gradients_are_central_differences(strategy) -> None:
    function = compiled(numpy=True)(make_function(strategy))
    differences, whole = take_differences(function), np.asarray(function(ONES))
    for n, names in enumerate((TIME, MEMORY)):
        gradient, expected = differentiate(strategy)[n], differences[:, n]
        np.testing.assert_allclose(gradient, expected, rtol=TOLERANCE, atol=1e-10 * whole[n])
        depends = {
            name for name, parameter in zip(PARAMETERS, gradient, strict=True) if parameter != 0
        }
        assert depends == set(names)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_time_falls_with_a_faster_machine_and_grows_with_a_slower_network(strategy) -> None:
    gradient = differentiate(strategy)[0]
    sign = dict(zip(PARAMETERS, np.sign(gradient), strict=True))
    assert (sign["alpha"], sign["beta"], sign["phi"]) == (1, 1, 1)
    assert (sign["peak_flops"], sign["memory_bandwidth"]) == (-1, -1)
