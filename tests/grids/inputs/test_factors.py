"""Factors of a spatial group: memory decides between them if it is what is alive at once."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import example, given
from hypothesis import strategies as st

from paradl.grids.inputs.factors import DividedLayers, Storage, find_factors
from paradl.grids.library import find
from paradl.grids.models.layers import Layer, LayerTable
from paradl.kernels.divisors import list_divisors

Extents = tuple[int, int, int]
KINDS = ("conv", "relu", "norm")

STORAGE = Storage(4.0, "none")
SIZES = (*range(1, 33), 36, 40, 48, 64, 72, 96, 128, 240, 256, 512)


def table(model: str, dataset: str) -> LayerTable:
    return find("model", model, Path()).table(find("dataset", dataset, Path()))


CATALOGUE = {
    "cosmoflow": table("cosmoflow", "cosmoflow-512"),
    "resnet50": table("resnet50", "imagenet"),
    "resnet50 at 226": table("resnet50", "imagenet-226"),
}


def divide(model: LayerTable, p2: int, storage: Storage | None, dims: str | None = None):
    return find_factors(DividedLayers(model, dims, "default", storage), [p2])[0]


def make_layer(extents: Extents, planes: int, kind: str = "conv") -> Layer:
    """Return a layer whose output is as large as its input."""
    items = planes * float(np.prod(extents))
    return Layer(
        name=kind,
        kind=kind,
        x=items,
        y=items,
        w=0,
        bias=0,
        flops=1,
        channels=planes,
        filters=planes,
        extents_x=extents,
        extents_y=extents,
        kernel=(3, 3, 3) if kind == "conv" else (1, 1, 1),
    )


# Most items are in the two rows of each dimension.
FEW_ROWS = LayerTable.from_layers([make_layer((8, 8, 8), 2), make_layer((2, 2, 2), 1000, "relu")])


@pytest.mark.parametrize("storage", [None, STORAGE])
@limit_examples(20)
@given(sizes=st.lists(st.integers(1, 300), min_size=1, max_size=9))
def test_sizes_are_divided_together_as_each_alone(storage: Storage | None, sizes) -> None:
    # A new table each time: what was found for one is kept.
    together, alone = (replace(CATALOGUE["resnet50"]) for _ in range(2))
    rows = DividedLayers(together, None, "default", storage)
    for size, found in zip(sizes, find_factors(rows, sizes), strict=True):
        expected = divide(alone, size, storage)
        assert math.prod(found.factors) == size
        assert (found.factors, found.held) == (expected.factors, expected.held)
        assert (found.split == expected.split).all()


def test_sixteen_pes_hold_no_more_than_eight() -> None:
    """By halo alone: 2 x 2 x 2, then 1 x 4 x 4, which leaves two rows of depth unsplit."""
    eight, sixteen = (divide(FEW_ROWS, p2, STORAGE) for p2 in (8, 16))
    assert eight.factors == (2, 2, 2)
    assert divide(FEW_ROWS, 16, None).factors == (1, 4, 4)
    assert sixteen.factors == (2, 2, 4)
    assert sixteen.held <= eight.held


@pytest.mark.parametrize("recompute", ["none", "full"])
@pytest.mark.parametrize("dims", [None, "hw"])
@pytest.mark.parametrize("name", CATALOGUE)
def test_memory_never_rises_along_divisors(name: str, dims: str | None, recompute) -> None:
    storage = Storage(4.0, recompute)
    held = {p2: divide(CATALOGUE[name], p2, storage, dims).held for p2 in SIZES}
    assert len(set(held.values())) > 10
    for p2, bytes_held in held.items():
        for size in list_divisors(p2):
            assert bytes_held <= held.get(size, np.inf) * (1 + 1e-6)


@st.composite
def networks(draw: st.DrawFn) -> LayerTable:
    """Layers none of which has more rows than the first, a convolution, as in most networks.

    Others have few rows, and perhaps most of the items: memory depends on how these are divided.
    """
    # For a cube, 16 PEs have the least halo with 1 x 4 x 4, and 8 with 2 x 2 x 2.
    most = draw(st.sampled_from(((16, 16, 16), (8, 8, 8), (12, 16, 16), (1, 16, 24))))
    rows = st.sampled_from((1, 2, 3, 4, 6, 7))
    extents = st.tuples(rows if most[0] > 1 else st.just(1), rows, rows)
    others = st.builds(make_layer, extents, st.sampled_from((1, 7, 1000)), st.sampled_from(KINDS))
    return LayerTable.from_layers(
        [make_layer(most, 2), *draw(st.lists(others, min_size=3, max_size=3))]
    )


@limit_examples(15)
@given(networks(), st.sampled_from(("none", "full")))
@example(FEW_ROWS, "none")
def test_memory_of_any_network_never_rises_along_divisors(model: LayerTable, recompute) -> None:
    storage = Storage(4.0, recompute)
    divisions = {p2: divide(model, p2, storage) for p2 in SIZES}
    for p2, division in divisions.items():
        for size in list_divisors(p2):
            if size in divisions and division.fits:
                assert divisions[size].fits
                assert division.held <= divisions[size].held * (1 + 1e-6)


@limit_examples(25)
@given(networks(), st.sampled_from(SIZES))
def test_memory_takes_no_fit_away(model: LayerTable, p2: int) -> None:
    assert divide(model, p2, STORAGE).fits == divide(model, p2, None).fits


@pytest.mark.parametrize("name", CATALOGUE)
def test_usual_groups_are_divided_as_by_table_iii(name: str) -> None:
    """Powers of two lose nothing: the least halo also has the least memory."""
    for p2 in (1, 2, 4, 8, 16, 32, 64):
        assert (
            divide(CATALOGUE[name], p2, STORAGE).factors
            == divide(CATALOGUE[name], p2, None).factors
        )


def test_divisors() -> None:
    for count in range(1, 200):
        assert list_divisors(count) == tuple(n for n in range(1, count + 1) if count % n == 0)
    assert len(list_divisors(2**40)) == 41  # a machine of a trillion PEs takes no time
