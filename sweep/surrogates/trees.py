"""Gradient-boosted trees, grown by LightGBM and kept as arrays of nodes.

LightGBM's own files are not read: it trusts every number in them, and a changed one aborted the
process (SIGABRT, lightgbm 4.6). Arrays are harmless whatever they hold: JAX clamps indices, and a
walk ends after as many steps as a tree can be deep.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax import Array, ShapeDtypeStruct, lax

from kernels.blocks.labels import TARGETS
from kernels.names.arrays import Flags
from sweep.surrogates.encoding import Singles
from sweep.surrogates.fit import Examples, Report
from sweep.surrogates.network import OUTPUTS

if TYPE_CHECKING:
    import pandas as pd

ROUNDS, LEAVES, RATE, PATIENCE = 200, 63, 0.1, 20
# Rounds between reports of progress.
REPORTED = 10
# Log odds if all rows are feasible, or none.
CERTAIN = 20.0


class Trees(eqx.Module):
    """Trees of all outputs; rows go left where a feature is at most the threshold.

    feature, left, right, threshold [node]: a leaf points to itself, its threshold is its value.
    roots [output, tree]: root node of each tree.
    """

    feature: Array
    left: Array
    right: Array
    threshold: Array
    roots: Array

    def __call__(self, features: Array, kinds: Array, room: Array) -> Array:
        """Return logarithms of the targets and the log odds of being feasible [output] of one row.

        features: encoded [feature]. kinds, room: as for networks; unused.
        """

        def is_walking(state: tuple[Array, Array, Array]) -> Array:
            steps, before, nodes = state
            return (steps < LEAVES) & (nodes != before).any()

        def step(state: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
            steps, _, nodes = state
            is_left = features[self.feature[nodes]] <= self.threshold[nodes]
            return steps + 1, nodes, jnp.where(is_left, self.left[nodes], self.right[nodes])

        start = (jnp.zeros((), jnp.int32), jnp.full_like(self.roots, -1), self.roots)
        _, _, leaves = lax.while_loop(is_walking, step, start)
        return self.threshold[leaves].sum(axis=1)


def shape_trees(nodes: int, trees: int) -> Trees:
    """Return the shapes of trees with so many nodes and trees per output, without memory."""
    index: Any = ShapeDtypeStruct((nodes,), jnp.int32)
    value: Any = ShapeDtypeStruct((nodes,), jnp.float32)
    roots: Any = ShapeDtypeStruct((OUTPUTS, trees), jnp.int32)
    return Trees(index, index, index, value, roots)


def fit_trees(train: Examples, valid: Examples, seed: int, report: Report) -> Trees:
    """Grow trees for each target and for the log odds of being feasible."""
    return read_nodes([_grow(train, valid, output, seed, report) for output in range(OUTPUTS)])


def _grow(
    train: Examples, valid: Examples, output: int, seed: int, report: Report
) -> "pd.DataFrame":
    """Grow the trees of one output until validation stops improving; return LightGBM's nodes."""
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
        "num_threads": 1,  # several wait for each other on busy cores, and round differently
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
    """Make a table of nodes that answers `value` for all rows."""
    import pandas as pd

    return pd.DataFrame({"node_index": ["0-L0"], "value": [value]})


def read_nodes(tables: "Sequence[pd.DataFrame]") -> Trees:
    """Convert LightGBM's tables of nodes, one per output, to arrays."""
    import pandas as pd

    # Node 0 is a leaf of value 0, which pads outputs with fewer trees than others.
    nodes = pd.concat([_make_leaf(0.0), *tables], keys=range(-1, len(tables)), names=["output"])
    nodes = nodes.reset_index("output").reset_index(drop=True)
    numbers = np.arange(len(nodes), dtype=np.int32)
    names = zip(nodes["output"], nodes["node_index"], strict=True)
    number_of = dict(zip(names, numbers, strict=True))

    def index_children(side: str) -> Array:
        children = zip(nodes["output"], nodes[side], strict=True)
        pairs = zip(children, numbers, strict=True)  # a leaf points to itself
        return jnp.asarray(np.array([number_of.get(*pair) for pair in pairs], np.int32))

    splits = nodes["split_feature"].notna().to_numpy()
    columns = nodes["split_feature"].astype(str).str.removeprefix("Column_").where(splits, "0")
    # Rounded down: features have single precision, so the comparison stays exact.
    exact = nodes["threshold"].to_numpy(np.float64)
    threshold = exact.astype(np.float32)
    threshold = np.where(threshold > exact, np.nextafter(threshold, -np.inf), threshold)
    is_root = nodes["parent_index"].isna().to_numpy()
    output = nodes["output"].to_numpy()
    roots = [numbers[is_root & (output == number)] for number in range(len(tables))]
    most = max(map(len, roots))
    return Trees(
        feature=jnp.asarray(columns.to_numpy().astype(np.int32)),
        left=index_children("left_child"),
        right=index_children("right_child"),
        threshold=jnp.asarray(np.where(splits, threshold, nodes["value"]).astype(np.float32)),
        roots=jnp.asarray(np.stack([np.pad(root, (0, most - len(root))) for root in roots])),
    )
