"""Published runs of transformers: every row is read, shipped rates meet them; the scoreboard."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import layout_runs, layouts, scoreboard
from grids.entries.transformer_rates import FITTED

PAGE = Path(__file__).parents[2] / "docs" / "scoreboard.md"


def test_allocated_memory_is_met_and_a_card_shows_more() -> None:
    runs = [run for run in layout_runs.read_runs() if run.memory]
    ratios: dict[str, list[float]] = {}
    for run in runs:
        ratios.setdefault(run.memory_kind, []).append(layout_runs.predict_memory(run) / run.memory)
    assert len(runs) == 121
    assert all(0.95 < ratio < 1 for ratio in ratios["allocated"])
    assert np.median(ratios["nvidia-smi"]) < 0.9


def test_shipped_rates_meet_published_times() -> None:
    runs = [run for run in layouts.select_timed() if scoreboard.is_dense(run)]
    logs = layouts.compare_times(runs, FITTED)
    assert len(runs) == 351
    assert layouts.measure_accuracy(logs) > 0.89
    assert 0.75 < layouts.find_inside(runs, logs).mean() < 0.9


def test_a_fit_finds_the_rates_that_made_the_rows() -> None:
    """Of rows whose times are predictions themselves."""
    runs = layouts.choose_rows(layouts.select_timed())[:60:4]
    prior = layouts.DENSE
    rates = {**prior.centres, "expert_launch": 0.0}
    made = [replace(run, seconds=layout_runs.predict_seconds(run, rates)) for run in runs]
    assert layouts.fit_values(made, prior, {"expert_launch": 0.0}) == pytest.approx(rates, rel=0.01)


def test_every_stack_and_device_of_the_rows_is_known() -> None:
    runs = layout_runs.read_runs()
    timed = [run for run in runs if run.seconds]
    assert {run.stack for run in timed} <= set(layout_runs.STACKS)
    assert {run.device for run in timed} <= set(layout_runs.DEVICES)


def read_tables() -> list[list[list[str]]]:
    """Cells of the page's tables, without their heads."""
    blocks = [block.splitlines() for block in PAGE.read_text().split("\n\n")]
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block[2:]]
        for block in blocks
        if block[0].startswith("|")
    ]


def test_the_page_is_what_the_stated_fits_predict() -> None:
    _, fits, rows = read_tables()
    values = {name: dict(zip(FITTED, map(float, numbers), strict=True)) for name, *numbers in fits}
    runs = layouts.select_timed()
    assert len(rows) == len(runs) == 387
    assert [float(row[8]) for row in rows] == pytest.approx([r.seconds for r in runs], rel=1e-3)
    # The page is written as a whole: a fifth of its rows is enough.
    predicted = [layout_runs.predict_seconds(run, values[run.stack]) for run in runs[::5]]
    assert [float(row[9]) for row in rows[::5]] == pytest.approx(predicted, rel=1e-3)


def test_the_sums_are_those_of_the_rows() -> None:
    sums, _, rows = read_tables()
    number = int(sums[0][1])
    dense = [float(row[10]) for row in rows[:number]]
    accuracy = sum(1 - abs(ratio - 1) for ratio in dense) / number
    assert float(sums[0][2].strip("%")) == pytest.approx(100 * accuracy, abs=0.2)


def test_paradl_is_nearer_than_both_baselines() -> None:
    sums, *_ = read_tables()
    paradl, constant, rule = (float(sums[0][column].strip("%")) for column in (2, 5, 6))
    assert paradl > max(constant, rule) + 5
