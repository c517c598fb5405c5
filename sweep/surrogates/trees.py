"""Gradient-boosted trees: LightGBM grows them; plain arrays are kept, which numpy walks.

LightGBM's own predictor would need its own files, text that its C++ reads and trusts: a changed
number in it ended the process (SIGABRT, lightgbm 4.6). Arrays of nodes are checked here.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from grids.models.layers import Floats
from grids.reading.errors import InputError
from sweep.surrogates.encoding import Flags, Singles
from sweep.surrogates.file import Arrays
from sweep.surrogates.fit import Examples, Tell
from sweep.surrogates.network import TARGETS

if TYPE_CHECKING:
    import pandas as pd

TREES, LEAVES, RATE, PATIENCE = 200, 63, 0.1, 20
# Rounds between two words on progress.
TOLD = 10
Integers = NDArray[np.int32]
# Types of a forest's arrays.
KINDS = {**dict.fromkeys(("feature", "left", "right", "roots"), np.int32), "threshold": np.float64}


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

    def is_sound(self, features: int) -> bool:
        """Whether every walk ends, and meets no other feature than there are."""
        nodes = (self.feature, self.left, self.right, self.threshold)
        places = np.arange(self.feature.size)
        inner = self.feature >= 0
        return (
            {node.shape for node in nodes} == {places.shape}
            and self.roots.ndim == 1
            and bool((self.feature < features).all())
            and bool(np.isin(self.roots, places).all())
            # Children stand behind their parents.
            and all(
                bool(((child > places) & (child < places.size))[inner].all())
                for child in (self.left, self.right)
            )
        )


def fit_forests(
    train: Examples, valid: Examples, seed: int, tell: Tell = lambda *_: None
) -> tuple[Forest, ...]:
    """A forest for each target, and one for the log odds of being feasible."""
    forests = []
    for number in range(len(TARGETS) + 1):
        known, checked = (_read_target(examples, number) for examples in (train, valid))
        forests.append(_grow(train, valid, known, checked, number == len(TARGETS), seed, tell))
    return tuple(forests)


def apply_forests(forests: tuple[Forest, ...], features: Singles) -> Singles:
    """Logarithms of the targets and the log odds [row, 4], as a network says them."""
    return np.stack([forest.sum_leaves(features) for forest in forests], axis=1).astype(np.float32)


def flatten_forests(forests: tuple[Forest, ...]) -> Arrays:
    """Their arrays, by name."""
    return {
        f"{name}{number}": getattr(forest, name)
        for number, forest in enumerate(forests)
        for name in KINDS
    }


def build_forests(arrays: Arrays, features: int) -> tuple[Forest, ...]:
    """The forests of such arrays. InputError: nodes that lead nowhere, or back."""
    forests = tuple(
        Forest(
            **{name: np.asarray(arrays[f"{name}{number}"], kind) for name, kind in KINDS.items()}
        )
        for number in range(len(TARGETS) + 1)
    )
    if not all(forest.is_sound(features) for forest in forests):
        raise InputError("the trees of this surrogate are damaged", advice="train it again")
    return forests


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

    # A constant target needs no trees, and LightGBM would stop with a warning.
    constant = np.unique(known[np.isfinite(known)])
    if len(constant) < 2:
        value = constant[0] if len(constant) else 0.0
        odds = np.clip(20 * (2 * value - 1), -20, 20) if classes else value
        return _make_leaf(float(odds))
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
    return read_nodes(grown.trees_to_dataframe())


def read_nodes(nodes: "pd.DataFrame") -> Forest:
    """The forest of LightGBM's table of nodes, which has parents before their children."""
    places = {name: place for place, name in enumerate(nodes["node_index"])}
    leaf = nodes["split_feature"].isna()

    def find(children: str) -> Integers:
        return nodes[children].map(places).fillna(0).to_numpy(np.int32)

    columns = nodes["split_feature"].astype(str).str.removeprefix("Column_")
    return Forest(
        feature=columns.where(~leaf, "-1").to_numpy().astype(np.int32),
        left=find("left_child"),
        right=find("right_child"),
        threshold=nodes["threshold"].where(~leaf, nodes["value"]).to_numpy(np.float64),
        roots=np.flatnonzero(nodes["parent_index"].isna()).astype(np.int32),
    )


def _make_leaf(value: float) -> Forest:
    """The forest that says the same of all rows."""
    node = np.zeros(1, np.int32)
    return Forest(node - 1, node, node, np.array([value]), node)
