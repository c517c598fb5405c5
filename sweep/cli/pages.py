"""The page of a report: of `paradl report`, or beside the answer of another question."""

import shlex
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated

from typer import Option

from sweep.cli.options import OBJECTIVES, parse_price
from sweep.cli.spaces import Subject

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
    from grids.reading.textfile import expect_folder

    expect_folder(path)
    import_module("sweep.report")


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
    write_page(contents, path, shlex.join(["paradl", *sys.argv[1:]]))
