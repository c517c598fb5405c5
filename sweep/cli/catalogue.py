"""Commands that list the catalogue. As in `sweep.cli.main`, heavy imports are inside them."""

from typing import Annotated

import typer

from grids.reading.errors import InputError
from sweep.cli.shared_options import Form

app = typer.Typer()


@app.command()
def models(
    name: Annotated[
        str | None, typer.Argument(help="One network: a catalogue name or a file.")
    ] = None,
    form: Form = "table",
) -> None:
    """Network architectures of the catalogue."""
    from sweep.questions.catalogue import list_models
    from sweep.show.entries import show_entries

    show_entries(list_models(name), form)


@app.command()
def datasets(
    name: Annotated[
        str | None, typer.Argument(help="One data set: a catalogue name or a file.")
    ] = None,
    form: Form = "table",
) -> None:
    """Data sets of the catalogue."""
    from sweep.questions.catalogue import list_datasets
    from sweep.show.entries import show_entries

    show_entries(list_datasets(name), form)


@app.command()
def systems(
    name: Annotated[
        str | None, typer.Argument(help="One machine: a catalogue name or a file.")
    ] = None,
    yaml: Annotated[
        bool,
        typer.Option(
            "--yaml", help="Print it as a file to change into your own, with explanations."
        ),
    ] = False,
    form: Form = "table",
) -> None:
    """Machines of the catalogue."""
    from grids.entries.yamltext import format_entry
    from sweep.questions.catalogue import find_system, list_systems
    from sweep.show.entries import show_entries

    if not yaml:
        show_entries(list_systems(name), form)
        return
    if name is None:
        raise InputError(
            "expected the name of a machine", where="--yaml", advice="such as 'systems abci --yaml'"
        )
    if form != "table":
        raise InputError("expected one form, got two", where="--yaml", advice="omit --format")
    head = "In brackets: the unit of a bare number. Others are written, such as 12.5 GB/s or 40 us."
    print(format_entry(find_system(name), head), end="")


@app.command()
def strategies(
    name: Annotated[str | None, typer.Argument(help="One strategy.")] = None,
    form: Form = "table",
) -> None:
    """Strategies: what they divide, and how far they scale."""
    from sweep.questions.catalogue import list_strategies
    from sweep.show.entries import show_entries

    show_entries(list_strategies(name), form)


@app.command()
def parameters(
    name: Annotated[str | None, typer.Argument(help="One parameter.")] = None,
    form: Form = "table",
) -> None:
    """Parameters that a spec may fix or sweep: units, defaults, uncertainty and sources."""
    from sweep.questions.catalogue import list_parameters
    from sweep.show.entries import show_entries

    show_entries(list_parameters(name), form)
