"""Answers about whole cubes: `status` and `diff`."""

from typing import Annotated, Any, NotRequired, TypedDict

from paradl.sweep.answers.types.facts import AnswerType, Fact

Records = list[dict[str, Any]]


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
    damaged: NotRequired[Annotated[Records, "damaged files: what is wrong, and which cells"]]
    left: NotRequired[Annotated[str, "why done-marks could not be cleared; null: they were"] | None]


class Difference(TypedDict):
    """Differences between two cubes."""

    same: Annotated[bool, "whether both have the same cells with the same answers"]
    cells: Annotated[int, "cells that both cubes have"]
    compared: Annotated[int, "shared cells that are finished in both"]
    inputs: Annotated[Records, "inputs that differ: key, first, second"]
    versions: Annotated[Records, "versions that differ: key, first, second"]
    axes: Annotated[Records, "axes that differ: axis, shared, only_first, only_second"]
    variables: Annotated[dict[str, Any], "variables that only one cube has"]
    answers: Annotated[Records, "changed cells and ratios of each variable"]
    feasibility: Annotated[dict[str, Any], "numbers of cells whose limits changed"] | None
    winners: Annotated[Records, "where the fastest strategy differs"]
    notes: Annotated[list[str], "notes on unfinished cubes"]


ANSWERS = {"status": AnswerType(Status, record=True), "diff": AnswerType(Difference, record=True)}
