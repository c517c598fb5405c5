"""Rows of networks with blocks: predictions, slopes by differences, and columns of layouts."""

import numpy as np
import pandas as pd
import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.questions.predict import predict
from paradl.sweep.samples.read import open_samples
from paradl.sweep.samples.sample import sample
from paradl.sweep.samples.space import read_space

SYSTEM = "dgx-h100:precision=bf16"
STRATEGIES = ["data", "data+tensor:tensor=2,micro=1,recompute=blocks,zero=1"]
SPACE = {
    "axes": {
        "model": "llama3_8b",
        "dataset": "pile",
        "system": SYSTEM,
        "strategy": STRATEGIES,
        "pe": [8, 64],
        "batch": {"loguniform": [1, 16]},
        "inter_bandwidth": {"loguniform": [1e10, 1e11]},
        "efficiency_blocks": {"uniform": [0.5, 0.7]},
    }
}
TARGETS = ("epoch_time", "comp_time", "comm_time", "memory")


@pytest.fixture(scope="module")
def rows(tmp_path_factory) -> pd.DataFrame:
    folder = tmp_path_factory.mktemp("rows") / "data"
    sample(SPACE, folder, 32, seed=3)
    samples = open_samples(folder)
    return samples.read([column["name"] for column in samples.facts["columns"]])


def predict_row(row, **changed: float) -> dict[str, float]:
    given = {name: float(row[name]) for name in ("inter_bandwidth", "efficiency_blocks")} | changed
    return predict(
        *("llama3_8b", row["strategy"], int(row["pe"]), int(row["batch"])),
        system=SYSTEM,
        dataset="pile",
        parameters=given,
    )


def test_rows_are_predictions(rows) -> None:
    for _, row in rows.sample(8, random_state=0).iterrows():
        answer = predict_row(row)
        for name in TARGETS:
            assert row[name] == pytest.approx(answer[name], rel=1e-6)
        assert row["feasible"] == answer["feasible"]


@pytest.mark.parametrize("name", ["inter_bandwidth", "efficiency_blocks"])
def test_slopes_are_differences(rows, name) -> None:
    smooth = rows[~rows.near_kink]
    for _, row in smooth.sample(4, random_state=1).iterrows():
        sides = [predict_row(row, **{name: row[name] * np.exp(step)}) for step in (1e-4, -1e-4)]
        for target in TARGETS:
            slope = (np.log(sides[0][target]) - np.log(sides[1][target])) / 2e-4
            assert row[f"elasticity_{target}_{name}"] == pytest.approx(slope, abs=1e-4)


def test_a_slope_in_the_batch_lies_between_those_to_whole_batches(rows) -> None:
    """A batch between whole numbers has a part of a micro-batch: time is smooth in it."""
    row = rows[(rows.batch > 2) & (rows.strategy == STRATEGIES[1])].iloc[0]
    fewer, here, more = (
        predict_row({**row, "batch": row["batch"] + step})["epoch_time"] for step in (-1, 0, 1)
    )
    steps = np.log([row["batch"] / (row["batch"] - 1), (row["batch"] + 1) / row["batch"]])
    sides = np.log([here / fewer, more / here]) / steps
    assert min(sides) - 1e-3 <= row["elasticity_epoch_time_batch"] <= max(sides) + 1e-3


def test_a_row_has_the_settings_of_its_layout(rows) -> None:
    columns = ["degree_tensor", "micro", "zero", "recompute_blocks", "recompute_full", "sequence"]
    of_layout = rows[rows.strategy == STRATEGIES[1]][columns].drop_duplicates()
    assert of_layout.to_numpy().tolist() == [[2, 1, 1, 1, 0, 0]]
    assert (rows.degree_data * rows.degree_tensor == rows.pe).all()


def test_a_stream_has_the_same_rows(rows) -> None:
    features, targets, _ = next(paradl.batches(SPACE, 64))
    assert features.shape == (64, len(paradl.batches(SPACE, 1).features))
    assert np.isfinite(targets).all()


def test_open_settings_are_refused() -> None:
    axes = SPACE["axes"] | {"strategy": "data:micro=best"}
    with pytest.raises(InputError, match="state each setting"):
        read_space({"axes": axes})
