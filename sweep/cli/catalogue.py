"""Commands that list the catalogue, and print schemas; heavy imports are in them, as in `main`."""

from typing import Annotated, Any

import typer

from grids.reading.errors import InputError, shorten, suggest_name
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


FORMS = ("spec", "model")


@app.command()
def schema(
    of: Annotated[
        str | None,
        typer.Argument(
            help="spec (the default), model (a file with your own network), or a verb (its answer)."
        ),
    ] = None,
    answers: Annotated[
        bool,
        typer.Option("--answers", help="Describe what verbs print with --format json, by verb."),
    ] = False,
) -> None:
    """JSON schemas of specs and model files, for editors; of answers, for agents."""
    from sweep.show.data import print_json

    name = of or ("" if answers else "spec")
    if answers and name in FORMS:
        raise InputError(f"{name} is not a verb", where="--answers", advice=f"paradl schema {name}")
    print_json(_describe_file(name) if name in FORMS else _describe_answers(name))


def _describe_file(form: str) -> dict[str, Any]:
    from grids.modelfile import describe_model_file
    from grids.spec import Spec

    return Spec.model_json_schema() if form == "spec" else describe_model_file()


def _describe_answers(verb: str) -> dict[str, Any]:
    """The schema of a verb's answer; without a verb all of them, by verb. InputError: unknown."""
    from sweep.answers.types.schemas import build_schemas

    schemas = build_schemas()  # types import no question, and so no JAX
    if not verb:
        return schemas
    if verb not in schemas:
        raise InputError(
            f"no schema of {shorten(verb)}", advice=suggest_name(verb, (*schemas, *FORMS))
        )
    return schemas[verb]
