"""Trees answer the same after a file; a constant output is a number."""

from typing import Any

import lightgbm
import numpy as np
import pytest

from paradl.sweep.surrogates.trees import Trees, read_trees


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


def test_trees_of_other_features_are_refused(trees: Trees) -> None:
    with pytest.raises(ValueError, match="features"):
        read_trees(trees.write(), 2)


def test_numbers_of_all_sizes_are_kept() -> None:
    """And a tree of one leaf, as LightGBM grows where no split helps."""
    values = [5e-324, -1e30, 0.1, 2.0**-149, 1e22, -0.0]
    count = len(values)
    chain = {
        "split_feature": [0] * (count - 1),
        "threshold": [*range(count - 1)],
        "decision_type": [2] * (count - 1),
        "left_child": [*range(-1, -count, -1)],
        "right_child": [*range(1, count - 1), -count],
        "leaf_value": values,
    }
    read = read_trees([[chain, {"leaf_value": [3.0]}], 1, 2.5, [{"leaf_value": [-1]}]], 1)
    answers = read.apply(np.arange(count, dtype=np.float32)[:, None])
    expected = [np.float32(value + 3.0) for value in values]
    np.testing.assert_array_equal(answers[:, 0], expected)
    np.testing.assert_array_equal(answers[0, 1:], [1, 2.5, -1])


GOOD = {
    "split_feature": [0, 1],
    "threshold": [0.5, 1.5],
    "decision_type": [2, 2],
    "left_child": [1, -1],
    "right_child": [-3, -2],
    "leaf_value": [1.0, 2.0, 3.0],
}
FORGED: dict[str, Any] = {
    "a circle": {"left_child": [0, -1]},
    "a circle of two": {"left_child": [1, 0], "right_child": [-1, -2]},
    "a child of two": {"right_child": [-1, -2]},
    "a leaf that is none": {"right_child": [-4, -2]},
    "a node that is none": {"right_child": [2, -2]},
    "a child far away": {"right_child": [2**40, -2]},
    "a feature that is none": {"split_feature": [0, 2]},
    "a feature below 0": {"split_feature": [0, -1]},
    "a category": {"decision_type": [1, 2]},
    "few thresholds": {"threshold": [0.5]},
    "many leaves": {"leaf_value": [1.0] * 4},
    "no leaf": {name: [] for name in GOOD},
    "an endless leaf": {"leaf_value": [1.0, 2.0, float("inf")]},
    "an enormous leaf": {"leaf_value": [1.0, 2.0, 1e300]},
    "a threshold that is none": {"threshold": [0.5, float("nan")]},
    "a line of LightGBM's": {"threshold": ["0.5\nnum_cat=9", 1.5]},
    "another key": {"cat_threshold": [7]},
    "a deep chain": {
        "split_feature": [0] * 99_999,
        "threshold": [0.5] * 99_999,
        "decision_type": [2] * 99_999,
        "left_child": [*range(-1, -100_000, -1)],
        "right_child": [*range(1, 99_999), -100_000],
        "leaf_value": [1.0] * 100_000,
    },
}


@pytest.mark.parametrize("name", FORGED)
def test_a_forged_tree_is_refused(name: str) -> None:
    assert read_trees([[GOOD], 1, 1, 1], 2)
    with pytest.raises(ValueError, match=r"leaf|node|feature|type|threshold|child|extra"):
        read_trees([[GOOD | FORGED[name]], 1, 1, 1], 2)


@pytest.mark.parametrize("data", [[], [1, 1, 1], [[], 1, 1, 1], ["tree\nversion=v4", 1, 1, 1]])
def test_other_outputs_are_refused(data: list[Any]) -> None:
    with pytest.raises(ValueError, match=r"outputs|trees|list"):
        read_trees(data, 2)
