"""Measure the size and shape of the sources, in the same way before and after a change."""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

from benchmarks.report import Effort, Report, Row

ROOT = Path(__file__).parents[1]
PACKAGES = ("kernels", "grids", "sweep", "benchmarks")


def measure(effort: Effort) -> Report:
    """Count lines, files, folders, imports and untyped answers; independent of the effort."""
    files = {path: path.read_text() for name in PACKAGES for path in _list_files(name)}
    lines = Counter({path: len(text.splitlines()) for path, text in files.items()})
    tests = sum(len(path.read_text().splitlines()) for path in _list_files("tests"))
    counts = {
        "lines of kernels, grids, sweep, benchmarks": lines.total(),
        **{f"lines of {name}": sum(lines[path] for path in _list_files(name)) for name in PACKAGES},
        "files": len(files),
        "lines of tests": tests,
        "files in the fullest folder": max(Counter(path.parent for path in files).values()),
        "import depth": find_depth(files),
        "dict[str, Any]": sum(text.count("dict[str, Any]") for text in files.values()),
    }
    rows = tuple(Row(what, number, "") for what, number in counts.items())
    return Report("house", "the size and shape of the sources", rows)


def _list_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def find_depth(files: dict[Path, str]) -> int:
    """Count the modules on the longest chain of imports at the top of files."""
    imports = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): {
            node.module.removeprefix("paradl.")
            for node in ast.parse(text).body
            if isinstance(node, ast.ImportFrom) and node.module
        }
        for path, text in files.items()
    }

    @cache
    def depth(module: str) -> int:
        return 1 + max((depth(name) for name in imports[module] if name in imports), default=0)

    return max(map(depth, imports))
