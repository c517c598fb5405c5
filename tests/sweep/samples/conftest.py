"""One data set that most of the tests read."""

from pathlib import Path

import pytest
from drawn import ROWS, SHARES, SPACE

from sweep.samples.read import Samples, open_samples
from sweep.samples.sample import sample


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The data set of the space."""
    path: Path = tmp_path_factory.mktemp("samples") / "rows"
    sample(SPACE, path, ROWS, seed=7, **SHARES)
    return open_samples(path)
