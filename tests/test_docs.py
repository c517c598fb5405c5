"""Commands in the documentation exist, with the options that they are given."""

import re
import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import typer

from paradl.grids.reading.errors import InputError
from paradl.sweep.cli.commands import spell_out
from paradl.sweep.cli.main import app

ROOT = Path(__file__).parents[1]
PAGES = [*sorted((ROOT / "docs").glob("*.md")), *(ROOT / "docs" / "errors").glob("*.md")]
BLOCK = re.compile(r"```\w*\n(.*?)```", re.S)
# A command until a comment, a redirection or another command.
COMMAND = re.compile(r"^\s*(?:\$ |.* && )?(?:\S*/)?paradl (.*?)\s*(?:$|  #| (?:2>|>|\||&&|;) ?)")


def list_commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of each command in the blocks of a page."""
    for block in BLOCK.findall(page.read_text()):
        for line in block.replace("\\\n", " ").splitlines():
            result = COMMAND.match(line)
            if result and "..." not in result[1]:
                yield spell_out(shlex.split(result[1]))


@pytest.fixture(scope="module")
def group() -> Any:
    """The commands, built once: 20 ms each time."""
    return typer.main.get_group(app)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md"], ids=lambda page: page.stem)
def test_commands_exist(page, group):
    for arguments in list_commands(page):
        command = group
        while hasattr(command, "commands") and arguments:
            command, arguments = command.commands[arguments[0]], arguments[1:]
        with suppress(InputError, SystemExit):  # a file that the page makes; --help
            command.make_context("paradl", arguments)


def test_contributing_is_short_and_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text()
    assert len(text.encode()) < 8000
    prose = re.sub(r"```.*?```", "", text, flags=re.S)
    paths = [path for path in re.findall(r"`([\w./*-]+)`", prose) if "/" in path or ".md" in path]
    assert paths
    assert [path for path in paths if not [*ROOT.glob(path)]] == []
