"""A solver that tests share: to start its process takes 0.4 s."""

import pytest

from grids.placing.highs import Highs


@pytest.fixture(scope="session")
def highs():
    with Highs() as solver:
        yield solver
