"""Gradient-boosted trees: LightGBM grows them; what is kept are plain arrays, which numpy walks.

LightGBM's own files are text that its C++ reads and trusts; arrays of nodes are checked here.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from grids.reading.errors import InputError
from sweep.surrogates.encoding import Flags, Singles
from sweep.surrogates.file import Arrays
from sweep.surrogates.fit import Examples, Tell
from sweep.surrogates.network import TARGETS

TREES, LEAVES, RATE, PATIENCE = 200, 63, 0.1, 20
# Rounds between two words on progress.
TOLD = 10
Integers = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees of one target. feature, left, right, threshold [node]: below or at the threshold left.

    Of a leaf, feature is -1 and threshold its value. roots [tree]: where each begins.
    """

    feature: Integers
    left: Integers
    right: Integers
    threshold: Floats
    roots: Integers

    def sum_leaves(self, features: Singles) -> Floats:
        """The sum over the trees [row]."""
        total = np.zeros(len(features))
        rows = np.arange(len(features))
        for root in self.roots:
            at = np.full(len(features), root)
            while True:
                splits = self.feature[at]
                inner = splits >= 0
                if not inner.any():
                    break
                below = features[rows, np.maximum(splits, 0)] <= self.threshold[at]
                at = np.where(inner, np.where(below, self.left[at], self.right[at]), at)
            total += self.threshold[at]
        return total


def fit_forests(
    train: Examples, valid: Examples, seed: int, tell: Tell = lambda *_: None
) -> tuple[Forest, ...]:
    """A forest for each target, and one for the log odds of being feasible."""
    forests = []
    for number in range(len(TARGETS) + 1):
        known, checked = (_read_target(each, number) for each in (train, valid))
        forests.append(_grow(train, valid, known, checked, number == len(TARGETS), seed, tell))
    return tuple(forests)


def apply_forests(forests: tuple[Forest, ...], features: Singles) -> Singles:
    """Logarithms of the targets and the log odds [row, 4], as a network says them."""
    return np.stack([each.sum_leaves(features) for each in forests], axis=1).astype(np.float32)


def flatten_forests(forests: tuple[Forest, ...]) -> Arrays:
    """Their arrays, by name."""
    return {
        f"{name}{number}": getattr(forest, name)
        for number, forest in enumerate(forests)
        for name in ("feature", "left", "right", "threshold", "roots")
    }


def build_forests(arrays: Arrays, features: int) -> tuple[Forest, ...]:
    """The forests of such arrays. InputError: nodes that lead nowhere, or back."""
    forests = tuple(
        Forest(
            feature=np.asarray(arrays[f"feature{number}"], np.int32),
            left=np.asarray(arrays[f"left{number}"], np.int32),
            right=np.asarray(arrays[f"right{number}"], np.int32),
            threshold=np.asarray(arrays[f"threshold{number}"], np.float64),
            roots=np.asarray(arrays[f"roots{number}"], np.int32),
        )
        for number in range(len(TARGETS) + 1)
    )
    for each in forests:
        _check(each, features)
    return forests


def _check(forest: Forest, features: int) -> None:
    count = forest.feature.size
    own = np.arange(count)
    inner = forest.feature >= 0
    shapes = {each.shape for each in (forest.feature, forest.left, forest.right, forest.threshold)}
    right = (
        shapes == {(count,)}
        and forest.roots.ndim == 1
        and bool((forest.feature < features).all())
        and bool(((forest.roots >= 0) & (forest.roots < count)).all())
        # Children stand behind their parents: every walk ends.
        and all(
            bool(((each > own) & (each < count))[inner].all())
            for each in (forest.left, forest.right)
        )
    )
    if not right:
        raise InputError("the trees of this surrogate are damaged", advice="train it again")


def _read_target(examples: Examples, number: int) -> Singles:
    if number < len(TARGETS):
        return examples.arrays["targets"][:, number]
    return examples.arrays["feasible"]


def _grow(
    train: Examples,
    valid: Examples,
    known: Singles,
    checked: Singles,
    classes: bool,
    seed: int,
    tell: Tell,
) -> Forest:
    """The trees of one target, stopped where the rows of validation gain nothing more."""
    import lightgbm

    def read(examples: Examples, target: Singles) -> Any:
        has: Flags = np.isfinite(target)
        return lightgbm.Dataset(examples.arrays["features"][has], target[has])

    # Of what never changes nothing is to be grown, and LightGBM would stop with a warning.
    constant = np.unique(known[np.isfinite(known)])
    if len(constant) < 2:
        value = constant[0] if len(constant) else 0.0
        odds = np.clip(20 * (2 * value - 1), -20, 20) if classes else value
        return _join([([-1], [0], [0], [float(odds)])])
    options = {
        "objective": "binary" if classes else "regression",
        "learning_rate": RATE,
        "num_leaves": LEAVES,
        "min_data_in_leaf": 5,
        "seed": seed,
        "num_threads": 1,  # more wait for each other where a core is busy, and round differently
        "deterministic": True,
        "verbosity": -1,
    }

    def report(environment: Any) -> None:
        if environment.iteration % TOLD == 0:
            tell(environment.iteration, TREES, float(environment.evaluation_result_list[0][2]))

    grown = lightgbm.train(
        options,
        read(train, known),
        TREES,
        valid_sets=[read(valid, checked)],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False), report],
    )
    dumped = grown.dump_model(num_iteration=grown.best_iteration or -1)
    return _join([_flatten(each["tree_structure"]) for each in dumped["tree_info"]])


Nodes = tuple[list[int], list[int], list[int], list[float]]


def _flatten(root: dict[str, Any]) -> Nodes:
    """The nodes of one tree, parents before their children."""
    feature: list[int] = []
    left: list[int] = []
    right: list[int] = []
    threshold: list[float] = []

    def add(node: dict[str, Any]) -> int:
        at = len(feature)
        leaf = "leaf_value" in node
        feature.append(-1 if leaf else int(node["split_feature"]))
        threshold.append(float(node["leaf_value" if leaf else "threshold"]))
        left.append(0)
        right.append(0)
        if not leaf:
            left[at], right[at] = add(node["left_child"]), add(node["right_child"])
        return at

    add(root)
    return feature, left, right, threshold


def _join(trees: list[Nodes]) -> Forest:
    """One forest of several trees."""
    sizes = [len(each[0]) for each in trees]
    roots = np.cumsum([0, *sizes[:-1]])
    shift = np.repeat(roots, sizes)
    feature, left, right = (
        np.concatenate([np.array(tree[place], np.int32) for tree in trees]) for place in range(3)
    )
    return Forest(
        feature=feature.astype(np.int32),
        left=(left + shift).astype(np.int32),
        right=(right + shift).astype(np.int32),
        threshold=np.concatenate([np.array(tree[3], np.float64) for tree in trees]),
        roots=roots.astype(np.int32),
    )
