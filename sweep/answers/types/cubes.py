"""Answers about cubes: `status`, and `diff` of two."""

from typing import Annotated, NotRequired, TypedDict

from paradl.sweep.answers.types import words
from paradl.sweep.answers.types.facts import AnswerType, Fact


class ValueSpan(TypedDict):
    """Values along a dimension, by their ends."""

    first: Annotated[str | float, "the first"]
    last: Annotated[str | float, "the last"]
    count: Annotated[int, "their number"]


class DamagedFile(TypedDict):
    """A file that is not what was written."""

    variable: Annotated[str, "what it is of"]
    file: Annotated[str, "its path in the store"]
    what: Annotated[str, "what is wrong"]
    cells: Annotated[dict[str, ValueSpan], "its cells, by dimension"]
    block: Annotated[int, "number of its block; null: of none"] | None


class Status(TypedDict):
    """Progress of a cube; with `--verify` also its damaged files."""

    store: Annotated[str, "path or URL of the cube"]
    name: Annotated[str, "the name in the spec"]
    complete: Annotated[bool, "whether all blocks are done and no file is missing"]
    blocks: Annotated[int, "blocks of the cube"]
    blocks_done: Annotated[int, "finished blocks"]
    summaries_missing: Annotated[int, "finished blocks without their summary"]
    cells: Annotated[int, "cells of the cube"]
    bytes: Annotated[int, Fact("size of the cube's variables, uncompressed", "B", scaled=True)]
    # With --verify.
    damaged: NotRequired[
        Annotated[list[DamagedFile], "damaged files: what is wrong, and which cells"]
    ]
    left: NotRequired[Annotated[str, "why done-marks could not be cleared; null: they were"] | None]


class ChangedInput(TypedDict):
    """An input, or a version, that differs."""

    key: Annotated[str, "its name"]
    first: Annotated[str, "of the first cube"] | None
    second: Annotated[str, "of the second cube"] | None


class ChangedAxis(TypedDict):
    """An axis that differs."""

    axis: Annotated[str, "its name"]
    shared: Annotated[int, "values that both have"]
    only_first: Annotated[list[str | float], Fact("values of the first alone", words.OF_PARAMETER)]
    only_second: Annotated[
        list[str | float], Fact("values of the second alone", words.OF_PARAMETER)
    ]


class OnlyVariables(TypedDict):
    """Variables that only one cube has."""

    only_first: Annotated[list[str], "of the first"]
    only_second: Annotated[list[str], "of the second"]


class ChangeFields(TypedDict):
    """How the answers of a variable differ."""

    changed: Annotated[int, "cells that both have, with other values"]
    only_first: Annotated[int, "cells that only the first has"]
    only_second: Annotated[int, "cells that only the second has"]
    median_ratio: Annotated[float, "median of second over first of changed cells"] | None
    largest_ratio: Annotated[float, "the ratio farthest from 1"] | None
    where: Annotated[dict[str, str | float], Fact("its cell", words.OF_PARAMETER)] | None


class ChangedVariable(ChangeFields):
    """A variable, and how its answers differ."""

    variable: Annotated[str, "its name"]


class ChangedLimits(TypedDict):
    """Numbers of cells whose limits changed."""

    changed: Annotated[int, "cells with other limits"]
    became_feasible: Annotated[int, "cells that became feasible"]
    became_infeasible: Annotated[int, "cells that became infeasible"]


class ChangedWinner(TypedDict):
    """A range of PE counts in which another strategy is the fastest."""

    model: words.Model
    dataset: words.Dataset
    system: words.System
    from_pe: Annotated[int, "its first PE count"]
    to_pe: Annotated[int, "its last PE count"]
    first: Annotated[str, "the fastest in the first cube; null: none is feasible"] | None
    second: Annotated[str, "the same in the second cube"] | None


class Difference(TypedDict):
    """Differences between two cubes."""

    same: Annotated[bool, "whether both have the same cells with the same answers"]
    cells: Annotated[int, "cells that both cubes have"]
    compared: Annotated[int, "shared cells that are finished in both"]
    inputs: Annotated[list[ChangedInput], "inputs that differ: key, first, second"]
    versions: Annotated[list[ChangedInput], "versions that differ: key, first, second"]
    axes: Annotated[list[ChangedAxis], "axes that differ: axis, shared, only_first, only_second"]
    variables: Annotated[OnlyVariables, "variables that only one cube has"]
    answers: Annotated[list[ChangedVariable], "changed cells and ratios of each variable"]
    feasibility: Annotated[ChangedLimits, "numbers of cells whose limits changed"] | None
    winners: Annotated[list[ChangedWinner], Fact("where the fastest strategy differs", open=True)]
    notes: Annotated[list[str], "notes on unfinished cubes"]


ANSWERS = {
    "status": AnswerType(Status, record=True),
    "diff": AnswerType(Difference, record=True),
}
