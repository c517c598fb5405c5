"""Published runs of transformers: every row is read, what is shipped meets them."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import layout_runs, layouts, scoreboard
from grids.entries.transformer_rates import FITTED


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
