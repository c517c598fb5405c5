"""Public names change only with an entry of the changelog, so that users can look up what moved."""

import re
from pathlib import Path

import pytest
import typer

import paradl
from paradl.sweep.cli.main import app

TEXT = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
# The release being made, and the names of the one before it (0.1.0), to be replaced with each.
SECTION = TEXT.split("\n## ")[1]
RELEASED_FUNCTIONS = {
    "InputError",
    "RunError",
    "best",
    "calibrate",
    "compare",
    "explain",
    "limits",
    "open_dataset",
    "predict",
    "run",
}
RELEASED_COMMANDS = {
    "best",
    "calibrate",
    "compare",
    "datasets",
    "explain",
    "limits",
    "models",
    "predict",
    "schema",
    "status",
    "strategies",
    "sweep",
    "systems",
}


def list_commands(group: typer.Typer) -> set[str]:
    """List the commands of the command line, with those of groups: `surrogate train`."""
    root = typer.main.get_command(group)
    commands = set()
    for name, command in vars(root)["commands"].items():
        inner = vars(command).get("commands")
        commands |= {f"{name} {word}" for word in inner} if inner else {name}
    return commands


@pytest.mark.parametrize("name", sorted({*paradl.__all__} ^ RELEASED_FUNCTIONS))
def test_functions_that_changed_have_an_entry(name):
    assert f"`paradl.{name}`" in SECTION


@pytest.mark.parametrize("name", sorted(list_commands(app) ^ RELEASED_COMMANDS))
def test_commands_that_changed_have_an_entry(name):
    assert re.search(rf"`(paradl )?{name}\b[^`]*`", SECTION)


def test_functions_of_entries_are_there():
    entries = SECTION.partition("### Added")[2].partition("### Changed")[0]
    named = set(re.findall(r"`paradl\.(\w+)", entries))
    assert len(named) > 20
    assert named <= {*paradl.__all__}


def test_an_entry_is_a_line():
    lines = [line for line in SECTION.splitlines() if line.startswith(("- ", "  "))]
    assert len(lines) > 50
    for line in lines:
        assert line.startswith("- "), line
        assert len(line) <= 170, line
