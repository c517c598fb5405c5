"""Measure the size and shape of the sources, in the same way before and after a change.

Goals are aims, not limits to squeeze under.
"""

import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import quantiles

from benchmarks.report import Effort, Goal, Report, Row, at_least

ROOT = Path(__file__).parents[1]
PACKAGES = ("kernels", "grids", "sweep", "benchmarks")
INSTALLED = ("kernels", "grids", "sweep")

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Source:
    """A file: its module's name, syntax tree, and number of lines of each kind."""

    module: str
    lines: int
    tree: ast.Module
    comments: int
    docstrings: int
    code: int


def measure(effort: Effort) -> Report:
    """Count lines, files, folders, imports and names; independent of the effort."""
    sources = [source for package in PACKAGES for source in read_package(package)]
    ours = [source for source in sources if source.module.partition(".")[0] in INSTALLED]
    tests = sum(len(path.read_text().splitlines()) for path in (ROOT / "tests").rglob("*.py"))
    rows = (
        _count(
            "lines of kernels, grids, sweep, benchmarks", _add(sources, "lines"), at_most=31_000
        ),
        *(_count(f"lines of {name}", _add(read_package(name), "lines")) for name in PACKAGES),
        _count("files", len(sources), at_most=270),
        _count("lines of code", _add(sources, "code")),
        _count("lines of tests", tests),
        _count("files in the fullest folder", max(_count_folders(ours).values()), at_most=20),
        _count("import depth", find_depth(ours), at_most=16),
        _count("imports inside functions", sum(count_late_imports(source.tree) for source in ours)),
        _count("class names that exist twice", len(find_twins(ours))),
        *_measure_functions(ours),
        *(_comment_share(room, members) for room, members in _split_rooms(ours).items()),
    )
    return Report("house", "the size and shape of the sources", rows)


@cache
def read_package(package: str) -> tuple[Source, ...]:
    """Read the files of a package."""
    return tuple(read_source(path) for path in sorted((ROOT / package).rglob("*.py")))


def read_source(path: Path) -> Source:
    """Read a file and count its lines by kind."""
    text = path.read_text()
    tree = ast.parse(text)
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    docs = {line for node in _find_docstrings(tree) for line in range(*_span(node))}
    layout = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
    written = {
        line
        for token in tokens
        if token.type not in layout and token.string.strip()
        for line in range(token.start[0], token.end[0] + 1)
    }
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    lines = len(text.splitlines())
    return Source(module, lines, tree, len(comments), len(docs), len(written - docs))


def find_depth(sources: Iterable[Source]) -> int:
    """Count the modules on the longest chain of top-level imports."""
    imports = {source.module: _list_imports(source.tree) for source in sources}

    @cache
    def depth(module: str) -> int:
        return 1 + max((depth(name) for name in imports[module] if name in imports), default=0)

    return max(map(depth, imports))


def count_late_imports(tree: ast.Module) -> int:
    """Count imports inside functions."""
    functions = (node for node in ast.walk(tree) if isinstance(node, Function))
    late = {
        id(node)
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(late)


def find_twins(sources: Iterable[Source]) -> set[str]:
    """Find names of public classes that several files define."""
    classes = Counter(
        node.name
        for source in sources
        for node in source.tree.body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    )
    return {name for name, count in classes.items() if count > 1}


def _measure_functions(sources: Sequence[Source]) -> Iterator[Row]:
    """Measure the length of functions and the share of public ones with a docstring."""
    functions = [
        node for source in sources for node in ast.walk(source.tree) if isinstance(node, Function)
    ]
    lengths = [(node.end_lineno or node.lineno) - node.lineno + 1 for node in functions]
    cuts = quantiles(lengths, n=20)
    yield _count("lines of a function, median", cuts[9])
    yield _count("lines of a function, 95th percentile", cuts[18])
    members = [node for source in sources for node in _list_members(source.tree)]
    public = [node for node in members if not node.name.startswith("_")]
    documented = sum(ast.get_docstring(node) is not None for node in public)
    yield Row("public functions with a docstring", 100 * documented / len(public), "%")


def _list_members(tree: ast.Module) -> Iterator[Function]:
    """Yield functions of a module and methods of its classes, but no nested functions."""
    for node in tree.body:
        members = node.body if isinstance(node, ast.ClassDef) else [node]
        yield from (member for member in members if isinstance(member, Function))


def _comment_share(room: str, members: list[Source]) -> Row:
    share = 100 * _add(members, "comments") / max(_add(members, "code"), 1)
    return Row(f"comments per 100 lines of code, {room}", share, "", goals=(at_least(share, 7),))


def _split_rooms(sources: Iterable[Source]) -> dict[str, list[Source]]:
    """Group files by folder; files of a package itself under its name."""
    rooms: dict[str, list[Source]] = {}
    for source in sources:
        rooms.setdefault(".".join(source.module.split(".")[:-1][:2]), []).append(source)
    return rooms


def _count_folders(sources: Iterable[Source]) -> Counter[str]:
    return Counter(source.module.rpartition(".")[0] for source in sources)


def _list_imports(tree: ast.Module) -> set[str]:
    """List the modules that a file imports at its top, by full name."""
    named = {
        alias.name for node in tree.body if isinstance(node, ast.Import) for alias in node.names
    }
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            # `from package import module` names a module, too.
            named |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {name.removeprefix("paradl.") for name in named}


def _find_docstrings(tree: ast.Module) -> Iterator[ast.stmt]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and ast.get_docstring(node):
            yield node.body[0]


def _span(node: ast.stmt) -> tuple[int, int]:
    return node.lineno, (node.end_lineno or node.lineno) + 1


def _add(sources: Iterable[Source], field: str) -> int:
    return sum(getattr(source, field) for source in sources)


def _count(what: str, number: float, at_most: float | None = None) -> Row:
    goals = () if at_most is None else (_aim(number, at_most),)
    return Row(what, number, "", goals=goals)


def _aim(number: float, bound: float) -> Goal:
    return Goal(f"<= {bound:,}", number <= bound)
