"""Batches of a stream differ, equal the oracle's answers and cover the whole space."""

import jax
import numpy as np
import pytest
from sampled_spaces import SPACE

from paradl.grids.reading.errors import InputError
from paradl.sweep.questions.predict import predict
from paradl.sweep.samples.features import FEATURES
from paradl.sweep.samples.stream import Stream, batches

# Few tables and small stripes: with slopes, 65,536 rows are evaluated at a time.
SLOPED = SPACE | {
    "axes": SPACE["axes"] | {"system": "dgx-a100", "strategy": "data"},
    "oracle": "paper",
}
SYSTEMS = {16: "abci", 43: "dgx-a100"}  # by their memory [GB]


@pytest.fixture(scope="module")
def stream() -> Stream:
    return batches(SPACE, 4096, 1)


def test_batches_have_the_shapes_of_their_names(stream) -> None:
    batch = next(stream)
    assert batch.features.shape == (4096, len(stream.features))
    assert batch.targets.shape == (4096, len(stream.targets))
    assert batch.gradients.shape == (4096, 4, 0)
    assert {array.dtype for array in batch} == {np.dtype(np.float32)}
    assert set(stream.features) <= set(FEATURES)


def test_rows_equal_predictions(stream) -> None:
    batch = next(stream)
    frame = dict(zip(stream.features, np.asarray(batch.features, float).T, strict=True))
    targets = dict(zip(stream.targets, np.asarray(batch.targets).T, strict=True))
    data = (frame["degree_data"] == frame["pe"]) & (frame["pe"] > 8)
    rows = np.flatnonzero(data)[:: max(1, int(data.sum()) // 5)]
    assert len(rows) >= 3
    for row in rows:
        model = "alexnet" if frame["layer_count"][row] < 50 else "resnet50"
        answer = predict(
            model,
            "data",
            int(frame["pe"][row]),
            int(frame["batch"][row]),
            system=SYSTEMS[round(frame["memory_capacity"][row] / 1e9)],
            dataset="imagenet-226",
            parameters={name: frame[name][row] for name in ("inter_bandwidth", "inter_latency")},
        )
        # The stream's inputs have single precision.
        np.testing.assert_allclose(targets["epoch_time"][row], answer["epoch_time"], rtol=1e-5)
        assert targets["feasible"][row] == answer["feasible"]


def test_batches_differ_and_follow_from_the_key() -> None:
    key = jax.random.key(5)
    first, again = (batches(SLOPED, 4096, key, gradients=True) for _ in range(2))
    one, other = next(first), next(first)
    np.testing.assert_array_equal(one.features, next(again).features)
    assert not np.array_equal(one.features, other.features)


def test_a_batch_of_any_size_is_cut_off_the_same_rows() -> None:
    few, many = (batches(SLOPED, size, 5, gradients=True) for size in (1000, 70_000))
    whole = next(many)  # more rows than are evaluated at a time
    for number in range(2):
        part = next(few)
        rows = slice(1000 * number, 1000 * (number + 1))
        for small, large in zip(part, whole, strict=True):
            np.testing.assert_array_equal(small, large[rows])


def test_a_batch_has_rows_of_many_problems(stream) -> None:
    frame = dict(zip(stream.features, np.asarray(next(stream).features).T, strict=True))
    problems = np.stack([frame["layer_count"], frame["memory_capacity"]], axis=1)
    shares, first = (
        np.unique(rows, axis=0, return_counts=True)[1] / len(rows)
        for rows in (problems, problems[:160])
    )
    assert len(shares) == 4
    # Stripes take turns, so any part of a batch is mixed like the whole.
    np.testing.assert_array_equal(first, shares)


def test_a_batch_in_use_does_not_change(stream) -> None:
    """Its memory is reused only when nothing refers to it: neither a batch nor a view of it."""
    held = next(stream)
    view, sums = np.asarray(next(stream).features), jax.numpy.sum(next(stream).features)
    before = np.array(held.features), np.array(view)
    for _ in range(4):
        next(stream)
    np.testing.assert_array_equal(held.features, before[0])
    np.testing.assert_array_equal(view, before[1])
    assert np.isfinite(sums)


def test_links_of_outer_levels_follow_the_drawn_ones() -> None:
    systems = {"system": ["dgx1-v100", "abci"], "strategy": ["data"], "model": "alexnet"}
    drawn = batches(SPACE | {"axes": SPACE["axes"] | systems}, 1024, 2)
    frame = dict(zip(drawn.features, np.asarray(next(drawn).features).T, strict=True))
    outer, inter = frame["level2_bandwidth"], frame["inter_bandwidth"]
    # 1: the machine with racks; the other lacks this level.
    assert set(np.where(outer == inter, 1.0, outer)) == {0.0, 1.0}
    assert len(np.unique(inter)) > 1000
    # A missing level has no latency either.
    np.testing.assert_array_equal(frame["level2_latency"] == 0, outer == 0)


def test_gradients_are_those_of_the_targets() -> None:
    """Against differences of predictions of a row, input by input."""
    stream = batches(SLOPED, 64, 3, gradients=True)
    batch = next(stream)
    frame = dict(zip(stream.features, np.asarray(batch.features, float).T, strict=True))
    alexnet = frame["layer_count"] < 50
    feasible = np.asarray(batch.targets)[:, -1] == 1
    row = int(np.flatnonzero((frame["pe"] > 8) & alexnet & feasible)[0])
    links = [name for name in stream.inputs if name != "batch"]  # batches are whole numbers
    values = {name: float(frame[name][row]) for name in links}

    def answer(changed: str, factor: float) -> np.ndarray:
        predicted = predict(
            "alexnet",
            "data",
            int(frame["pe"][row]),
            int(frame["batch"][row]),
            system="dgx-a100",
            dataset="imagenet-226",
            parameters=values | {changed: values[changed] * factor},
            settings={"oracle": "paper"},
        )
        return np.log([predicted[target] for target in stream.targets[:-1]])

    for name in links:
        expected = (answer(name, 1.001) - answer(name, 1 / 1.001)) / (2 * np.log(1.001))
        gradient = batch.gradients[row, :, stream.inputs.index(name)]
        np.testing.assert_allclose(gradient, expected, atol=1e-4)


def test_draws_cover_the_space(stream) -> None:
    batch = np.concatenate([np.asarray(next(stream).features) for _ in range(4)])
    frame = dict(zip(stream.features, batch.T, strict=True))
    logarithms = np.log10(frame["inter_bandwidth"])
    assert 9 <= logarithms.min() < 9.01
    assert 10.99 < logarithms.max() <= 11.0001
    assert abs(logarithms.mean() - 10) < 0.05
    assert set(frame["pe"]) == {2.0**n for n in range(9)}
    assert frame["batch"].min() == 8
    assert (frame["batch"] == np.round(frame["batch"])).all()


def test_bad_input() -> None:
    with pytest.raises(InputError, match=r"^batch_size: "):
        batches(SPACE, 0)
    with pytest.raises(InputError, match=r"^spec: "):
        batches(
            SPACE
            | {"axes": SPACE["axes"] | {"batch": 8, "inter_bandwidth": [1e9], "inter_latency": 0}},
            8,
        )
