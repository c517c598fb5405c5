"""Rows have the percentiles, epochs and times to a target that a spec or a store requests."""

from typing import Any

import numpy as np
import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.engine.run import run
from paradl.sweep.questions.predict import predict
from paradl.sweep.samples.read import open_samples
from paradl.sweep.samples.sample import sample
from paradl.sweep.samples.space import read_space
from paradl.sweep.samples.stream import batches

SPACE: dict[str, Any] = {
    "axes": {
        "model": ["resnet50"],
        "dataset": "imagenet",
        "system": ["dgx-a100"],
        "strategy": ["data+filter:group=best"],  # answered in numpy: nothing is compiled
        "pe": [16, 64],
        "batch": {"loguniform": [8, 64]},
    },
    "convergence": "auto",
    "outputs": ["epoch_time_p10", "epoch_time_p90", "train_time_p90", "comm_time_p50"],
}
REQUESTED = ("epochs", "train_time", *SPACE["outputs"])


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("outputs") / "rows"
    sample(SPACE, path, 12, gradients=None)
    samples = open_samples(path)
    return samples.read([column["name"] for column in samples.facts["columns"]])


def test_they_equal_predictions(rows) -> None:
    for _, row in rows.iterrows():
        answer = predict(
            row.model,
            row.strategy,
            int(row.pe),
            int(row.batch),
            system=row.system_name,
            dataset=row.dataset,
            settings={"convergence": "auto"},
        )
        iterations = answer["epoch_time"] / answer["iteration_time"]
        intervals = answer["intervals"]
        expected = {
            "epochs": answer["epochs"],
            "train_time": answer["train_time"],
            "epoch_time_p10": intervals["iteration_time"]["p10"] * iterations,
            "epoch_time_p90": intervals["iteration_time"]["p90"] * iterations,
            "comm_time_p50": intervals["iteration_comm_time"]["p50"] * iterations,
            "train_time_p90": intervals["train_time"]["p90"],
        }
        for name, value in expected.items():
            np.testing.assert_allclose(row[name], value, rtol=2e-6, err_msg=name)


def test_streams_have_them_as_targets(rows) -> None:
    stream = batches(SPACE, 64, 1)
    assert stream.targets == (*stream.targets[:4], *REQUESTED, "feasible")
    targets = dict(zip(stream.targets, np.asarray(next(stream).targets).T, strict=True))
    defined = np.isfinite(targets["epoch_time"])
    assert defined.any()
    np.testing.assert_array_less(
        targets["epoch_time_p10"][defined], targets["epoch_time_p90"][defined]
    )
    np.testing.assert_allclose(
        targets["train_time"], targets["epochs"] * targets["epoch_time"], rtol=1e-5
    )


def test_a_model_without_a_law_has_no_epochs() -> None:
    axes = SPACE["axes"] | {"model": ["resnet50", "alexnet"]}
    stream = batches(SPACE | {"axes": axes, "outputs": []}, 256, 1)
    batch = next(stream)
    layers = np.asarray(batch.features)[:, stream.features.index("layer_count")]
    epochs = np.asarray(batch.targets)[:, stream.targets.index("epochs")]
    assert np.isnan(epochs[layers == layers.min()]).all()
    assert np.isfinite(epochs[layers == layers.max()]).all()


def test_a_store_passes_them_on_and_a_note_names_the_rest(tmp_path) -> None:
    axes = SPACE["axes"] | {"batch": [8, 64], "inter_bandwidth": [1e9, 1e10]}
    outputs = ["comp_time", "straggler_wait", "epoch_time_p90"]
    run(SPACE | {"axes": axes, "outputs": outputs}, tmp_path / "cube.zarr")
    space = read_space(tmp_path / "cube.zarr")
    assert space.outputs == ("epochs", "train_time", "epoch_time_p90")
    written = sample(tmp_path / "cube.zarr", tmp_path / "rows", 4, gradients=None)
    (note,) = written.notes
    assert "straggler_wait" in note
    columns = {column["name"] for column in open_samples(written.path).facts["columns"]}
    assert {"epochs", "train_time", "epoch_time_p90"} <= columns


def test_slopes_of_the_time_to_a_target_are_refused(tmp_path) -> None:
    with pytest.raises(InputError, match="outputs"):
        sample(SPACE | {"outputs": ["elasticity_train_time_batch"]}, tmp_path / "rows", 4)
