"""One data set, and a surrogate, that most of the tests of learners read."""

from pathlib import Path

import pytest
from sampled_spaces import FEW, RECIPE
from shared import copy_shared

from paradl.sweep.samples.read import Samples, open_samples
from paradl.sweep.samples.sample import sample
from paradl.sweep.surrogates.train import train_surrogate


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The data set of the space."""

    def make(path: Path) -> None:
        sample(
            FEW,
            path,
            1200,
            seed=7,
            gradients=None,  # test_fit.py has slopes
            splits=["random", "model", "scale"],
        )

    return open_samples(copy_shared(tmp_path_factory, "few", make))


@pytest.fixture(scope="session")
def trained(drawn: Samples, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small network."""

    def make(path: Path) -> None:
        train_surrogate(drawn.path, path, **RECIPE)

    return copy_shared(tmp_path_factory, "net.eqx", make)
