"""What agents read first, docs/agents.md and docs/llms.txt, names commands, keys and pages."""

import re
import shlex
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer

from paradl.grids.reading.errors import InputError
from paradl.sweep.answers.types.schemas import build_schemas
from paradl.sweep.cli.catalogue import FORMS
from paradl.sweep.cli.main import app

DOCS = Path(__file__).parents[1] / "docs"
LLMS = (DOCS / "llms.txt").read_text()
SECTIONS = dict(
    section.split("\n", 1) for section in (DOCS / "agents.md").read_text().split("\n## ")
)
SCHEMAS = build_schemas()
CODE = re.compile(r"`([^`]+)`")
# Pages that only lead to others.
LISTS = {"index.md", "how-to.md", "explanation.md", "reference.md"}


def read_rows(title: str) -> list[list[str]]:
    """The cells of a section's table, without its head."""
    lines = [line for line in SECTIONS[title].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines[2:]]


def parse(arguments: list[str]) -> None:
    """Parse a command, completed by the network that most need; SystemExit: no such command."""
    command: Any = typer.main.get_group(app)
    while hasattr(command, "commands"):
        command, arguments = command.commands[arguments[0]], arguments[1:]
    asked = {option for parameter in command.params for option in parameter.opts}
    given = [f"{option}=x" for option in ("--model", "--system") if option in asked]
    with suppress(InputError, SystemExit):  # names that stand for the reader's own
        command.make_context("paradl", [*given, *arguments])


def holds(schema: dict[str, Any], path: str) -> bool:
    """True if an answer of the schema has a key, such as `rows.anomaly.cause`."""
    for name in path.split("."):
        schema = schema.get("items", schema).get("properties", {}).get(name, {})
    return bool(schema)


@pytest.mark.parametrize(
    ("question", "commands", "keys"), read_rows("Which question is which command")
)
def test_a_question_is_a_command_with_these_keys(question, commands, keys):
    verbs = set()
    for command in CODE.findall(commands):
        words = shlex.split(command)
        if not words[0].startswith("--"):
            parse(words)
            verbs.add(max((verb for verb in SCHEMAS if {*verb.split()} <= {*words}), key=len))
    assert verbs, question
    for key in CODE.findall(keys):
        assert any(holds(SCHEMAS[verb], key) for verb in verbs), key


def test_every_command_with_an_answer_that_stands_alone_has_its_question():
    asked = " ".join(commands for _, commands, _ in read_rows("Which question is which command"))
    verbs = {verb.split()[0] for verb in SCHEMAS} - {"probe", "surrogate"}
    assert [verb for verb in verbs if f"`{verb}" not in asked] == []


def test_every_form_of_files_has_its_row():
    named = [
        name for _, names, _ in read_rows("Files that you write") for name in CODE.findall(names)
    ]
    assert sorted(named) == sorted(FORMS)


def test_the_page_is_short():
    assert len((DOCS / "agents.md").read_text().splitlines()) <= 150


def test_llms_txt_has_the_form_of_one():
    title, summary, *_ = LLMS.split("\n\n")
    assert title == "# paradl"
    assert all(line.startswith("> ") for line in summary.splitlines())
    for section in LLMS.split("\n## ")[1:]:
        lines = section.strip().splitlines()[2:]
        assert lines
        assert all(re.fullmatch(r"- \[.+\]\(.+\): .+", line) for line in lines)


def test_llms_txt_links_to_every_page():
    links = re.findall(r"\]\(([^)]+)\)", LLMS)
    assert {*links} == {path.name for path in DOCS.glob("*.md")} - LISTS
    assert len({*links}) == len(links)


def test_commands_of_llms_txt_are_commands():
    commands = re.findall(r"^    paradl (.+)$|`paradl ([^`]+)`", LLMS, re.MULTILINE)
    assert commands
    for command in map("".join, commands):
        if not command.startswith("COMMAND"):
            parse(shlex.split(command))
