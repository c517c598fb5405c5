"""Imports between rooms go one way, and the packages' names are not taken."""

import ast
import re
import subprocess
import sys
from collections import Counter
from functools import cache
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from paradl.kernels.names.parallelisms import KINDS

ROOT = Path(__file__).parents[1]
FORBIDDEN = {
    "kernels": {"grids", "sweep", "xarray", "zarr", "dask", "distributed", "yaml", "pydantic"},
    "grids": {"sweep", "xarray", "zarr", "dask", "distributed"},
    "sweep": set(),
}
HEAVY = {"jax", "xarray", "zarr", "dask", "distributed", "numpy", "pandas", "pydantic"}


@cache
def list_nodes(
    path: Path,
) -> tuple[ast.Import | ast.ImportFrom | ast.Compare | ast.MatchValue, ...]:
    """List what the tests read of a file, anywhere in it: imports and comparisons."""
    kinds = ast.Import | ast.ImportFrom | ast.Compare | ast.MatchValue
    return tuple(node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))


@cache
def list_imports(path: Path) -> tuple[ast.Import | ast.ImportFrom, ...]:
    """List the imports of a file, anywhere in it."""
    return tuple(n for n in list_nodes(path) if isinstance(n, ast.Import | ast.ImportFrom))


def imported(path: Path) -> set[str]:
    """Return the packages that a file imports, anywhere in it: ours by their own names."""
    return {name.removeprefix("paradl.").partition(".")[0] for name in list_names(path)}


def list_names(path: Path) -> set[str]:
    """List the modules that a file imports, anywhere in it."""
    nodes = list_imports(path)
    named = {name.name for node in nodes if isinstance(node, ast.Import) for name in node.names}
    return named | {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_imports_point_one_way(package):
    files = list((ROOT / package).rglob("*.py"))
    assert files
    for path in files:
        assert not imported(path) & FORBIDDEN[package], path
        assert "tests" not in imported(path), path


# Each room imports only from rooms below it.
FLOORS = (
    # Types, flags and names that all floors share.
    "kernels",
    "kernels.names",
    "kernels.paper",
    "kernels.machine",
    "kernels.work",
    "kernels.configuration",
    "kernels.parallelism",
    "kernels.oracle",
    "kernels.search",
    "kernels.derivatives",
    "kernels.blocks",
    "grids.reading",
    "grids.entries",
    "grids.models",
    "grids.graphs",
    "grids.convergence",
    "grids.placing",
    "grids.inputs",
    "grids",
    "sweep.errors",
    "sweep.cube",
    "sweep.engine",
    "sweep.cells",
    "sweep.answers",
    "sweep.configurations",
    "sweep.uncertainty",
    "sweep.boundaries",
    "sweep.launching",
    "sweep.explanation",
    "sweep.questions",
    "sweep.exports",
    "sweep.measured",
    "sweep.calibration",
    "sweep.importing",
    "sweep.samples",
    "sweep.surrogates",
    "sweep.text",
    "sweep.plots",
    "sweep.report",
    "sweep.accessor",
    "sweep.cli",
)


def room(module: str) -> str:
    """The room that a module lies in: its folder, or a package's own files."""
    return max((floor for floor in FLOORS if f"{module}.".startswith(f"{floor}.")), key=len)


def modules(path: Path) -> set[str]:
    """The modules of ours that a file imports."""
    ours = (name.removeprefix("paradl.") for name in list_names(path) if name != "paradl")
    return {value for value in ours if value.partition(".")[0] in FORBIDDEN}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_no_room_imports_one_above_it(package):
    for path in (ROOT / package).rglob("*.py"):
        if path == ROOT / "sweep" / "__init__.py":  # imports nothing
            continue
        here = room(".".join(path.relative_to(ROOT).with_suffix("").parts))
        for module in modules(path):
            assert FLOORS.index(room(module)) <= FLOORS.index(here), (path, module)


def test_table_iii_shares_no_formula():
    """Frozen: no change outside of its room moves a bit of it."""
    shared = {f"kernels.{name}" for name in ("arrays", "options", "names.terms")}
    for path in (ROOT / "kernels" / "paper").rglob("*.py"):
        others = {name for name in modules(path) if room(name) != "kernels.paper"}
        assert others <= shared, path


def test_the_picture_shows_the_rooms_in_their_order():
    picture = (ROOT / "CONTRIBUTING.md").read_text().split("```text\n")[1].split("```")[0]
    # From the top down, and from left to right.
    rooms = [name for line in picture.splitlines() for name in line.split("|")[-2].split()]
    assert rooms[::-1] == [floor.removeprefix(f"{floor.partition('.')[0]}.") for floor in FLOORS]


TESTS = {"kernels": {"grids", "sweep"}, "grids": {"sweep"}}
# What tests on any floor share imports the floors that it is for.
HELPERS = {path.stem: path for path in (ROOT / "tests" / "helpers").glob("*.py")}


def imported_with_helpers(path: Path) -> set[str]:
    """The top-level packages that a test imports, itself or by the tests' own helpers."""
    direct = imported(path)
    return direct.union(*(imported_with_helpers(HELPERS[name]) for name in direct & {*HELPERS}))


@pytest.mark.parametrize("package", TESTS)
def test_no_test_imports_a_floor_above_its_own(package):
    files = list((ROOT / "tests" / package).rglob("*.py"))
    assert files
    for path in files:
        assert not imported_with_helpers(path) & TESTS[package], path


def test_only_paradl_owns_the_names():
    owners = packages_distributions()  # reads what each installed package has: 0.7 s
    for package in FORBIDDEN:
        assert {*owners.get(package, ())} <= {"paradl"}, package


@pytest.mark.parametrize("package", FORBIDDEN)
def test_files_are_small(package):
    for path in (ROOT / package).rglob("*.py"):
        assert len(path.read_text().splitlines()) <= 400, path


def test_no_two_classes_share_a_name():
    paths = (path for package in FORBIDDEN for path in (ROOT / package).rglob("*.py"))
    names = re.findall(r"^class ([A-Z]\w*)", "\n".join(map(Path.read_text, paths)), re.MULTILINE)
    assert [name for name, count in Counter(names).items() if count > 1] == []


# The facts of parallelisms, and what is particular to each: all else asks for a fact.
PARALLELISMS = "kernels/names/parallelisms.py", *(f"kernels/parallelism/{n}.py" for n in KINDS)


def list_compared(path: Path) -> set[object]:
    """The constants that a file compares something with, or looks something up among."""
    compared = [n for n in list_nodes(path) if isinstance(n, ast.Compare | ast.MatchValue)]
    inside = [part for node in compared for part in ast.walk(node)]
    return {value.value for value in inside if isinstance(value, ast.Constant)}


@pytest.mark.parametrize("package", FORBIDDEN)
def test_only_its_own_file_compares_the_name_of_a_parallelism(package):
    for path in (ROOT / package).rglob("*.py"):
        if str(path.relative_to(ROOT)) not in PARALLELISMS:
            assert not list_compared(path) & {*KINDS}, path


def test_help_needs_nothing_heavy():
    code = "import sys; sys.argv[0] = 'paradl'; import paradl.sweep.cli.main; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not HEAVY & set(run.stdout.split())
