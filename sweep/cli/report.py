"""The page of a report: written, served, or added to another question by `--report`.

As in `paradl.sweep.cli.main`, heavy imports are inside functions.
"""

import shlex
import sys
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Annotated

from typer import Context, Option, Typer

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import PAGES
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import take_options
from paradl.sweep.cli.spaces import SpaceOptions, Subject
from paradl.sweep.cli.values import parse_price, take_output
from paradl.sweep.engine.progress import report_waiting
from paradl.sweep.report import expect_report_libraries
from paradl.sweep.text.visible import tell

if TYPE_CHECKING:
    from paradl.sweep.text.sentences import Asked

app = Typer()

PageOption = Annotated[
    Path | None,
    take_output(PAGES, "--report", help="Also write a page of it.", expect=expect_report_libraries),
]


def write_page_of(
    subject: Subject,
    path: Path | None,
    objective: str = "epoch-time",
    price: list[str] | None = None,
    asked: "Asked | None" = None,
) -> None:
    """Write the page of a question, if there is a path.

    It comes before the printed answer, whose reader may close the pipe. asked: leads the page.
    NothingFeasibleError: no configuration is feasible.
    """
    if path is None:
        return
    from paradl.sweep.report.page import write_page
    from paradl.sweep.report.report import collect_report

    missing = subject.describe_missing()
    if missing and missing not in subject.notes:
        subject.note(missing, always=True)
    contents = collect_report(
        subject.source,
        subject.selection,
        subject.max_global_batch,
        options.OBJECTIVES[objective],
        parse_price(price),
        asked,
    )
    contents.notes.extend(subject.notes)
    write_page(contents, path, write_command())


def write_command() -> str:
    """Write the command that is running, as one would type it again."""
    return shlex.join(["paradl", *sys.argv[1:]])


@app.command(cls=take_options(SpaceOptions, is_patient=False))
def report(
    context: Context,
    output: Annotated[
        Path | None, take_output(PAGES, "--output", "-o", help="Such as report.html.")
    ] = None,
    served: Annotated[bool, Option("--serve", help="Serve it, computing what you choose.")] = False,
    port: Annotated[int, Option(min=0, max=65535, help="With --serve; 0: any that is free.")] = 0,
    browser: Annotated[bool, Option(help="With --serve, open the page in a browser.")] = True,
    objective: options.AnObjective = "epoch-time",
    price: options.Prices = None,
) -> None:
    """Write the answers as one HTML page to send, or serve it."""
    if served == (output is not None):
        raise InputError("expected one of --output and --serve", where="--output")
    expect_report_libraries()
    if output is None:
        options.refuse_given({"price": price}, "cannot be combined with --serve")
        _serve(context.obj, port, browser)
        return
    with report_waiting(silent=context.obj.quiet):
        write_page_of(context.obj.read(objective), output, objective, price)
    if not context.obj.quiet:
        tell(f"paradl: wrote {output}")


def _serve(space: SpaceOptions, port: int, browser: bool) -> None:
    """Serve the page on this machine until the user stops it."""
    subject = space.read()
    from paradl.sweep.report.explorer import Explorer, serve

    explorer = Explorer(
        subject.source, subject.selection, subject.max_global_batch, write_command()
    )
    _ = explorer.page  # its first answer, or why there is none
    url, run = serve(explorer, port)
    # In a pipe, the line would else wait until `run` returns.
    print(url, flush=True)
    with open_privately(url) if browser else nullcontext():
        run()


@contextmanager
def open_privately(url: str) -> Iterator[None]:
    """Open an address in a browser by a file that leads there, readable by this user alone.

    Every user of this machine can read the arguments of a browser, and so a token in them.
    """
    with NamedTemporaryFile("w", prefix="paradl-explore-", suffix=".html") as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0; url={escape(url)}">')
        file.flush()
        webbrowser.open(Path(file.name).as_uri())
        yield
