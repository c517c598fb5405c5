"""Commands, functions and names in the documentation exist; its examples import what they use."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pytest
import typer
import xarray as xr

import paradl
from paradl.grids.entries.software import SOFTWARE, Switches
from paradl.grids.reading.errors import InputError
from paradl.sweep.cli.commands import spell_out
from paradl.sweep.cli.main import app

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
TOPS = ("kernels", "grids", "sweep")
# Designs of rooms, beside their code.
DESIGNS = [path for top in TOPS for path in sorted((ROOT / top).rglob("DESIGN.md"))]
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md")), *sorted(DOCS.glob("errors/*.md"))]
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


of_each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)


@of_each_page
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


@pytest.fixture(scope="module")
def words() -> set[str]:
    """Words of all sources and tests."""
    files = (path for top in (*TOPS, "tests") for path in (ROOT / top).rglob("*.py"))
    return {word for path in files for word in re.findall(r"\w+", path.read_text())}


@pytest.mark.parametrize("page", DESIGNS, ids=lambda page: page.parent.name)
def test_designs_are_short_and_name_what_exists(page, words):
    text = page.read_text()
    assert len(text.encode()) <= 3500
    names = re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.S))
    paths = [name for name in names if re.match(rf"({'|'.join(TOPS)})/|.*\.(py|md)$", name)]
    assert paths
    top = page.relative_to(ROOT).parts[0]
    places = (page.parent, ROOT, ROOT / "tests", ROOT / "tests" / top)
    assert [path for path in paths if not any((place / path).exists() for place in places)] == []
    assert [name for name in names if name.isidentifier() and name not in words] == []


@of_each_page
def test_names_exist(page):
    for name in re.findall(r"(?<![\w./-])paradl(?:\.[A-Za-z_]\w*)+", page.read_text()):
        resolve_name(name)
    questions = dir(xr.Dataset().paradl)
    for name in re.findall(r"\bds(?:\.sel\(.*?\))?\.paradl\.(\w+)", page.read_text()):
        assert name in questions


def test_the_page_about_python_lists_every_name():
    names = re.findall(r"^\| `(\w+)` \|", (DOCS / "python.md").read_text(), re.M)
    assert sorted(names) == sorted(paradl.__all__)


def test_links_of_the_readme_lead_to_files():
    links = re.findall(r"\]\(([^)#]+)", (ROOT / "README.md").read_text())
    here = [link for link in links if not link.startswith(("https:", "../../actions/"))]
    assert here
    assert [link for link in here if not (ROOT / link).is_file()] == []


def test_examples_import_what_they_use(tmp_path):
    for page in PAGES:
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.S)
        (tmp_path / f"{page.stem}.py").write_text("\n".join(blocks))
    check = [sys.executable, "-m", "ruff", "check", "--isolated", "--no-cache", "--select", "F821"]
    run = subprocess.run([*check, tmp_path], capture_output=True, text=True)
    assert run.returncode == 0, run.stdout


def test_the_table_of_switches_is_that_of_software():
    text = (DOCS / "transformers.md").read_text()
    head, _, *lines = re.findall(r"(\| switch .*?)\n\n", text, re.S)[0].splitlines()
    _, _, *names = read_cells(head)
    layouts = {str(name): facts.layouts for name, facts in SOFTWARE.items()}
    assert [read_cells(line)[0].strip("`") for line in lines] == [*Switches.model_fields]
    for line in lines:
        key, _, *cells = read_cells(line)
        for name, cell in zip(names, cells, strict=True):
            value = getattr(layouts[name], key.strip("`"))
            assert cell == ({True: "on", False: "off"}.get(value, value)), (key, name)


def read_cells(line: str) -> list[str]:
    """Cells of a line of a table."""
    return [cell.strip() for cell in line.strip("|").split("|")]
