"""Columns: the name, role, unit and meaning of each column of a data set.

The files, the data card and the readers follow from this table. No name is a reserved word of SQL.
A column's role says what a learner may do with it: a `feature` is known before any run; `target`
and `gradient` are to be learned; an `answer` is what the oracle chose; a `label` names a row;
`split` and `mark` divide rows.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

from numpy.typing import NDArray

from paradl.kernels.names.stored import EPOCH, TARGETS
from paradl.sweep.cube.variables import DERIVED, LABELLED, VARIABLES
from paradl.sweep.samples.features import FEATURES
from paradl.sweep.samples.splits import SPLITS, name_label, name_split

# The file with a data set's facts, and the version of its format.
FACTS, FORMAT = "dataset.json", 1
Role = Literal["label", "feature", "target", "gradient", "answer", "mark", "split"]
ROLES: tuple[Role, ...] = get_args(Role)
# Values of rows by the name of their column.
Columns = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class SampleColumn:
    """Column of a data set. units: CF notation, empty for text and flags. kind: Arrow type."""

    name: str
    role: Role
    units: str
    meaning: str
    kind: Literal["string", "bool", "int64", "float32", "float64"]

    @property
    def facts(self) -> dict[str, str]:
        """The column as plain data, for dataset.json."""
        return {name: fact for name, fact in asdict(self).items() if name != "kind"}


def _describe_output(name: str, role: Role = "target") -> SampleColumn:
    variable = (DERIVED | VARIABLES)[name]
    return SampleColumn(name, role, variable.units, variable.long_name, "float32")


SLICE_MEANING = "number of the point, which is evaluated under every strategy"
KINK_MEANING = "whether a kink lies within 1 % in some input, so that slopes are one-sided"
LABELS = (
    *(
        SampleColumn(name_label(dim), "label", "", words, "string")
        for dim, words in LABELLED.items()
    ),
    SampleColumn("slice", "label", "", SLICE_MEANING, "int64"),
)
LEARNT = (EPOCH, *TARGETS)
ANSWERS = (
    SampleColumn("feasible", "target", "", DERIVED["feasible"].long_name, "bool"),
    SampleColumn("defined", "mark", "", "whether the configuration can exist", "bool"),
    SampleColumn("limit_names", "answer", "", "limits and marks, separated by ', '", "string"),
    *(
        _describe_output(name, "answer")
        for name in ("replicas", "group_size", "segment_count", "global_batch")
    ),
)
NEAR_KINK = SampleColumn("near_kink", "mark", "", KINK_MEANING, "bool")


def list_columns(
    inputs: Iterable[str], splits: Iterable[str], outputs: Iterable[str] = ()
) -> tuple[SampleColumn, ...]:
    """List all columns in order. inputs: parameters with slopes. outputs: requested variables."""
    slopes = [
        SampleColumn(
            name_slope(target, parameter),
            "gradient",
            "1",
            f"d log {target} / d log {parameter}",
            "float32",
        )
        for target in LEARNT
        for parameter in inputs
    ]
    return (
        *LABELS,
        *(
            SampleColumn(name, "feature", feature.unit, feature.meaning, "float64")
            for name, feature in FEATURES.items()
        ),
        *map(_describe_output, (*LEARNT, *outputs)),
        *ANSWERS,
        *slopes,
        NEAR_KINK,
        *(
            SampleColumn(name_split(name), "split", "", f"train or test, {SPLITS[name]}", "string")
            for name in splits
        ),
    )


def name_slope(target: str, parameter: str) -> str:
    """Name the column of d log target / d log parameter."""
    return f"elasticity_{target}_{parameter}"
