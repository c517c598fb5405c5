"""The namespace of both: the same loops, items and quantiles in a program and in numpy."""

import threading

import jax
import numpy as np
import pytest

from paradl.kernels.arrays import (
    empty_last,
    find_quantile,
    in_numpy,
    map_leading,
    repeat,
    take_item,
    use_numpy,
    xp,
)
from paradl.kernels.compiled import compiled

ITEMS = {"few": np.arange(3.0), "many": np.arange(6.0).reshape(3, 2)}


def run_both(function):
    """What a function gives in numpy, and compiled."""
    with use_numpy():
        plain = function()
    return plain, compiled()(function)()


@pytest.mark.parametrize(
    "function",
    [
        lambda: map_leading(lambda item: item["few"] + item["many"], ITEMS),
        lambda: map_leading(lambda item: (item, 2 * item), ITEMS["few"])[1],
        lambda: take_item(ITEMS, 1)["many"],
        lambda: repeat(4, lambda number, carry: carry * 2 + number, xp.ones(2)),
        lambda: repeat(1, lambda number, carry: carry + number, xp.ones(2)),
        lambda: repeat(0, lambda number, carry: carry + number, xp.ones(2)),
        lambda: find_quantile(xp.asarray([0.1, 0.5, 0.975])),
        lambda: empty_last(ITEMS["many"]),
    ],
)
def test_both_give_the_same(function) -> None:
    plain, program = run_both(function)
    assert isinstance(program, jax.Array)
    assert not isinstance(plain, jax.Array)
    np.testing.assert_allclose(plain, program, rtol=1e-13)


def test_what_is_given_stays_as_it_was() -> None:
    values = np.ones(3)
    with use_numpy():
        assert empty_last(values).tolist() == [1, 1, 0]
    assert values.tolist() == [1, 1, 1]


def test_numpy_ends_with_its_block_also_where_it_fails() -> None:
    with pytest.raises(ZeroDivisionError), use_numpy():
        assert 1 / (1 - in_numpy())
    assert not in_numpy()


def test_numpy_is_of_one_thread() -> None:
    seen = []
    with use_numpy():
        other = threading.Thread(target=lambda: seen.append(in_numpy()))
        other.start()
        other.join()
    assert seen == [False]


def test_infinity_and_nan_are_no_reason_to_warn() -> None:
    with use_numpy():
        assert np.isinf(xp.ones(1) / xp.zeros(1)).all()
        assert np.isnan(xp.zeros(1) / xp.zeros(1)).all()
