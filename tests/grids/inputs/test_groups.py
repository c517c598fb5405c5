"""Groups are divided once for all blocks that share their inputs."""

from typing import Any

import jax
import numpy as np
import pytest

import paradl.grids.inputs.groups
from paradl.grids.grid import Grid
from paradl.grids.inputs.groups import Groups, reduce_groups, reduce_new_groups
from paradl.grids.spec import Spec

AXES = {
    "model": "alexnet",
    "dataset": "imagenet",
    "system": "abci",
    "strategy": ["filter", "channel", "data+filter", "spatial"],
    "pe": [1, 2, 4, 8],
    "batch": [16, 32],
    "inter_bandwidth": [1e9, 1e10],
    "efficiency": [0.5, 1.0],
}


@pytest.fixture(scope="module")
def grid() -> Grid:
    return Grid.from_spec(Spec.model_validate({"oracle": "paper", "axes": AXES}))


def groups(grid: Grid, strategy: int = 0, **parts: slice) -> Groups:
    """Return the axes of a block: part of some, all of the others."""
    axes = {name: values[parts.get(name, slice(None))] for name, values in grid.axes.items()}
    of_block = grid.groups((0, 0, 0, strategy), axes)
    assert of_block is not None
    return of_block


def test_blocks_that_differ_in_batch_or_bandwidth_share_their_groups(grid) -> None:
    whole = groups(grid)
    parts: list[Any] = [{"batch": slice(1)}, {"inter_bandwidth": slice(1, 2)}]
    for part in parts:
        assert groups(grid, **part) == whole
        assert hash(groups(grid, **part)) == hash(whole)
        assert reduce_groups(groups(grid, **part)) is reduce_groups(whole)


def test_others_do_not(grid) -> None:
    whole = groups(grid)
    parts: list[Any] = [{"pe": slice(2)}, {"efficiency": slice(1)}]
    for part in parts:
        assert groups(grid, **part) != whole
    assert groups(grid, 1) != whole
    assert whole != "groups"


def test_hybrids_of_few_pe_counts_have_as_many_sizes_as_the_strategies_inside(grid) -> None:
    """One compiled program serves both."""
    (pure,), (hybrid,) = (groups(grid, *at).degrees.values() for at in ((), (2,)))
    assert pure.shape == hybrid.shape
    assert np.unique(hybrid).tolist() == [4]  # a node's


def test_hybrids_of_many_pe_counts_are_reduced_for_their_sizes_alone() -> None:
    many = Spec.model_validate({"oracle": "paper", "axes": AXES | {"pe": {"range": [1, 100]}}})
    (degree,) = groups(Grid.from_spec(many), 2).degrees.values()
    assert degree.ravel().tolist() == [4]


@pytest.mark.parametrize("strategy", ["filter", "data+filter", "spatial", "data+filter+pipeline"])
def test_sizes_that_are_reduced_in_parts_have_the_same_work(strategy, monkeypatch) -> None:
    axes = AXES | {"strategy": [strategy], "pe": [*range(1, 24)], "batch": [32]}
    if strategy == "data+filter+pipeline":
        axes |= {"filter": [1, 2, 3, 4, 6], "pipeline": [1, 2, 4]}
    grid = Grid.from_spec(Spec.model_validate({"axes": axes}))
    whole, _ = reduce_new_groups(groups(grid))
    monkeypatch.setattr(paradl.grids.inputs.groups, "SIZES", 5)
    parts, _ = reduce_new_groups(groups(grid))
    jax.tree.map(np.testing.assert_array_equal, parts, whole)
