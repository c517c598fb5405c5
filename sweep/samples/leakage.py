"""Leakage: whether the files of a data set keep the promises of its splits, read and not believed.

`random`: rows that are equal in all that matters but strategy and batch lie on one side. `model`,
`system`, `strategy`: no value is on both. `scale`, `size`: every value that is tested lies above
all that are trained on. And the rows of a folder lie on the sides that it is named by.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from grids.reading.errors import InputError
from sweep.samples.columns import name_label, name_split
from sweep.samples.read import Columns, Samples, expect_readable, open_samples
from sweep.samples.splits import AXES, HASHED, TEST, TRAIN, hash_problems

# Another than a data set is divided by: what is checked is equality, and not the same numbers.
SEED = 20_261_122
# Values that are shown of those that leak.
SHOWN = 5


@dataclass
class Seen:
    """Values on both sides of a split, and how many rows."""

    values: dict[str, Any] = field(default_factory=lambda: {TRAIN: np.empty(0), TEST: np.empty(0)})
    rows: dict[str, int] = field(default_factory=lambda: {TRAIN: 0, TEST: 0})

    def add(self, side: str, values: Any) -> None:
        """Some rows' values, of which each is kept once."""
        new = np.unique(values)
        before = self.values[side]
        self.values[side] = np.union1d(before, new) if before.size else new
        self.rows[side] += len(values)


def check_leakage(path: str | Path) -> list[dict[str, Any]]:
    """A row for each split: rows trained on and tested, whether it leaks, and what.

    InputError: no data set. Values of each side are held in memory, of `random` eight bytes for
    each problem.
    """
    samples = open_samples(path)
    seen = {split: Seen() for split in samples.splits}
    misplaced = _read_all(samples, seen)
    leaks = {
        split: _find_leak(split, sides) or misplaced.get(split, "") for split, sides in seen.items()
    }
    return [
        {"split": split, **seen[split].rows, "leaks": bool(leak), "what": leak}
        for split, leak in leaks.items()
    ]


def _read_all(samples: Samples, seen: dict[str, Seen]) -> dict[str, str]:
    """Fill in what is seen of each split; what is wrong with folders, by split."""
    needed = {
        *HASHED,
        *AXES.values(),
        *(name_label(split) for split in ("model", "system", "strategy")),
    }
    columns = [*sorted(needed), *map(name_split, samples.splits)]
    known = {column["name"] for column in samples.facts["columns"]}
    if not needed <= known:
        raise InputError(f"columns are missing: {', '.join(sorted(needed - known))}")
    misplaced: dict[str, str] = {}
    for file in samples.open_files().get_fragments():
        folder = Path(file.path).parent.name.split(",")
        with expect_readable(Path(file.path)):
            for batch in file.to_batches(columns=columns):
                rows = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns}
                for split in samples.splits:
                    sides, values = rows[name_split(split)], _read_values(split, rows)
                    for side in (TRAIN, TEST):
                        seen[split].add(side, values[sides == side])
                    if (len(sides) and f"{split}-{sides[0]}" not in folder) or len(set(sides)) > 1:
                        misplaced[split] = f"rows of another side in {file.path}"
    return misplaced


def _read_values(split: str, rows: Columns) -> Any:
    """The values that may not be on both sides of a split [row]."""
    if split == "random":
        return hash_problems(rows, SEED)
    return rows[AXES.get(split, name_label(split))]


def _find_leak(split: str, seen: Seen) -> str:
    """The values on both sides, in words; empty where all is well."""
    train, test = seen.values[TRAIN], seen.values[TEST]
    if not train.size or not test.size:
        return f"no rows to {'train on' if not train.size else 'test'}"
    if split in AXES:
        low, high = test.min(), train.max()
        return "" if low > high else f"tested from {low:g}, trained to {high:g}"
    both = np.intersect1d(train, test)
    if not both.size:
        return ""
    if split == "random":
        return f"{both.size} problems on both sides"
    return f"on both sides: {', '.join(map(str, both[:SHOWN]))}"
