"""Trees say what LightGBM says of them."""

import lightgbm
import numpy as np

from sweep.surrogates.trees import read_nodes


def test_a_forest_is_what_lightgbm_grew() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(500, 4)).astype(np.float32)
    target = features[:, 0] * features[:, 1] + np.abs(features[:, 2])
    options = {"num_leaves": 9, "num_threads": 1, "verbosity": -1}
    grown = lightgbm.train(options, lightgbm.Dataset(features, target), 12)
    forest = read_nodes(grown.trees_to_dataframe())
    assert len(forest.roots) == 12
    expected = np.asarray(grown.predict(features), float)
    np.testing.assert_allclose(forest.sum_leaves(features), expected, rtol=1e-12)
    assert forest.is_sound(4)
    assert not forest.is_sound(2)
