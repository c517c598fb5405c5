"""Gradient-boosted trees, grown, kept and evaluated by LightGBM."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Self

import lightgbm
import numpy as np
from pydantic import BaseModel, Field, FiniteFloat, TypeAdapter, model_validator

from paradl.kernels.names.arrays import Flags
from paradl.kernels.names.stored import TARGETS
from paradl.sweep.surrogates.encoding import Singles
from paradl.sweep.surrogates.fit import Examples, Report
from paradl.sweep.surrogates.network import OUTPUTS

ROUNDS, LEAVES, RATE, PATIENCE = 200, 63, 0.1, 20
# Rounds between reports of progress.
REPORTED = 10
# Log odds if all rows are feasible, or none.
CERTAIN = 20.0


# Nodes of a tree at most; LightGBM descends them by recursion.
MOST_LEAVES = 1024
# How LightGBM compares a number: missing ones go left or not, none, 0 or NaN is one. Odd kinds are
# those of categories, which are positions in other arrays.
Decision = Literal[0, 2, 4, 6, 8, 10]
# Logarithms; sums of larger ones would be infinite in single precision.
Value = Annotated[float, Field(ge=-1e30, le=1e30)]
Child = Annotated[int, Field(ge=-MOST_LEAVES, lt=MOST_LEAVES)]
HEAD = """tree
version=v4
num_class=1
num_tree_per_iteration=1
label_index=0
max_feature_idx={last}
feature_names={names}
feature_infos={infos}

"""


class Tree(BaseModel, extra="forbid"):
    """A tree: of each inner node the feature, what it is compared with and how, and the children.

    A child of at least 0 is an inner node, and -1 - n the leaf n.
    """

    split_feature: list[Annotated[int, Field(ge=0)]] = []
    threshold: list[FiniteFloat] = []
    decision_type: list[Decision] = []
    left_child: list[Child] = []
    right_child: list[Child] = []
    leaf_value: Annotated[list[Value], Field(min_length=1, max_length=MOST_LEAVES)]

    @model_validator(mode="after")
    def _check_nodes(self) -> Self:
        """Check that nodes are complete, and that each is the child of one before it."""
        leaves = len(self.leaf_value)
        if any(len(getattr(self, name)) != leaves - 1 for name in NODES):
            raise ValueError("another number of nodes")
        children = np.array([self.left_child, self.right_child], int)
        others = np.append(np.arange(-leaves, 0), np.arange(1, leaves - 1))
        if leaves > 1 and not np.array_equal(np.sort(children.ravel()), others):
            raise ValueError("a node that is no child, or of two nodes")
        if ((children >= 0) & (children <= np.arange(leaves - 1))).any():
            raise ValueError("a circle of nodes")
        return self

    def format(self) -> str:
        """Return LightGBM's text of the tree, without what predictions do not need."""
        lines = [f"num_leaves={len(self.leaf_value)}", "num_cat=0", "is_linear=0", "shrinkage=1"]
        for name in (*NODES, "leaf_value"):
            lines.append(f"{name}={' '.join(map(repr, getattr(self, name)))}")
        return "\n".join(lines)


NODES = tuple(name for name in Tree.model_fields if name != "leaf_value")


@dataclass(frozen=True)
class Trees:
    """A booster for each output: logarithms of the targets, then the log odds of being feasible.

    A number stands for an output that was the same in all training rows.
    """

    boosters: tuple[lightgbm.Booster | float, ...]

    def apply(self, features: Singles) -> Singles:
        """Return the outputs [row, output] for encoded features [row, feature]."""
        columns = [
            np.full(len(features), booster)
            if isinstance(booster, float)
            else np.asarray(booster.predict(features, raw_score=True, num_threads=1))
            for booster in self.boosters
        ]
        return np.asarray(np.stack(columns, axis=1), np.float32)

    def write(self) -> list[Any]:
        """Return the trees of each booster as plain data, or the number."""
        return [
            booster if isinstance(booster, float) else _list_trees(booster)
            for booster in self.boosters
        ]


def _list_trees(booster: lightgbm.Booster) -> list[dict[str, list[float]]]:
    """Return the trees of a booster as `Tree` reads them, from LightGBM's own text."""
    trees = []
    for block in booster.model_to_string().split("\nTree=")[1:]:
        lines = dict(line.partition("=")[::2] for line in block.splitlines())
        lists = {name: lines.get(name, "").split() for name in Tree.model_fields}
        trees.append({name: json.loads(f"[{','.join(words)}]") for name, words in lists.items()})
    return trees


def read_trees(data: list[Any], features: int) -> Trees:
    """Return the trees of plain data. ValueError: not those of this number of features.

    LightGBM trusts each number of a text, and a wrong one aborts the process: it gets a text that
    is written here, from arrays that were checked.
    """
    if len(data) != OUTPUTS:
        raise ValueError("another number of outputs")
    return Trees(tuple(_read_booster(each, features) for each in STORED.validate_python(data)))


STORED = TypeAdapter(list[list[Tree] | Value])


def _read_booster(trees: list[Tree] | float, features: int) -> lightgbm.Booster | float:
    """Return a booster of checked trees, or the number. ValueError: a feature is none of these."""
    if isinstance(trees, float):
        return trees
    if not trees or any(max(tree.split_feature, default=0) >= features for tree in trees):
        raise ValueError("no trees, or other features")
    names = " ".join(f"f{n}" for n in range(features))
    head = HEAD.format(last=features - 1, names=names, infos=" ".join(["none"] * features))
    blocks = (f"Tree={n}\n{tree.format()}\n\n" for n, tree in enumerate(trees))
    return lightgbm.Booster(model_str=f"{head}{''.join(blocks)}end of trees\n")


def fit_trees(train: Examples, valid: Examples, seed: int, report: Report) -> Trees:
    """Grow trees for each target and for the log odds of being feasible."""
    return Trees(tuple(_grow(train, valid, output, seed, report) for output in range(OUTPUTS)))


def _grow(
    train: Examples, valid: Examples, output: int, seed: int, report: Report
) -> lightgbm.Booster | float:
    """Grow the trees of one output until validation stops improving."""
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
        return CERTAIN * (2 * value - 1) if classifies else value
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

    return lightgbm.train(
        options,
        lightgbm.Dataset(features, values),
        ROUNDS,
        valid_sets=[lightgbm.Dataset(*read(valid))],
        callbacks=[lightgbm.early_stopping(PATIENCE, verbose=False), report_round],
    )
