"""Baselines answer from training rows: the nearest one, or the usual winner."""

import numpy as np
import pandas as pd

from paradl.kernels.names.stored import EPOCH, TARGETS
from paradl.sweep.surrogates import evaluate
from paradl.sweep.surrogates.evaluate import Habit, Neighbours
from paradl.sweep.surrogates.rows import SampleRows, fit_encoding


def make_rows() -> SampleRows:
    """16 slices of four strategies; the time, and a feature, is the number of the slice."""
    points = np.repeat(np.arange(1.0, 17), 4)
    strategies = np.tile(["data", "filter", "channel", "spatial"], 16)
    columns = dict.fromkeys((EPOCH, *TARGETS, "batch"), points)
    facts = {"slice": points.astype(int), "strategy": strategies, "feasible": True}
    return SampleRows(pd.DataFrame(columns | facts), ("batch",), ())


def test_the_nearest_row_answers() -> None:
    rows = make_rows()
    near = Neighbours(fit_encoding(rows.frame, ["batch"]), rows)
    query = rows.frame.assign(batch=rows.frame.batch * 1.01, strategy="unknown")
    for frame in (query, query.assign(strategy=rows.frame.strategy)):
        answers = near.answer(SampleRows(frame, ("batch",), ()))
        np.testing.assert_allclose(answers.seconds, 2 * rows.frame[EPOCH], rtol=1e-6)


def test_strategies_of_a_slice_are_answered_from_one_slice(monkeypatch) -> None:
    monkeypatch.setattr(evaluate, "KEPT", 20)
    rows = make_rows()
    answers = Neighbours(fit_encoding(rows.frame, ["batch"]), rows).answer(rows)
    assert len(np.unique(answers.seconds)) == 5
    assert (np.ptp(answers.seconds.reshape(16, 4), axis=1) == 0).all()


def test_habit_ranks_by_wins():
    frame = pd.DataFrame(
        {
            "slice": [0, 0, 1, 1, 2, 2],
            "strategy": ["data", "filter"] * 3,
            "epoch_time": [1.0, 2.0, 3.0, 2.0, 1.0, 5.0],
            "feasible": [True, True, True, True, True, False],
        }
    )
    assert Habit(SampleRows(frame, (), ())).ranks == {"data": 1.0, "filter": 2.0}
