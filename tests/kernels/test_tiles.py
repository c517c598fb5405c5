"""Tiles cover their cells, the last ones by overlapping, and are cut where arrays vary."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st

from paradl.kernels.arrays import Cells, repeat
from paradl.kernels.blocks.tiles import tiles

shapes = st.lists(st.integers(1, 9), min_size=2, max_size=3).map(tuple)


@limit_examples(30)
@given(shapes, st.integers(1, 200))
def test_tiles_cover_all_cells_and_no_more(shape, cells) -> None:
    cut, seen = tiles(shape, cells), np.zeros(shape, int)
    for tile in np.ndindex(cut.counts):
        starts = [int(start) for start in cut.starts(tile)]
        seen[tuple(slice(a, a + n) for a, n in zip(starts, cut.size, strict=True))] += 1
    assert (seen > 0).all()
    assert cut.overlap == (shape[0] % cut.size[0] > 0)
    assert int(np.prod(cut.size)) <= max(cells, 1) or cut.size == (1,) * len(shape)


def test_what_varies_is_cut_and_the_rest_is_left() -> None:
    cut = tiles((6, 4), cells=4)
    assert cut.size == (4, 1) or int(np.prod(cut.size)) <= 4
    values = {
        "cells": jnp.arange(24).reshape(6, 4),
        "of p": jnp.arange(6).reshape(6, 1),
        "messages": jnp.arange(18).reshape(3, 6, 1),
        "constant": jnp.asarray(7),
    }
    starts = (2, 1)
    part = cut.cut(values, starts)
    rows = slice(2, 2 + cut.size[0])
    columns = slice(1, 1 + cut.size[1])
    assert part["cells"].tolist() == values["cells"][rows, columns].tolist()
    assert part["of p"].tolist() == values["of p"][rows].tolist()
    assert part["messages"].tolist() == values["messages"][:, rows].tolist()
    assert part["constant"] == 7


def add(n: Cells, total: jax.Array) -> jax.Array:
    return total + jnp.asarray(n)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_repeat_passes_the_number_on(count) -> None:
    assert int(repeat(count, add, jnp.array(0))) == sum(range(count))
