"""The page of a report: of `paradl report`, or beside the answer of another question."""

import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Option

from grids.reading.textfile import expect_folder
from sweep.cli.options import OBJECTIVES, parse_price
from sweep.cli.spaces import Subject

if TYPE_CHECKING:
    from sweep.answers.types.fitting import FitAnswer

PageOption = Annotated[
    Path | None,
    Option(
        "--report",
        metavar="FILE",
        help="Also write a page with charts, such as report.html (paradl report).",
    ),
]


def expect_page(path: Path | None) -> None:
    """Check that a page can be written, before slow questions. InputError: its folder is missing.

    RunError: a library that pages need is missing.
    """
    if path is None:
        return

    expect_folder(path)
    import_module("sweep.report")


def write_page_of_layouts(
    answer: "FitAnswer", path: Path, model: str, system: str, calibration: str | None
) -> None:
    """Write the page of the layouts that fit."""
    from sweep.report.layouts import make_layout_grid

    grid = make_layout_grid(answer, model, system, calibration)
    data = grid.datasets[0]
    ties = sum(len(row["same"]) for row in answer["layouts"])
    slower = answer["ranked"] - len(answer["layouts"]) - ties
    notes = [
        f"an epoch is {data.samples:,} sequences of {answer['length']:,} tokens ({data.name})",
        *([f"{ties:,} layouts are left out that tie with others"] if ties else []),
        *([f"{slower:,} slower layouts are left out"] if slower else []),
    ]
    write_page_of(Subject(grid, {}, None, None, quiet=True, notes=notes), path)


def write_page_of(
    subject: Subject,
    path: Path | None,
    objective: str = "epoch-time",
    price: list[str] | None = None,
) -> None:
    """Write the page of a question, if there is a path.

    NothingFeasibleError: no configuration is feasible.
    """
    if path is None:
        return
    from sweep.report.contents import collect_report
    from sweep.report.page import write_page

    contents = collect_report(
        subject.source,
        subject.selection,
        subject.max_global_batch,
        OBJECTIVES[objective],
        parse_price(price),
    )
    contents.notes.extend(subject.notes)
    write_page(contents, path, write_command())


def write_command() -> str:
    """Write the command that is running, as one would type it again."""
    return shlex.join(["paradl", *sys.argv[1:]])
