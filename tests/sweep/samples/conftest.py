"""One data set that most of the tests read."""

from pathlib import Path

import pytest
from sampled_spaces import ROWS, SPACE
from shared import copy_shared

from paradl.sweep.samples.read import Samples, open_samples
from paradl.sweep.samples.sample import sample


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The data set of the space."""

    def make(path: Path) -> None:
        sample(SPACE, path, ROWS, seed=7)

    return open_samples(copy_shared(tmp_path_factory, "drawn", make))
