"""Cells may be any numbers that broadcast; where shapes are checked, others are refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import TypeCheckError
from shapes import ARE_CHECKED
from toys import LAYERS

from paradl.kernels.arrays import xp
from paradl.kernels.paper.network import TablePath, point_to_point
from paradl.kernels.work.group import share

where_checked = pytest.mark.skipif(not ARE_CHECKED, reason="PARADL_CHECK_SHAPES is not set")


@pytest.mark.parametrize("m", [3, 3.0, np.float64(3), np.array(3.0), jnp.array(3.0)])
def test_a_cell_may_be_any_number(m) -> None:
    assert point_to_point(m, TablePath(1.0, 2.0)) == 7


def test_cells_broadcast() -> None:
    sent = point_to_point(np.ones((3, 1)), TablePath(np.ones((1, 2)), 1.0))
    assert np.shape(sent) == (3, 2)


@pytest.mark.parametrize(("extreme", "sides"), [(xp.maximum, (0, 1)), (xp.minimum, (1, 0))])
def test_an_extreme_has_the_slope_of_its_side(extreme, sides) -> None:
    """Of equal arguments, which neither side exceeds, half of both."""
    slopes = jax.vmap(jax.grad(extreme), in_axes=(0, None))(jnp.array([1.0, 3.0, 2.0]), 2.0)
    assert slopes.tolist() == [*sides, 0.5]


@where_checked
def test_cells_that_do_not_broadcast_are_refused() -> None:
    with pytest.raises(TypeCheckError):
        share(np.ones((3, 2)), np.ones(4))


@where_checked
def test_layers_of_another_network_are_refused() -> None:
    with pytest.raises(TypeCheckError):
        type(LAYERS)(**(vars(LAYERS) | {"x": np.ones(4)}))
