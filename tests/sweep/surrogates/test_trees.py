"""Trees answer as LightGBM does."""

import jax
import lightgbm
import numpy as np

from sweep.surrogates.trees import read_nodes


def test_trees_are_what_lightgbm_grew() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 4)).astype(np.float32)
    targets = [features[:, 0] * features[:, 1] + np.abs(features[:, 2]), features[:, 3] ** 2]
    options = {"num_leaves": 9, "num_threads": 1, "verbosity": -1}
    grown = [
        lightgbm.train(options, lightgbm.Dataset(features, target), rounds)
        for target, rounds in zip(targets, (12, 5), strict=True)
    ]
    trees = read_nodes([booster.trees_to_dataframe() for booster in grown])
    assert trees.roots.shape == (2, 12)
    unused = np.zeros(len(features), np.float32)
    answers = jax.vmap(trees)(*map(jax.numpy.asarray, (features, unused, unused)))
    expected = np.stack([np.asarray(booster.predict(features)) for booster in grown], axis=1)
    np.testing.assert_allclose(answers, expected, rtol=1e-5, atol=1e-6)
