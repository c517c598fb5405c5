"""Commands that make a page. As in `sweep.cli.main`, heavy imports are inside them."""

import shlex
import sys
import webbrowser
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
    from grids.reading.textfile import expect_folder

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


class ServingCommand(SpaceCommand):
    """A command that waits for its reader."""

    is_patient = False


@app.command(cls=ServingCommand)
def explore(
    context: typer.Context,
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, typer.Option(help="Open the page in a browser.")] = True,
) -> None:
    """Serve the page of a report on this machine, with cells read and computed as you choose."""
    subject: Subject = context.obj.read()
    from sweep.report.explorer import Explorer, serve

    explorer = Explorer(subject.source, subject.selection, subject.max_global_batch)
    try:
        explorer.render()  # its first answer, or why there is none
    except NothingFeasibleError as error:
        end(str(error), NOTHING_FEASIBLE)
    url, run = serve(explorer, port)
    print(url, flush=True)
    if browser:
        webbrowser.open(url)
    run()
