"""Check the files of a data set for leakage between training and test sides.

`random`: rows that differ only in strategy and batch are on the same side. `model`, `system`,
`strategy`: no value is on both sides. `scale`, `size`: every tested value is above all training
values. In every split rows are in the folder that is named after their side.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paradl.sweep.answers.types.learning import LeakageRow
from paradl.sweep.samples.columns import Columns
from paradl.sweep.samples.read import expect_readable, open_samples
from paradl.sweep.samples.splits import (
    AXES,
    HASHED,
    TEST,
    TRAIN,
    hash_problems,
    name_label,
    name_split,
)

# Not the seed of the split: hashes serve only to find equal problems.
SEED = 20_261_122
# Number of leaking values to name.
SHOWN = 5


@dataclass
class Sides:
    """Distinct values and row counts by side of a split. misplaced: rows in a wrong folder."""

    values: dict[str, NDArray[Any]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=lambda: {TRAIN: 0, TEST: 0})
    misplaced: str = ""

    def add(self, split: str, rows: Columns, file: Path) -> None:
        """Add rows of a file."""
        sides = rows[name_split(split)]
        hashed = split == "random"
        values = hash_problems(rows, SEED) if hashed else rows[AXES.get(split, name_label(split))]
        for side in self.rows:
            new = values[sides == side]
            self.values[side] = np.union1d(self.values.get(side, new), new)
            self.rows[side] += len(new)
            if len(new) and f"{split}-{side}" not in file.parent.name.split(","):
                self.misplaced = f"rows of another side in {file}"

    def find_leak(self, split: str) -> str:
        """Describe the leak; empty if there is none."""
        for side, what in ((TRAIN, "train on"), (TEST, "test")):
            if not self.rows[side]:
                return f"no rows to {what}"
        train, test = self.values[TRAIN], self.values[TEST]
        if split in AXES:
            low, high = test.min(), train.max()
            overlap = f"test values from {low:g}, training values up to {high:g}"
            return self.misplaced if low > high else overlap
        both = np.intersect1d(train, test)
        if not both.size:
            return self.misplaced
        if split == "random":
            return f"{both.size} problems on both sides"
        return f"on both sides: {', '.join(map(str, both[:SHOWN]))}"


def check_leakage(path: str | Path) -> list[LeakageRow]:
    """Return a row per split: rows to train on and to test, whether it leaks, and what.

    InputError: no data set. Distinct values of each side are held in memory; for `random` eight
    bytes per problem.
    """
    samples = open_samples(path)
    seen = {split: Sides() for split in samples.splits}
    labels = map(name_label, ("model", "system", "strategy"))
    columns = [*{*HASHED, *AXES.values(), *labels}, *map(name_split, samples.splits)]
    for part in samples.open_files().get_fragments():
        file = Path(part.path)
        with expect_readable(file):
            for batch in part.to_batches(columns=columns):
                rows = {name: batch.column(name).to_numpy(zero_copy_only=False) for name in columns}
                for split, sides in seen.items():
                    sides.add(split, rows, file)
    return [
        {
            "split": split,
            "train": sides.rows[TRAIN],
            "test": sides.rows[TEST],
            "leaks": bool(leak := sides.find_leak(split)),
            "what": leak,
        }
        for split, sides in seen.items()
    ]
