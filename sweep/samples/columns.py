"""Columns: what each column of a data set is, one table for its files, its card and its readers.

No column is named by a reserved word of SQL. A column's role says what a learner may do with it:
`feature` is known of any model, machine and strategy ahead; `target` and `gradient` are to be
learnt; `answer` is what the oracle chose; `label` names; `split` and `mark` divide.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

import numpy as np

from kernels.blocks.labels import EPOCH, TARGETS
from sweep.cube.variables import VARIABLES
from sweep.samples.features import FEATURES
from sweep.samples.splits import AXES, SPLITS

# The file of a data set's facts, and the version of what stands where.
FACTS, FORMAT = "dataset.json", 1
Role = Literal["label", "feature", "target", "gradient", "answer", "mark", "split"]
ROLES: tuple[Role, ...] = ("label", "feature", "target", "gradient", "answer", "mark", "split")
SLOPE = "elasticity"


@dataclass(frozen=True)
class Column:
    """A column. units: as CF writes them, empty for texts and flags."""

    name: str
    role: Role
    units: str
    meaning: str
    kind: Literal["text", "flag", "count", "single", "double"] = "double"


LABELS = (
    Column("model", "label", "", "network", "text"),
    Column("dataset", "label", "", "data set", "text"),
    # SQL reserves SYSTEM and LIMIT.
    Column("system_name", "label", "", "machine, with its precision and software", "text"),
    Column("strategy", "label", "", "strategy", "text"),
    Column("slice", "label", "", "number of the point that all strategies are asked at", "count"),
)


def _describe_output(name: str, role: Role = "target") -> Column:
    variable = VARIABLES[name]
    return Column(name, role, variable.units, variable.long_name, "single")


MEANT = {
    EPOCH: Column(EPOCH, "target", "s", "time of an epoch", "single"),
    **{name: _describe_output(name) for name in TARGETS},
}
CHOSEN = ("replicas", "group_size", "segment_count")
ANSWERS = (
    Column("feasible", "target", "", "whether nothing forbids the configuration", "flag"),
    Column("defined", "mark", "", "whether there is such a configuration at all", "flag"),
    Column("limit_names", "answer", "", "what forbids or marks it, with ', ' between", "text"),
    *(_describe_output(name, "answer") for name in CHOSEN),
    Column("global_batch", "answer", "1", "samples an iteration", "single"),
)
MARKS = (
    Column(
        "near_kink",
        "mark",
        "",
        "whether a kink is within 1 % of one of the inputs: slopes are one-sided there",
        "flag",
    ),
    Column("origin", "mark", "", "drawn over the space, or moved to a limit or crossover", "text"),
)


def list_columns(
    inputs: Iterable[str], splits: Iterable[str], outputs: Iterable[str] = ()
) -> tuple[Column, ...]:
    """All columns in their order.

    inputs: parameters that there are slopes in, none without. outputs: variables of a cube that
    rows have on request.
    """
    return (
        *LABELS,
        *(
            Column(name, "feature", feature.unit, feature.meaning)
            for name, feature in FEATURES.items()
        ),
        *MEANT.values(),
        *(_describe_output(name) for name in outputs),
        *ANSWERS,
        *(_describe_slope(target, parameter) for target in MEANT for parameter in inputs),
        *MARKS,
        *(_describe_split(name) for name in splits),
    )


def name_label(dim: str) -> str:
    """The column of a labelled dimension of a cube."""
    return "system_name" if dim == "system" else dim


def name_slope(target: str, parameter: str) -> str:
    """The column of d log target / d log parameter."""
    return f"{SLOPE}_{target}_{parameter}"


def name_split(split: str) -> str:
    """The column of a split."""
    return f"split_{split}"


def _describe_slope(target: str, parameter: str) -> Column:
    meaning = f"d log {target} / d log {parameter}"
    return Column(name_slope(target, parameter), "gradient", "1", meaning, "single")


def _describe_split(name: str) -> Column:
    assert name in SPLITS
    words = {
        "random": "by a hash of the problem, all but the strategy and the batch",
        **{axis: f"by whole values of {axis}" for axis in ("model", "system", "strategy")},
        **{split: f"the largest values of {axis} are tested" for split, axis in AXES.items()},
    }
    return Column(name_split(name), "split", "", f"train or test, {words[name]}", "text")


DTYPES: dict[str, np.dtype[np.generic]] = {
    "flag": np.dtype(bool),
    "count": np.dtype(np.int64),
    "single": np.dtype(np.float32),
    "double": np.dtype(np.float64),
}
