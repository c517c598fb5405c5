"""The command that prints JSON schemas. As in `sweep.cli.main`, heavy imports are inside it."""

from typing import Annotated, Any

import typer

from grids.reading.errors import InputError, shorten, suggest_name

app = typer.Typer()

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
