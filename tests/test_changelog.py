"""Public names change only with an entry of the changelog, so that users can look up what moved."""

import re
from pathlib import Path

import pytest
import typer

import paradl
from paradl.sweep.cli.main import app

TEXT = (Path(__file__).parents[1] / "CHANGELOG.md").read_text()
SECTION = TEXT.split("\n## ")[1]  # of the release being made
# Those of the release before it, 0.2.0: to be written anew with each release.
RELEASED = set((Path(__file__).parent / "data" / "released_names.txt").read_text().splitlines())


def list_commands(group: typer.Typer) -> set[str]:
    """List the commands of the command line, with those of groups: `surrogate train`."""
    root = typer.main.get_command(group)
    commands = set()
    for name, command in vars(root)["commands"].items():
        inner = vars(command).get("commands")
        commands |= {f"{name} {word}" for word in inner} if inner else {name}
    return commands


FUNCTIONS = {f"paradl.{name}" for name in paradl.__all__}
COMMANDS = {f"paradl {name}" for name in list_commands(app)}


@pytest.mark.parametrize("name", sorted((FUNCTIONS | COMMANDS) ^ RELEASED))
def test_names_that_changed_have_an_entry(name):
    assert re.search(rf"`{re.escape(name)}\b[^`]*`", SECTION)


def test_names_that_were_added_are_there():
    entries = SECTION.partition("### Added")[2].partition("### Changed")[0]
    named = set(re.findall(r"`(paradl\.\w+)", entries))
    assert named
    assert named <= FUNCTIONS


def test_an_entry_is_a_line():
    for line in [line for line in TEXT.splitlines() if line.startswith(("- ", "  "))]:
        assert line.startswith("- "), line
        assert len(line) <= 170, line
