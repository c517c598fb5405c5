"""Mutations: plausible wrong edits of kernels, grids and sweep, each of which a test must see.

Most passed all tests once, or those of their own file. Each is applied to a copy of the sources, in
which the tests that ought to see it run.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.report import Effort, Goal, Report, Row

ROOT = Path(__file__).parents[1]
MOST_SECONDS = 600  # of one mutation's tests


class Mutation(NamedTuple):
    """A text of a file, there once, by another; tests: the file that must see it."""

    file: str
    old: str
    new: str
    tests: str


# By file and the tests that must see them.
EDITS: dict[tuple[str, str], dict[str, str]] = {
    ("grids/axes.py", "grids/test_ranges.py"): {
        "values = np.round(values)": "values = np.floor(values)",
    },
    ("grids/convergence/law.py", "grids/convergence/test_law.py"): {
        "largest = logs.max()": "largest = logs.mean()",
    },
    ("grids/convergence/points.py", "grids/convergence/test_points.py"): {
        "in sorted(by_batch)": "in by_batch",
    },
    ("grids/inputs/factors.py", "grids/inputs/test_factors.py"): {
        "(max(t), -t[2], -t[1])": "(max(t), t[2], t[1])",
        "np.maximum(ways.held, least)": "ways.held",
    },
    ("grids/models/files/huggingface.py", "grids/models/test_huggingface.py"): {
        '.get("topk_method") == "noaux_tc"': '.get("topk_method") is not None',
    },
    ("grids/placing/packing.py", "grids/placing/test_packing.py"): {
        "used + held > problem.room": "used + held >= problem.room",
    },
    ("grids/reading/units.py", "grids/reading/test_units.py"): {
        "if abs(value) >= step[0]": "if abs(value) > step[0]",
    },
    ("kernels/blocks/summary.py", "kernels/test_summary.py"): {
        "xp.less(later.time": "xp.less_equal(later.time",
    },
    ("sweep/cases/curves.py", "sweep/questions/test_crossovers.py"): {
        "theirs * (1 - ROUNDING)": "theirs",
    },
    ("sweep/cases/probability.py", "sweep/questions/test_training.py"): {
        " + unsure**2)": ")",
    },
    ("sweep/measured/evidence.py", "sweep/measured/test_evidence.py"): {
        "at[series] = min(known": "at[series] = max(known",
    },
    ("sweep/cases/rejection.py", "sweep/cases/test_rejection.py"): {
        ", fit.reasons.ravel()))": "))",
        "min(2 * most + 1, count)": "min(2 * most, count)",
    },
    ("sweep/cells/changes.py", "sweep/questions/test_diff.py"): {
        "wins = times < self": "wins = times <= self",
        "(total + 1) // 2, total // 2 + 1": "total // 2 + 1, total // 2 + 1",
        "> self.tolerance *": ">= self.tolerance *",
    },
    ("sweep/cells/space.py", "sweep/cells/test_space.py"): {
        "powers if powers.size > 2": "powers if powers.size",
    },
    ("sweep/cells/space.py", "sweep/questions/test_sensitivity.py"): {
        "in product(*self.axes.values()):": "in list(product(*self.axes.values()))[::-1]:",
    },
    ("sweep/questions/bottleneck.py", "sweep/questions/test_bottleneck.py"): {
        "ranks.min(axis=1)": "ranks.max(axis=1)",
    },
    ("sweep/questions/limits.py", "sweep/questions/test_limits.py"): {
        "0 < efficiency <= 1:": "0 < efficiency < 1:",
    },
    ("sweep/questions/pareto.py", "sweep/questions/test_pareto.py"): {
        "costs < least_before": "costs <= least_before",
        'np.lexsort((both["cost"], both["time"]))': 'np.argsort(both["time"], kind="stable")',
    },
    ("sweep/questions/provision.py", "sweep/questions/test_provision.py"): {
        "np.nanargmin(self.bounds))": "np.nanargmin(self.times))",
        "np.nanargmin(self.bounds[fewest])": "np.nanargmin(self.times[fewest])",
    },
    ("sweep/questions/regret.py", "sweep/questions/test_regret.py"): {
        'np.inf if row["worst_loss"] is None': '-1.0 if row["worst_loss"] is None',
    },
    ("sweep/samples/splits.py", "sweep/samples/test_splits.py"): {
        "max(1, round(TESTED": "max(1, int(TESTED",
    },
    ("sweep/surrogates/scores.py", "sweep/surrogates/test_scores.py"): {
        "np.lexsort((guess.seconds, ~guess.feasible))": "np.argsort(guess.seconds)",
        "if fit.sum() >= 2": "if fit.sum() > 2",
    },
}
MUTATIONS = [
    Mutation(file, old, new, tests)
    for (file, tests), edits in EDITS.items()
    for old, new in edits.items()
]


def measure(effort: Effort) -> Report:
    """Count the mutations that no test sees."""
    with TemporaryDirectory() as folder:
        copy = copy_sources(Path(folder))
        for tests in dict.fromkeys(one.tests for one in MUTATIONS):
            if not passes(tests, copy):
                raise RuntimeError(f"tests/{tests} fails without any mutation")
        survivors = [one for one in MUTATIONS if survives(one, copy)]
    row = Row("seen by a test", len(MUTATIONS) - len(survivors), "", note=f"of {len(MUTATIONS)}")
    seen = Row("seen by no test", len(survivors), "", goals=(Goal("= 0", not survivors),))
    note = "\n".join(f"- {one.file}: `{one.old}` by `{one.new}`" for one in survivors)
    return Report("mutations", "wrong edits that tests see", (row, seen), note)


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
    """Whether the tests pass with a mutation. ValueError: its text is not there once."""
    path = copy / mutation.file
    before = path.read_text()
    if before.count(mutation.old) != 1:
        raise ValueError(f"{mutation.file} has {mutation.old!r} {before.count(mutation.old)} times")
    path.write_text(before.replace(mutation.old, mutation.new))
    try:
        return passes(mutation.tests, copy)
    finally:
        path.write_text(before)


def passes(tests: str, copy: Path) -> bool:
    """Whether a file's tests pass in the copy; what hangs fails. RuntimeError: they did not run."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", f"tests/{tests}"]
    environment = os.environ | {"PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        run = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, timeout=MOST_SECONDS, text=True
        )
    except subprocess.TimeoutExpired:
        return False
    if run.returncode not in (0, 1):
        raise RuntimeError(f"pytest {tests} ended with {run.returncode}: {run.stdout[-500:]}")
    return run.returncode == 0
