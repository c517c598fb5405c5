"""The kernels are tested in float64, as the engine runs them; it asks for it call by call."""

from collections.abc import Iterator

import pytest

from paradl.kernels.arrays import use_numpy


@pytest.fixture(autouse=True, scope="module")
def all_in_float64(float64: None) -> None:
    """Every test of this folder."""


@pytest.fixture(scope="module")
def in_numpy() -> Iterator[None]:
    """Formulas step by step, which JAX would compile one by one (tests/test_programs.py)."""
    with use_numpy():
        yield
