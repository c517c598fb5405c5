"""The kernels are tested in float64, as the engine runs them; it asks for it call by call."""

import pytest


@pytest.fixture(autouse=True, scope="module")
def all_in_float64(float64: None) -> None:
    """Every test of this folder."""
