"""The nearest neighbour keeps whole slices of the rows that it searches."""

import numpy as np
import pandas as pd

from kernels.blocks.labels import TARGETS
from sweep.surrogates import neighbours
from sweep.surrogates.neighbours import Neighbours
from sweep.surrogates.rows import EPOCH, Rows


def test_strategies_of_a_slice_are_answered_from_one_slice(monkeypatch) -> None:
    monkeypatch.setattr(neighbours, "KEPT", 20)
    points = np.arange(16)
    frame = pd.DataFrame(
        {
            "slice": np.repeat(points, 4),
            "strategy": np.tile(["data", "filter", "channel", "spatial"], 16),
            "feasible": True,
        }
    )
    for name in (EPOCH, *TARGETS):
        frame[name] = np.exp(np.repeat(points, 4).astype(float))
    rows = Rows(frame, (), ())
    features = np.repeat(points, 4)[:, None].astype(np.float32)
    answers = Neighbours(features, rows).apply(features, rows)
    assert len(np.unique(answers[:, 0])) == 5
    assert (np.ptp(answers[:, 0].reshape(16, 4), axis=1) == 0).all()
