"""What versions predicted before their rates were fitted: the file is as it was frozen."""

import csv
import hashlib
from itertools import chain
from pathlib import Path

import numpy as np
import pytest

from benchmarks import frozen, layout_runs

PAGE = Path(__file__).parents[2] / "docs" / "scoreboard.md"


def test_the_file_is_as_it_was_frozen() -> None:
    """Predictions that were changed afterwards would prove nothing."""
    digest = hashlib.sha256(frozen.FILE.read_bytes()).hexdigest()
    assert digest == "66f20e2ae3085696625e20cde9ecc5fb08dd1403803a42756acbf7c8563b1a5c"


def test_every_row_is_a_published_run_with_its_time() -> None:
    runs = [*layout_runs.read_runs(), *layout_runs.read_runs(layout_runs.UNSEEN)]
    of_key = {run.key: run for run in runs}
    assert len(of_key) == len(runs)
    with frozen.FILE.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len({row["key"] for row in rows}) == len(rows) == 197
    for row in rows:
        assert float(row["measured_s"]) == of_key[row["key"]].seconds
        assert row["set"] == of_key[row["key"]].collection


@pytest.mark.parametrize(
    ("kind", "family", "stack", "version", "accuracy", "held"),
    [
        ("transformers", "dense", None, "cd1fa94b", 0.876, 0.81),
        ("transformers", "experts", None, "cd1fa94b", 0.502, 0.56),
        ("mlperf", "dense", "NeMo", "cd1fa94b", 0.685, 0.46),
        ("transformers", "dense", None, "6c18efeb", 0.894, 0.83),
        ("transformers", "experts", None, "6c18efeb", 0.915, 1.00),
        ("mlperf", "dense", "NeMo", "6c18efeb", 0.781, 0.51),
    ],
)
def test_accuracy_and_coverage_by_plain_arithmetic(
    kind: str, family: str, stack: str | None, version: str, accuracy: float, held: float
) -> None:
    with frozen.FILE.open(newline="") as file:
        rows = [
            row
            for row in csv.DictReader(file)
            if (row["set"], row["family"]) == (kind, family) and stack in (None, row["stack"])
        ]
    ratios = [float(row[f"predicted_{version}_s"]) / float(row["measured_s"]) for row in rows]
    mean = sum(max(1 - abs(ratio - 1), 0) for ratio in ratios) / len(ratios)
    assert mean == pytest.approx(accuracy, abs=5e-4)
    ends = [(float(row[f"low_{version}_s"]), float(row[f"high_{version}_s"])) for row in rows]
    inside = [
        low <= float(row["measured_s"]) <= high for row, (low, high) in zip(rows, ends, strict=True)
    ]
    assert sum(inside) / len(rows) == pytest.approx(held, abs=5e-3)


def test_parts_hold_each_row_once_by_each_label() -> None:
    table = frozen.read_frozen()
    titles = dict(frozen.list_parts(table))
    everything = [number for parts in titles.values() for number in parts[0][1]]
    assert sorted(everything) == list(range(197))
    for parts in titles.values():
        whole = parts[0][1]
        by_pes = [numbers for name, numbers in parts if name.endswith("PEs")]
        if by_pes:
            assert sorted(chain(*by_pes)) == whole
        for name, numbers in parts:
            assert 0 < len(numbers) <= len(whole), name


def test_intervals_hold_as_counted() -> None:
    table = frozen.read_frozen()
    seconds = table.seconds
    numbers = list(range(0, 197, 7))
    line = dict(zip(frozen.HEAD, frozen.sum_up(table, "some", numbers), strict=True))
    low, high = (seconds[f"{end}_6c18efeb_s"][numbers] for end in ("low", "high"))
    measured = seconds["measured_s"][numbers]
    inside = sum(
        one <= value <= other for one, value, other in zip(low, measured, high, strict=True)
    )
    assert line["interval holds"] == f"{inside / len(numbers):.0%}"
    assert np.all(low < high)


def test_the_page_shows_the_frozen_table() -> None:
    assert frozen.write_tables(frozen.read_frozen()) in PAGE.read_text()
