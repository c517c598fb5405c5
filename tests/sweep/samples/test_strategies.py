"""Rows of strategies whose degrees the oracle chooses equal its answers."""

import numpy as np
import pandas as pd
import pytest

from paradl.sweep.questions.predict import predict
from paradl.sweep.samples.sample import list_chunks, make_rows
from paradl.sweep.samples.space import read_space
from paradl.sweep.samples.stream import batches


@pytest.mark.parametrize(
    "strategy",
    [
        *("data+spatial:group=best", "data+filter:group=best"),
        *("data+pipeline:group=4,segments=best", "data+pipeline:group=best,segments=best"),
    ],
)
@pytest.mark.parametrize("drawn", [{}, {"peak_flops": {"loguniform": [1e13, 2e13]}}])
def test_rows_of_the_best_equal_predictions(strategy, drawn) -> None:
    """Also where the devices' speed is drawn, on which layers and stages depend."""
    axes = {
        "model": "alexnet",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": [strategy],
        "pe": [4, 8],
        "batch": {"loguniform": [8, 64]},
    }
    space = read_space({"axes": axes | drawn}, None)
    (chunk,) = list_chunks(space, 4)
    rows = pd.DataFrame(make_rows(space, 0, chunk))
    for _, row in rows.iterrows():
        answer = predict(
            "alexnet",
            strategy,
            int(row.pe),
            int(row.batch),
            system="abci",
            dataset="imagenet",
            parameters={name: float(row[name]) for name in drawn},
        )
        for name in ("epoch_time", "memory"):
            np.testing.assert_allclose(row[name], answer[name] or np.nan, rtol=1e-6)


def test_slopes_of_the_best_are_finite() -> None:
    axes = {
        "model": "alexnet",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": ["data+pipeline:group=4,segments=best"],
        "pe": [8],
        "batch": {"loguniform": [8, 64]},
    }
    space = read_space({"axes": axes})
    (chunk,) = list_chunks(space, 2)
    rows = make_rows(space, 0, chunk)
    assert np.isfinite(rows["elasticity_epoch_time_batch"]).all()


def test_a_stream_of_the_best_equals_predictions() -> None:
    axes = {
        "model": "alexnet",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": "data+pipeline:group=best,segments=best",
        "pe": [8],
        "batch": {"loguniform": [8, 64]},
    }
    stream = batches({"axes": axes}, 4, 1)
    batch = next(stream)
    batch_column, time_column = stream.features.index("batch"), stream.targets.index("epoch_time")
    for features, targets in zip(batch.features, batch.targets, strict=True):
        answer = predict(
            "alexnet",
            axes["strategy"],
            8,
            int(features[batch_column]),
            system="abci",
            dataset="imagenet",
        )
        np.testing.assert_allclose(targets[time_column], answer["epoch_time"], rtol=1e-6)
