"""Leakage: whether the files of a data set keep the promises of its splits.

`random`: rows that are equal in all that matters but strategy and batch lie on one side. `model`,
`system`, `strategy`: no value is on both. `scale`, `size`: every tested value lies above all that
are trained on. And the rows of a folder lie on the sides that it is named by.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from grids.reading.errors import InputError
from sweep.samples.read import Samples, expect_readable, open_samples
from sweep.samples.rows import Columns
from sweep.samples.splits import AXES, HASHED, TEST, TRAIN, hash_problems, name_label, name_split

# Another seed than a data set is divided by: equality is checked, not these numbers.
SEED = 20_261_122
# Leaking values that are named at most.
SHOWN = 5


@dataclass
class Sides:
    """Values on both sides of a split, and how many rows; misplaced: a file with other rows."""

    values: dict[str, Any] = field(default_factory=lambda: {TRAIN: np.empty(0), TEST: np.empty(0)})
    rows: dict[str, int] = field(default_factory=lambda: {TRAIN: 0, TEST: 0})
    misplaced: str = ""

    def add(self, split: str, rows: Columns, file: Path) -> None:
        """Add the rows of a file, or some of them; each value is kept once."""
        sides = rows[name_split(split)]
        if split == "random":
            values: Any = hash_problems(rows, SEED)
        else:
            values = rows[AXES.get(split, name_label(split))]
        for side, known in self.values.items():
            new = np.unique(values[sides == side])
            self.values[side] = np.union1d(known, new) if known.size else new
            self.rows[side] += int((sides == side).sum())
        folder = file.parent.name.split(",")
        if any(f"{split}-{side}" not in folder for side in np.unique(sides)):
            self.misplaced = f"rows of another side in {file}"

    def find_leak(self, split: str) -> str:
        """The values on both sides, in words; empty where all is well."""
        train, test = self.values[TRAIN], self.values[TEST]
        if not train.size or not test.size:
            return f"no rows to {'train on' if not train.size else 'test'}"
        if split in AXES:
            low, high = test.min(), train.max()
            return self.misplaced if low > high else f"tested from {low:g}, trained to {high:g}"
        both = np.intersect1d(train, test)
        if not both.size:
            return self.misplaced
        if split == "random":
            return f"{both.size} problems on both sides"
        return f"on both sides: {', '.join(map(str, both[:SHOWN]))}"


def check_leakage(path: str | Path) -> list[dict[str, Any]]:
    """A row for each split: rows trained on and tested, whether it leaks, and what.

    InputError: no data set. Values of each side are held in memory, for `random` eight bytes a
    problem.
    """
    samples = open_samples(path)
    seen = {split: Sides() for split in samples.splits}
    _read_all(samples, seen)
    leaks = {split: sides.find_leak(split) for split, sides in seen.items()}
    return [
        {"split": split, **seen[split].rows, "leaks": bool(leak), "what": leak}
        for split, leak in leaks.items()
    ]


def _read_all(samples: Samples, seen: dict[str, Sides]) -> None:
    """Add the rows of all files to each split's sides."""
    labels = map(name_label, ("model", "system", "strategy"))
    needed = {*HASHED, *AXES.values(), *labels}
    known = {column["name"] for column in samples.facts["columns"]}
    if not needed <= known:
        raise InputError(f"columns are missing: {', '.join(sorted(needed - known))}")
    columns = [*sorted(needed), *map(name_split, samples.splits)]
    for part in samples.open_files().get_fragments():
        file = Path(part.path)
        with expect_readable(file):
            for batch in part.to_batches(columns=columns):
                rows = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns}
                for split, sides in seen.items():
                    sides.add(split, rows, file)
