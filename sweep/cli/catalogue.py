"""Commands that list the catalogue, and print schemas."""

from pkgutil import resolve_name
from typing import Annotated

from typer import Argument, Option, Typer

from paradl.grids.reading.errors import InputError, shorten, suggest_name
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import make_group
from paradl.sweep.text.data import print_json

app = Typer()
listing = make_group("Entries of the catalogue.")


def _add_listing(kind: str, entry: str, words: str) -> None:
    """Add a command that lists one kind of entries, or a single entry."""

    @listing.command(kind, help=words)
    def list_entries(
        name: Annotated[str | None, Argument(help=f"Show only this {entry}.")] = None,
        form: options.Form = "table",
    ) -> None:
        from paradl.sweep.questions import catalogue
        from paradl.sweep.text.catalogue import show_entries

        show_entries(getattr(catalogue, f"list_{kind}")(name), form)


# In the order of `paradl list --help`, so these calls stand between the other commands.
_add_listing("models", "network, a catalogue name or a file", "Networks.")
_add_listing("datasets", "data set, a catalogue name or a file", "Data sets.")


@listing.command()
def systems(
    name: Annotated[str | None, Argument(help="Only this machine: a name or a file.")] = None,
    yaml: Annotated[bool, Option("--yaml", help="Print it as a file to edit.")] = False,
    form: options.Form = "table",
) -> None:
    """Machines."""
    from paradl.grids.entries.yamltext import format_entry
    from paradl.sweep.questions.catalogue import find_system, list_systems
    from paradl.sweep.text.catalogue import show_entries

    if not yaml:
        show_entries(list_systems(name), form)
        return
    if name is None:
        raise InputError(
            "expected the name of a machine",
            where="--yaml",
            advice="such as 'list systems abci --yaml'",
        )
    # YAML is a format of its own.
    if form != "table":
        raise InputError("cannot be combined with --format", where="--yaml", advice="omit one")
    head = "In brackets: the unit of a bare number. Others are written, such as 12.5 GB/s or 40 us."
    print(format_entry(find_system(name), head), end="")


_add_listing("strategies", "strategy", "Strategies: what they divide, how far they scale.")
_add_listing(
    "parameters", "parameter", "Parameters of a spec: units, defaults, uncertainty, sources."
)


# Files that users write, in YAML or JSON; the last two are CSV, of which a row is described.
FORMS = {
    "spec": "grids.spec:Spec",
    "model": "grids.models.architecture:ModelFile",
    "system": "grids.entries.systems:System",
    "dataset": "grids.entries.datasets:Dataset",
    "calibration": "grids.entries.calibration:CalibrationFile",
    "convergence": "grids.convergence.entry:Convergence",
    "graph": "grids.graphs.graphfile:PlainGraph",
    "mapping": "sweep.measured.run_folder:RunMapping",
    "epochs": "grids.convergence.points:MeasuredPoint",
    "runs": "sweep.answers.types.runs:RunColumns",
}


@app.command()
def schema(
    of: Annotated[
        list[str] | None,
        Argument(help=f"A command, or a file: {', '.join(FORMS)}.  [default: spec]"),
    ] = None,
    answers: Annotated[bool, Option("--answers", help="Print those of all commands.")] = False,
) -> None:
    """JSON schemas of answers, and of files that you write."""
    name = " ".join(of or ()) or ("" if answers else "spec")
    if name in FORMS:
        from pydantic import TypeAdapter

        print_json(TypeAdapter(resolve_name(f"paradl.{FORMS[name]}")).json_schema())
        return
    from paradl.sweep.answers.types.schemas import build_schemas

    schemas = build_schemas()
    # A group, or a command with several answers, has a schema for each.
    head = f"{name} " if name else ""
    chosen = {verb: schemas[verb] for verb in schemas if f"{verb} ".startswith(head)}
    if not chosen:
        advice = suggest_name(name, {*FORMS, *(verb.partition(" --")[0] for verb in schemas)})
        raise InputError(f"no schema of {shorten(name)}", advice=advice)
    print_json(chosen.get(name, chosen))
