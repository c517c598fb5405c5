"""Commands that make a page. As in `sweep.cli.main`, heavy imports are inside them."""

import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Context, Option, Typer

from sweep.cli import options
from sweep.cli.commands import take_options
from sweep.cli.pages import expect_page, write_command, write_page_of
from sweep.cli.spaces import SpaceCommand, SpaceOptions, Subject

app = Typer()


@app.command(cls=SpaceCommand)
def report(
    context: Context,
    output: Annotated[Path, Option("--output", "-o", help="Such as report.html.")],
    objective: options.AnObjective = "epoch-time",
    price: options.Prices = None,
) -> None:
    """Write the answers of a cube, or of a design space, as one HTML page to send."""
    expect_page(output)
    write_page_of(context.obj.read(objective), output, objective, price)


@app.command(cls=take_options(SpaceOptions, is_patient=False))
def explore(
    context: Context,
    port: Annotated[int, Option(min=0, max=65535, help="0: any that is free.")] = 0,
    browser: Annotated[bool, Option(help="Open the page in a browser.")] = True,
) -> None:
    """Serve the page of a report on this machine, with cells read and computed as you choose."""
    subject: Subject = context.obj.read()
    from sweep.report.explorer import Explorer, serve

    space = (subject.source, subject.selection, subject.max_global_batch)
    explorer = Explorer(*space, write_command())
    _ = explorer.page  # its first answer, or why there is none
    url, run = serve(explorer, port)
    print(url, flush=True)
    if browser:
        webbrowser.open(url)
    run()
