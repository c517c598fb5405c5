"""Trees answer the same after a file; a constant output is a number."""

import lightgbm
import numpy as np
import pytest

from sweep.surrogates.trees import Trees, read_trees


@pytest.fixture
def trees() -> Trees:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 4)).astype(np.float32)
    options = {"num_leaves": 9, "num_threads": 1, "verbosity": -1}
    target = features[:, 0] * features[:, 1] + np.abs(features[:, 2])
    grown = lightgbm.train(options, lightgbm.Dataset(features, target), 12)
    return Trees((grown, grown, 2.5, grown))


def test_a_file_keeps_every_answer(trees: Trees) -> None:
    rows = np.random.default_rng(1).normal(size=(300, 4)).astype(np.float32)
    answers = trees.apply(rows)
    assert answers.shape == (300, 4)
    assert (answers[:, 2] == 2.5).all()
    np.testing.assert_array_equal(read_trees(trees.write(), 4).apply(rows), answers)


@pytest.mark.parametrize("features", [3, 5])
def test_trees_of_other_features_are_refused(trees: Trees, features: int) -> None:
    with pytest.raises(ValueError, match="features"):
        read_trees(trees.write(), features)
