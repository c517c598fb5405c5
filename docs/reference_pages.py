"""Pages of the reference, generated from the code: commands, spec, parameters, answers, Python."""

import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

import paradl
from paradl.sweep.accessor import QUESTIONS, Accessor
from paradl.sweep.cli.catalogue import FORMS
from paradl.sweep.cli.main import app


def write_reference(folder: Path) -> None:
    """Write the pages; one that has not changed keeps its time, so that Sphinx skips it."""
    folder.mkdir(exist_ok=True)
    pages = {
        "commands": ("The command line", describe_commands()),
        "spec": ("The spec", describe_schema("spec")),
        "model": ("Model files", describe_schema("model")),
        "files": ("Other files", describe_files()),
        "parameters": ("Parameters", describe_parameters()),
        "answers": ("Answers", describe_answers()),
        "functions": ("Python functions", describe_functions()),
        "accessor": ("The accessor", describe_accessor()),
    }
    for name, (title, lines) in pages.items():
        path, text = folder / f"{name}.md", "\n".join([f"# {title}", "", *lines, ""])
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


def ask(*words: str) -> Any:
    """Return the JSON that a paradl command prints."""
    command = [sys.executable, "-m", "paradl", *words]
    return json.loads(subprocess.run(command, capture_output=True, check=True, text=True).stdout)


def describe_commands() -> Iterator[str]:
    """List the help of every command."""
    yield "Exit codes: 0 done, 1 failed, 2 bad input, 3 an assertion failed, 4 nothing feasible."
    root: Any = typer.main.get_command(app)
    context = root.context_class(root, info_name="paradl")
    for name in root.list_commands(context):
        yield from describe_command(root.get_command(context, name), context, name)


def describe_command(command: Any, parent: Any, name: str) -> Iterator[str]:
    """List the help of a command, and of the commands below it."""
    context = type(parent)(command, info_name=name, parent=parent)
    yield from ("", f"## {context.command_path}", "", "```text", command.get_help(context), "```")
    for inner in getattr(command, "commands", ()):
        yield from describe_command(command.commands[inner], context, inner)


def describe_schema(of: str) -> Iterator[str]:
    """Tabulate the keys of a file, and of the parts that it may have."""
    schema = ask("schema", of)
    yield f"Generated from `paradl schema {of}`, which editors can read."
    for name, part in {of: schema, **schema.get("$defs", {})}.items():
        # Others are choices among kinds, which the page about model files describes.
        if "properties" in part:
            yield from ("", f"## {name}", "", part.get("description", ""), *describe_keys(part))


def describe_files() -> Iterator[str]:
    """Tabulate the keys, or columns, of the other files that users write."""
    for name in FORMS:
        if name not in ("spec", "model"):
            yield from describe_schema(name)


def describe_keys(schema: dict[str, Any]) -> Iterator[str]:
    """Tabulate the properties of an object."""
    required = schema.get("required", ())
    yield from ("", "| key | value | default | meaning |", "|---|---|---|---|")
    for key, value in schema["properties"].items():
        default = "required" if key in required else json.dumps(value.get("default"))
        yield write_row(f"`{key}`", name_type(value), default, value.get("description", ""))


def name_type(value: dict[str, Any]) -> str:
    """Name the types that a JSON schema allows."""
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(map(name_type, value["anyOf"])))
    if "enum" in value:
        return ", ".join(f"`{choice}`" for choice in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if "$ref" in value:
        return str(value["$ref"].rpartition("/")[2])
    if value.get("type") == "array" and "items" in value:
        return f"list of {name_type(value['items'])}"
    kind = value.get("type", "")
    return kind if isinstance(kind, str) else " or ".join(kind)


def describe_parameters() -> Iterator[str]:
    """Tabulate the parameters of both oracles."""
    yield "Each may be fixed in a spec, or be an axis (`paradl list parameters`). Units are SI."
    yield from (
        "",
        "| parameter | unit | oracle | default | spread | meaning |",
        "|---|---|---|---|---|---|",
    )
    for row in ask("list", "parameters", "--format", "json"):
        cells = (row[name] for name in ("unit", "oracle", "value", "spread", "meaning"))
        yield write_row(f"`{row['parameter']}`", *cells)


def describe_answers() -> Iterator[str]:
    """Tabulate the keys of each verb's JSON; what an axis or a parameter adds is left out."""
    yield "Keys of `--format json`, and columns of `--format csv`."
    parameters = {row["parameter"] for row in ask("list", "parameters", "--format", "json")}
    for verb, schema in ask("schema", "--answers").items():
        row = schema.get("items", schema)
        yield from ("", f"## {verb}", "", "| key | type | unit | meaning |", "|---|---|---|---|")
        for key, value in row["properties"].items():
            if key not in parameters or key in ("pe", "batch"):
                unit, meaning = value.get("unit", ""), value.get("description", "")
                yield write_row(f"`{key}`", name_type(value), unit, meaning)


def describe_functions() -> Iterator[str]:
    """List the functions of `paradl` with their signatures and docstrings."""
    yield "After `import paradl`; [by topic](../python.md#every-name)."
    for name in paradl.__all__:
        kind = "function" if inspect.isfunction(getattr(paradl, name)) else "class"
        yield from ("", f"## {name}", "", *describe_member(kind, name, getattr(paradl, name)))


def describe_accessor() -> Iterator[str]:
    """List the quantities, questions and plots of `ds.paradl`."""
    asked = ", ".join(f"[`{name}`](functions.md#{name})" for name in QUESTIONS)
    yield "After `import paradl`, every Dataset of a cube, whole or sliced, has `ds.paradl`. These"
    yield f"questions take what the functions take after the cube: {asked}."
    yield ""
    yield from ("```{py:class} Accessor", ":module: paradl", "```")
    for name, member in inspect.getmembers(Accessor):
        if not name.startswith("_"):
            kind = "method" if callable(member) else "property"
            function = member.fget if isinstance(member, property) else member
            yield from ("", f"## {name}", "", *describe_member(kind, f"Accessor.{name}", function))


def describe_member(kind: str, name: str, member: Any) -> Iterator[str]:
    """Describe an object where other projects' pages can link to it (objects.inv)."""
    form = write_signature(member) if kind in ("function", "method") else ""
    yield f"````{{py:{kind}}} {name}{form}"
    yield from (":module: paradl", "", "```text", inspect.getdoc(member) or "", "```", "````")


def write_signature(function: Callable[..., Any]) -> str:
    """Return a signature: parameters but for `self`, and what is returned."""
    form = inspect.signature(function)
    parameters, starred = list[str](), False
    for parameter in form.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parameters.append("*")
        starred = parameter.kind in (parameter.VAR_POSITIONAL, parameter.KEYWORD_ONLY)
        parameters += write_parameter(parameter) if parameter.name != "self" else ()
    returned = shorten_types(inspect.formatannotation(form.return_annotation))
    return f"({', '.join(parameters)}) -> {returned}"


def write_parameter(parameter: inspect.Parameter) -> Iterator[str]:
    """Write a parameter; keywords that stand together, one by one."""
    (words,) = get_args(parameter.annotation)[:1] or (None,)
    if parameter.kind is not parameter.VAR_KEYWORD or words is None:
        yield shorten_types(str(parameter))
        return
    for name, kind in get_type_hints(words).items():
        yield f"{name}: {shorten_types(inspect.formatannotation(kind))} = None"


def shorten_types(text: str) -> str:
    """Drop modules, quotes of types, and addresses of functions, which change with each build."""
    text = re.sub(r"<function \S+ at \w+>", "...", text).replace("NoneType", "None")
    text = re.sub(r"\b(?:[A-Za-z_]\w*\.)+(?=[A-Za-z])", "", text)
    return re.sub(r"^(\w+: |)'([^']*)'", r"\1\2", text)


def write_row(*cells: object) -> str:
    """Write a row of a table; a bar would end a cell."""
    texts = (
        "" if cell is None else str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells
    )
    return f"| {' | '.join(texts)} |"
