"""Mutations: plausible wrong edits of the sources, each of which some test must see.

Two kinds: edits that once passed the whole suite, with the tests that see them now; and a random
sample of comparisons and choices of the least or largest, each replaced by its neighbour, which are
run against the test file of the same name. Those that survive are listed: some change no answer.
"""

import ast
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory

from benchmarks.report import Effort, Goal, Report, Row

ROOT = Path(__file__).parents[1]
PACKAGES = ("kernels", "grids", "sweep")
SAMPLED = 1000  # an effort's files to break per sampled mutation, which takes as long
MOST_SECONDS = 600

COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
}
CHOICES = {
    "min": "max",
    "max": "min",
    "argmin": "argmax",
    "argmax": "argmin",
    "nanargmin": "argmin",
    "round": "int",
}


@dataclass(frozen=True)
class Mutation:
    """The text `old` of a file, by `new`; tests: a file or folder that must see it.

    at: position of the text in the file; None: the text is there once.
    """

    file: str
    old: str
    new: str
    tests: str
    at: int | None = None

    @property
    def title(self) -> str:
        return f"{self.file}: `{self.old}` by `{self.new}`"

    def apply(self, text: str) -> str:
        """Change a file's text. ValueError: the text to change is not there, or not once."""
        if self.at is None and text.count(self.old) != 1:
            raise ValueError(f"{self.file} has {self.old!r} {text.count(self.old)} times, not once")
        at = text.index(self.old) if self.at is None else self.at
        return text[:at] + self.new + text[at + len(self.old) :]


# Of 27 such edits these passed all tests in 2026-11.
SURVIVED = (
    Mutation(
        "kernels/blocks/summary.py",
        "xp.less(later.time",
        "xp.less_equal(later.time",
        "tests/kernels/test_summary.py",
    ),
    Mutation(
        "sweep/cells/changes.py",
        "wins = times < self",
        "wins = times <= self",
        "tests/sweep/questions/test_diff.py",
    ),
    Mutation(
        "sweep/cases/rejection.py",
        ", fit.reasons.ravel()))",
        "))",
        "tests/test_layout_defaults.py",
    ),
    Mutation(
        "grids/models/files/huggingface.py",
        '.get("topk_method") == "noaux_tc"',
        '.get("topk_method") is not None',
        "tests/grids/models/test_huggingface.py",
    ),
    Mutation(
        "sweep/cells/space.py",
        "in product(*self.axes.values()):",
        "in sorted(product(*self.axes.values()), key=lambda row: row[::-1]):",
        "tests/sweep/questions/test_sensitivity.py",
    ),
    Mutation(
        "sweep/questions/provision.py",
        "np.nanargmin(self.bounds))",
        "np.nanargmin(self.times))",
        "tests/sweep/questions/test_provision.py",
    ),
    Mutation(
        "sweep/questions/provision.py",
        "np.nanargmin(self.bounds[fewest])",
        "np.nanargmin(self.times[fewest])",
        "tests/sweep/questions/test_provision.py",
    ),
    Mutation(
        "sweep/cases/probability.py",
        " + unsure**2)",
        ")",
        "tests/sweep/questions/test_training.py",
    ),
    Mutation(
        "sweep/measured/evidence.py",
        "at[series] = min(known",
        "at[series] = max(known",
        "tests/sweep/measured/test_evidence.py",
    ),
    Mutation(
        "sweep/samples/splits.py",
        "max(1, round(TESTED",
        "max(1, int(TESTED",
        "tests/sweep/samples/test_splits.py",
    ),
)


def measure(effort: Effort) -> Report:
    """Count mutations that no test sees: of the list, and of a sample that the seed determines."""
    with TemporaryDirectory() as folder:
        copy = copy_sources(Path(folder))
        listed = [one for one in SURVIVED if survives(one, copy)]
        sample = draw_mutations(Random(effort.seed), max(1, effort.cases // SAMPLED))
        unseen = [one for one in sample if survives(one, copy)]
    rows = (
        Row("listed", len(SURVIVED), ""),
        Row("listed, seen by no test", len(listed), "", goals=(Goal("= 0", not listed),)),
        Row("sampled", len(sample), "", note=f"seed {effort.seed}"),
        Row("sampled, not seen by their own test file", len(unseen), ""),
    )
    note = "\n".join(f"- {one.title}" for one in (*listed, *unseen))
    return Report("mutations", "wrong edits that tests see", rows, note)


def copy_sources(folder: Path) -> Path:
    """Copy the tracked files, to change them there."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    for name in filter(None, listed.stdout.split("\0")):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    return folder


def survives(mutation: Mutation, copy: Path) -> bool:
    """Whether the tests pass with a mutation. RuntimeError: they did not run."""
    path = copy / mutation.file
    before = path.read_text()
    path.write_text(mutation.apply(before))
    try:
        code = _run_tests(mutation.tests, copy)
    finally:
        path.write_text(before)
    if code not in (0, 1):
        raise RuntimeError(f"{mutation.title}: pytest {mutation.tests} ended with {code}")
    return code == 0


def _run_tests(tests: str, copy: Path) -> int:
    """Run tests in the copy until one fails; a mutation that hangs is seen, too."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", tests]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=MOST_SECONDS
        )
    except subprocess.TimeoutExpired:
        return 1
    return run.returncode


def draw_mutations(random: Random, count: int) -> list[Mutation]:
    """Draw mutations of files that have a test file of the same name, at most one per file."""
    files = [path for package in PACKAGES for path in sorted((ROOT / package).rglob("*.py"))]
    random.shuffle(files)
    drawn: list[Mutation] = []
    for path in files:
        mutations = list(list_mutations(path))
        if mutations and len(drawn) < count:
            drawn.append(random.choice(mutations))
    return drawn


def list_mutations(path: Path) -> Iterator[Mutation]:
    """Yield mutations of a file with a test file of the same name: in the same folder, or above."""
    file = path.relative_to(ROOT)
    places = (Path("tests") / folder / f"test_{file.name}" for folder in file.parents)
    tests = next((place for place in places if (ROOT / place).exists()), None)
    if tests is None:
        return
    text = path.read_text()
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    for node in ast.walk(ast.parse(text)):
        if change := _mutate_node(node):
            row, column, old, new = change
            at = text.find(old, starts[row - 1] + column)
            yield Mutation(str(file), old, new, str(tests), at)


def _mutate_node(node: ast.AST) -> tuple[int, int, str, str] | None:
    """Return where to look for which text, and its replacement; columns of ASCII lines."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in COMPARISONS:
        left = node.left
        return left.end_lineno or 0, left.end_col_offset or 0, *COMPARISONS[type(node.ops[0])]
    if isinstance(node, ast.Call):
        name = node.func
        word = name.id if isinstance(name, ast.Name) else getattr(name, "attr", "")
        if word in CHOICES:
            end = name.end_col_offset or 0
            return name.end_lineno or 0, end - len(word), word, CHOICES[word]
    return None
