"""Formulas give the same in numpy, used for few cells, and compiled, used for many.

Draws: tests/kernels/test_uncertainty.py.
"""

from inspect import unwrap
from itertools import product
from typing import Any

import jax
import numpy as np
import pytest

from paradl.grids.grid import Grid
from paradl.kernels.arrays import use_numpy
from paradl.kernels.compiled import compiled, fetch
from paradl.kernels.oracle.answer import evaluate
from paradl.kernels.oracle.formulas import reduce_layers
from paradl.sweep.engine.run import read_grid

STRATEGIES = (
    *("data", "data+spatial:group=4", "pipeline"),
    *("data+filter:group=4", "data+channel:group=4"),
)
# Table III has neither. Chosen groups: tests/sweep/engine/test_fill.py.
FURTHER = ("data+placement", "data+spatial+filter+pipeline:spatial=2,filter=2,pipeline=2")
CASES = [*product(("paper", "machine"), STRATEGIES), *product(("machine",), FURTHER)]
AXES = {
    "model": "alexnet",
    "dataset": "imagenet-226",
    "system": "abci",
    "pe": [1, 4, 12, 64],
    "batch": [1, 32],
    "inter_bandwidth": ["1 GB/s", "50 GB/s"],
}

PROGRAM = compiled()(evaluate)
STAGE_ONE = compiled()(unwrap(reduce_layers))


def make_grid(oracle: str, strategy: str) -> Grid:
    spec = {"oracle": oracle, "axes": AXES | {"strategy": strategy}}
    return read_grid(spec)


def compare(plain: Any, program: Any) -> None:
    """Compare leaf by leaf; undefined in one is undefined in the other."""
    leaves, others = (
        dict(jax.tree_util.tree_leaves_with_path(value)) for value in (plain, program)
    )
    assert leaves.keys() == others.keys()
    for path, leaf in leaves.items():
        assert not isinstance(leaf, jax.Array), path
        scale = np.nanmax(np.abs(np.where(np.isfinite(leaf), leaf, 0.0)), initial=0.0)
        np.testing.assert_allclose(
            leaf, others[path], rtol=1e-11, atol=1e-14 * scale, err_msg=str(path)
        )


@pytest.mark.parametrize(("oracle", "strategy"), CASES)
def test_numpy_computes_what_the_program_does(oracle: str, strategy: str) -> None:
    case = make_grid(oracle, strategy).case((0, 0, 0, 0))
    assert case is not None
    with use_numpy():
        plain = evaluate(case)
    compare(plain, fetch(PROGRAM(case)))


@pytest.mark.parametrize(("oracle", "strategy"), CASES)
def test_layers_are_reduced_alike(oracle: str, strategy: str) -> None:
    groups = make_grid(oracle, strategy).groups((0, 0, 0, 0))
    assert groups is not None
    division = groups.divide(groups.place()[0])
    with use_numpy():
        plain = reduce_layers(division)
    compare(plain, fetch(STAGE_ONE(division)))
