"""One data set, and one surrogate, that most of the tests of learners read."""

from pathlib import Path

import pytest
from few_samples import FEW

from sweep.samples.read import Samples, open_samples
from sweep.samples.sample import sample
from sweep.surrogates.train import train_surrogate


@pytest.fixture(scope="session")
def drawn(tmp_path_factory: pytest.TempPathFactory) -> Samples:
    """The data set of the space."""
    path: Path = tmp_path_factory.mktemp("samples") / "rows"
    sample(FEW, path, 1200, seed=7)
    return open_samples(path)


@pytest.fixture(scope="session")
def trained(drawn: Samples, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of a small network."""
    path: Path = tmp_path_factory.mktemp("surrogates") / "net.safetensors"
    train_surrogate(drawn.path, path, epochs=10, width=16)
    return path
