"""Answers about whole cubes: `status` and `diff`."""

from typing import Annotated, Any, NotRequired, TypedDict

from sweep.answers.types.facts import AnswerType, Fact

Records = list[dict[str, Any]]


class Status(TypedDict):
    """Progress of a cube; with `--verify` also its damaged files."""

    store: Annotated[str, Fact("path or URL of the cube")]
    name: Annotated[str, Fact("the name in the spec")]
    complete: Annotated[bool, Fact("whether all blocks are done and no file is missing")]
    blocks: Annotated[int, Fact("blocks of the cube")]
    blocks_done: Annotated[int, Fact("finished blocks")]
    summaries_missing: Annotated[int, Fact("finished blocks without their summary")]
    cells: Annotated[int, Fact("cells of the cube")]
    bytes: Annotated[int, Fact("size of the cube's variables, uncompressed", "B", scaled=True)]
    damaged: NotRequired[
        Annotated[Records, Fact("damaged files: variable, file, what is wrong, cells, block")]
    ]
    left: NotRequired[
        Annotated[str, Fact("why done-marks could not be cleared; null: they were")] | None
    ]


class Difference(TypedDict):
    """Differences between two cubes."""

    same: Annotated[bool, Fact("whether both have the same cells with the same answers")]
    cells: Annotated[int, Fact("cells that both cubes have")]
    compared: Annotated[int, Fact("shared cells that are finished in both")]
    inputs: Annotated[Records, Fact("inputs that differ: key, first, second")]
    versions: Annotated[Records, Fact("versions that differ: key, first, second")]
    axes: Annotated[Records, Fact("axes that differ: axis, shared, only_first, only_second")]
    variables: Annotated[
        dict[str, Any], Fact("variables that only one cube has: only_first, only_second")
    ]
    answers: Annotated[
        Records, Fact("one row per variable: changed cells, ratios of second to first, where")
    ]
    feasibility: (
        Annotated[
            dict[str, Any], Fact("numbers of cells: changed, became_feasible, became_infeasible")
        ]
        | None
    )
    winners: Annotated[
        Records,
        Fact("PE counts, and values of machine parameters, where the fastest strategy differs"),
    ]
    notes: Annotated[list[str], Fact("notes on unfinished cubes")]


ANSWERS = {"status": AnswerType(Status, record=True), "diff": AnswerType(Difference, record=True)}
