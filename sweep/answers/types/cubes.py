"""The answers of `status` about a cube, and of `diff` about two."""

from typing import Annotated, Any, NotRequired, TypedDict

from sweep.answers.types.facts import AnswerType, Fact

Records = list[dict[str, Any]]


class Status(TypedDict):
    """Progress of a cube; with `--verify` what of it is damaged."""

    store: Annotated[str, Fact("the place of the cube")]
    name: Annotated[str, Fact("what the spec calls itself")]
    complete: Annotated[bool, Fact("whether all is done and there")]
    blocks: Annotated[int, Fact("blocks of the cube")]
    blocks_done: Annotated[int, Fact("blocks that are done")]
    summaries_missing: Annotated[int, Fact("summaries that finished blocks lack")]
    cells: Annotated[int, Fact("cells of the cube")]
    bytes: Annotated[int, Fact("size of the cube's variables, uncompressed", "B", scaled=True)]
    damaged: NotRequired[
        Annotated[Records, Fact("damaged files: variable, file, what, cells, block")]
    ]
    left: NotRequired[
        Annotated[str, Fact("why marks could not be cleared; null: they were")] | None
    ]


class Difference(TypedDict):
    """Differences between two cubes."""

    same: Annotated[bool, Fact("whether both have the same cells with the same answers")]
    cells: Annotated[int, Fact("cells that both have")]
    compared: Annotated[int, Fact("cells of finished blocks of both")]
    inputs: Annotated[Records, Fact("rows of key, first, second: inputs that differ")]
    versions: Annotated[Records, Fact("rows of key, first, second: versions that differ")]
    axes: Annotated[
        Records, Fact("rows of axis, shared, only_first, only_second: axes that differ")
    ]
    variables: Annotated[
        dict[str, Any], Fact("only_first, only_second: variables that one cube has")
    ]
    answers: Annotated[
        Records, Fact("a row a variable: changed cells, ratios of second to first, where")
    ]
    feasibility: (
        Annotated[
            dict[str, Any], Fact("how many cells changed, became_feasible, became_infeasible")
        ]
        | None
    )
    winners: Annotated[
        Records,
        Fact("PE counts, and values of swept machine parameters, with another fastest strategy"),
    ]
    notes: Annotated[list[str], Fact("cubes that are not finished")]


ANSWERS = {"status": AnswerType(Status, record=True), "diff": AnswerType(Difference, record=True)}
