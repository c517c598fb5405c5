"""The kernels are tested in float64, as the engine runs them; it asks for it call by call."""

from collections.abc import Iterator

import pytest
from shapes import check_shapes

from kernels.arrays import use_numpy


@pytest.fixture(autouse=True, scope="module")
def all_in_float64(float64: None) -> None:
    """Every test of this folder."""


@pytest.fixture(scope="module")
def in_numpy() -> Iterator[None]:
    """Formulas step by step, which JAX would compile one by one (tests/test_programs.py)."""
    with use_numpy():
        yield


@pytest.fixture(scope="module")
def unchecked() -> Iterator[None]:
    """No checks of shapes, in files that call most: 5.5 -> 1.2 s of CPU (2026-11).

    Programs check nearly all of the same functions (tests/test_programs.py).
    """
    with check_shapes(False):
        yield
