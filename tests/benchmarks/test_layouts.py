"""Published runs of transformers: every row is read, what is shipped meets them."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import layouts
from grids.entries.transformer_rates import FITTED, SPREAD
from kernels.names.stored import PERCENTILES


def test_allocated_memory_is_met_and_a_card_shows_more() -> None:
    runs = [run for run in layouts.read_runs() if run.memory]
    ratios: dict[str, list[float]] = {}
    for run in runs:
        ratios.setdefault(run.memory_kind, []).append(layouts.predict_memory(run) / run.memory)
    assert len(runs) == 110
    assert all(0.95 < ratio < 1 for ratio in ratios["allocated"])
    assert np.median(ratios["nvidia-smi"]) < 0.9


def test_shipped_rates_meet_published_times() -> None:
    runs = layouts.select_timed()
    logs = layouts.compare_times(runs, FITTED)
    assert len(runs) == 270
    assert layouts.measure_accuracy(logs) > 0.84
    inside = np.abs(logs) <= PERCENTILES[90] * SPREAD
    assert 0.8 < inside.mean() < 0.92


def test_a_fit_finds_the_rates_that_made_the_rows() -> None:
    """Of rows whose times are predictions themselves."""
    runs = layouts.choose_rows(layouts.select_timed())[::4]
    made = [replace(run, seconds=layouts.predict_seconds(run, layouts.CENTRES)) for run in runs]
    assert layouts.fit(made) == pytest.approx(layouts.CENTRES)
