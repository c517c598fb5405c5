"""Folding a line row by row is the same however it is cut into segments."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import kernels.fold
from kernels.fold import Folding, fold
from kernels.line import Line, line, without

# The digits of the rows, and ten to the power of their number: an order that is lost shows.
SEEN = Folding(
    each=lambda row: (jnp.where(row.allowed, row.p, 0), jnp.where(row.allowed, 10.0, 1.0)),
    merged=lambda earlier, later: (earlier[0] * later[1] + later[0], earlier[1] * later[1]),
    none=lambda shape: (jnp.zeros(shape), jnp.ones(shape)),
)
LAST = Folding(
    each=lambda row: jnp.where(row.allowed, row.p, 0),
    merged=lambda earlier, later: jnp.where(later > 0, later, earlier),
    none=jnp.zeros,
)


def a_line(rows: int, others: int, forbidden: int = 0) -> Line:
    """PE counts from 1; the last ones forbidden."""
    limit = np.zeros((rows, others), np.uint8)
    limit[rows - forbidden :] = 1
    p = jnp.arange(1.0, rows + 1).reshape(-1, 1)
    nothing = jnp.zeros((1, 1))
    return line(p, nothing, nothing, nothing, jnp.asarray(limit), nothing)


def test_rows_come_in_their_order() -> None:
    assert fold(a_line(7, 1), SEEN, (1,))[0].tolist() == [1234567]


@settings(max_examples=30, deadline=None)
@given(rows=st.integers(1, 70), others=st.integers(1, 4), forbidden=st.integers(0, 3))
def test_segments_change_nothing(rows, others, forbidden) -> None:
    found = fold(a_line(rows, others, min(forbidden, rows)), LAST, (others,))
    assert found.tolist() == [max(0, rows - forbidden)] * others


@pytest.mark.parametrize("cells", [1, 2, 8, 64])
def test_of_any_number_of_segments(monkeypatch, cells) -> None:
    monkeypatch.setattr(kernels.fold, "STEP_CELLS", cells)
    whole = jax.jit(lambda known: fold(known, LAST, (1,)))(a_line(37, 1, 2))
    assert whole.tolist() == [35]


def test_rows_of_another_line_do_not_count() -> None:
    again = without(a_line(6, 1), jnp.asarray(4))
    assert fold(again, SEEN, (1,))[0].tolist() == [56]
