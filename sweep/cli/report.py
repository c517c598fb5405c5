"""The command that writes a report. As in `sweep.cli.main`, heavy imports are inside it."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.spaces import SpaceCommand
from sweep.cli.subjects import Subject
from sweep.errors import NothingFeasibleError

app = typer.Typer()


@app.command(cls=SpaceCommand)
def report(
    context: typer.Context,
    output: Annotated[Path, typer.Option("--output", "-o", help="Such as report.html.")],
) -> None:
    """Write the answers of a cube, or of a design space, as one HTML page to send."""
    from sweep.calibration.write import expect_folder

    expect_folder(output)
    subject: Subject = context.obj.read()
    from sweep.report.contents import collect_report
    from sweep.report.page import write_page

    try:
        contents = collect_report(subject.source, subject.selection, subject.max_global_batch)
    except NothingFeasibleError as error:
        end(str(error), NOTHING_FEASIBLE)
    contents.notes.extend(subject.notes)
    write_page(contents, output, shlex.join(["paradl", *sys.argv[1:]]))
