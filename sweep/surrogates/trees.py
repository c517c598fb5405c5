"""Gradient-boosted trees: LightGBM grows them, and their nodes are kept as arrays.

LightGBM's own files are not read: its C++ trusts every number in them, and a changed one ended the
process (SIGABRT, lightgbm 4.6). Arrays of any numbers are harmless here: JAX clamps positions to
the arrays, and a walk ends after as many steps as a tree can be deep.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, ShapeDtypeStruct, lax

from kernels.blocks.labels import TARGETS
from sweep.surrogates.encoding import Flags, Singles
from sweep.surrogates.fit import Examples, Report
from sweep.surrogates.network import OUTPUTS

if TYPE_CHECKING:
    import pandas as pd

ROUNDS, LEAVES, RATE, PATIENCE = 200, 63, 0.1, 20
# Rounds between two reports of progress.
REPORTED = 10
# Log odds where all rows are feasible, or none is.
CERTAIN = 20.0


class Trees(eqx.Module):
    """Trees of all outputs; rows go left where a feature is at most the threshold.

    feature, left, right, threshold [node]: a leaf leads to itself, and its threshold is its value.
    roots [output, tree]: the node at which each tree begins.
    """

    feature: Array
    left: Array
    right: Array
    threshold: Array
    roots: Array

    def __call__(self, features: Array, kinds: Array, room: Array) -> Array:
        """Logarithms of the targets and the log odds of being feasible [output] of one row.

        features: encoded [feature]. kinds, room: as networks have them; trees need neither.
        """

        def is_on_the_way(state: tuple[Array, Array, Array]) -> Array:
            steps, before, at = state
            return (steps < LEAVES) & (at != before).any()

        def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            steps, _, at = state
            below = features[self.feature[at]] <= self.threshold[at]
            return steps + 1, at, jnp.where(below, self.left[at], self.right[at])

        start = (jnp.zeros((), jnp.int32), jnp.full_like(self.roots, -1), self.roots)
        _, _, leaves = lax.while_loop(is_on_the_way, step, start)
        return self.threshold[leaves].sum(axis=1)


def shape_trees(nodes: int, trees: int) -> Trees:
    """State the shapes of such trees, without memory for them."""
    place: Any = ShapeDtypeStruct((nodes,), jnp.int32)
    value: Any = ShapeDtypeStruct((nodes,), jnp.float32)
    roots: Any = ShapeDtypeStruct((OUTPUTS, trees), jnp.int32)
    return Trees(place, place, place, value, roots)


def fit_trees(train: Examples, valid: Examples, seed: int, report: Report) -> Trees:
    """Grow trees for each target, and for the log odds of being feasible."""
    return read_nodes([_grow(train, valid, output, seed, report) for output in range(OUTPUTS)])


def _grow(
    train: Examples, valid: Examples, output: int, seed: int, report: Report
) -> "pd.DataFrame":
    """LightGBM's table of nodes of one output, stopped where validation gains nothing more."""
    import lightgbm

    classifies = output == len(TARGETS)

    def read(examples: Examples) -> tuple[Singles, Singles]:
        arrays = examples.arrays
        values = arrays["feasible"] if classifies else arrays["targets"][:, output]
        known: Flags = np.isfinite(values)
        return arrays["features"][known], values[known]

    features, values = read(train)
    # A constant target needs no trees, and LightGBM would stop with a warning.
    if len(np.unique(values)) < 2:
        value = float(values[0]) if len(values) else 0.0
        return _make_leaf(CERTAIN * (2 * value - 1) if classifies else value)
    options = {
        "objective": "binary" if classifies else "regression",
        "learning_rate": RATE,
        "num_leaves": LEAVES,
        "min_data_in_leaf": 5,
        "seed": seed,
        "num_threads": 1,  # more wait for each other where a core is busy, and round differently
        "deterministic": True,
        "verbosity": -1,
    }

    def report_round(state: Any) -> None:
        if state.iteration % REPORTED == 0:
            report(state.iteration, ROUNDS, float(state.evaluation_result_list[0][2]))

    booster = lightgbm.train(
        options,
        lightgbm.Dataset(features, values),
        ROUNDS,
        valid_sets=[lightgbm.Dataset(*read(valid))],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False), report_round],
    )
    return booster.trees_to_dataframe()


def _make_leaf(value: float) -> "pd.DataFrame":
    """A table of nodes that answers all rows alike."""
    import pandas as pd

    return pd.DataFrame({"node_index": ["0-L0"], "value": [value]})


def read_nodes(tables: "Sequence[pd.DataFrame]") -> Trees:
    """Put LightGBM's tables of nodes, one for each output, into arrays."""
    import pandas as pd

    # A leaf of 0 stands first: there begin the trees that one output lacks and another has.
    nodes = pd.concat([_make_leaf(0.0), *tables], keys=range(-1, len(tables)), names=["output"])
    nodes = nodes.reset_index("output").reset_index(drop=True)
    own = np.arange(len(nodes), dtype=np.int32)
    place = dict(zip(zip(nodes["output"], nodes["node_index"], strict=True), own, strict=True))

    def find(child: str) -> Array:
        named = zip(nodes["output"], nodes[child], strict=True)
        children = [place.get(name, at) for name, at in zip(named, own, strict=True)]
        return jnp.asarray(np.array(children, np.int32))

    splits = nodes["split_feature"].notna().to_numpy()
    columns = nodes["split_feature"].astype(str).str.removeprefix("Column_").where(splits, "0")
    # Rounded down: single precision is compared, and no number of it lies between the two.
    exact = nodes["threshold"].to_numpy(np.float64)
    threshold = exact.astype(np.float32)
    threshold = np.where(threshold > exact, np.nextafter(threshold, -np.inf), threshold)
    begins = nodes["parent_index"].isna().to_numpy()
    roots = [own[begins & (nodes["output"] == output).to_numpy()] for output in range(len(tables))]
    most = max(map(len, roots))
    return Trees(
        feature=jnp.asarray(columns.to_numpy().astype(np.int32)),
        left=find("left_child"),
        right=find("right_child"),
        threshold=jnp.asarray(np.where(splits, threshold, nodes["value"]).astype(np.float32)),
        roots=jnp.asarray(np.stack([np.pad(root, (0, most - len(root))) for root in roots])),
    )
