"""Losers: the nearest cell, and changes each of which makes it allowed."""

import pytest
from open_answers import rank_strategies

import paradl
from paradl.grids.design_space import SpaceValues, make_grid

PAPER = {"oracle": "paper"}


def rank(**options):
    grid = make_grid(
        SpaceValues("alexnet", dataset="imagenet", system="abci", settings=PAPER, **options)
    )
    return rank_strategies(grid)


def predict(strategy="data", pe=8, batch=32, settings=None, **parameters):
    return paradl.predict(
        "alexnet",
        strategy,
        pe,
        batch,
        dataset="imagenet",
        system="abci",
        parameters=parameters,
        settings=PAPER | (settings or {}),
    )


@pytest.fixture(scope="module")
def too_large():
    """Data parallelism with more samples than memory holds."""
    (row,) = rank(strategy="data", pe=8, batch=100_000)
    return row["rejection"]


def test_memory_is_told_by_how_much(too_large):
    predicted = predict(batch=100_000)
    assert too_large["limit"] == ["memory"]
    assert too_large["memory"] == pytest.approx(predicted["memory"])
    assert too_large["memory_capacity"] == predicted["parameters"]["memory_capacity"]


def test_the_largest_batch_is_the_largest(too_large):
    batch = too_large["changes"]["batch"]
    assert batch == predict(batch=100_000)["largest_batch"]
    assert predict(batch=batch)["feasible"]
    assert not predict(batch=batch + 1)["feasible"]


@pytest.mark.parametrize("beyond", [1, 2, 3])
def test_the_largest_batch_is_found_from_just_beyond_it(too_large, beyond):
    """Whether the batch that was asked about is odd or even."""
    largest = too_large["changes"]["batch"]
    (row,) = rank(strategy="data", pe=8, batch=largest + beyond)
    assert row["rejection"]["changes"]["batch"] == largest


def test_the_least_memory_is_enough(too_large):
    capacity = too_large["changes"]["memory_capacity"]
    assert predict(batch=100_000, memory_capacity=capacity)["feasible"]
    assert not predict(batch=100_000, memory_capacity=0.999 * capacity)["feasible"]


def test_no_other_pe_count_helps_data_parallelism(too_large):
    assert "pe" not in too_large["changes"]


def test_the_nearest_allowed_pe_count():
    (row,) = rank(strategy="filter", pe=100, batch=8)
    assert row["limit"] == ["too_many_pes"]
    # AlexNet's narrowest layer has 64 filters.
    assert row["rejection"]["changes"] == {"pe": 64}
    assert predict("filter", 64, 8)["feasible"]
    assert not predict("filter", 65, 8)["feasible"]


def test_a_group_that_does_not_divide():
    (row,) = rank(strategy="data+filter:group=8", pe=12, batch=8)
    changes = row["rejection"]["changes"]
    assert row["rejection"]["limit"] == ["group_does_not_divide"]
    assert (changes["group"], changes["pe"]) == (2, 8)
    assert predict("data+filter:group=2", 12, 8)["feasible"]
    assert predict("data+filter:group=8", changes["pe"], 8)["feasible"]


def test_a_batch_beyond_what_is_considered():
    (row,) = rank(strategy="data", pe=8, batch=32, parameters={"max_global_batch": 128})
    assert row["rejection"]["changes"] == {"batch": 16, "pe": 4}


def test_the_nearest_cell_has_the_fewest_reasons():
    (row,) = rank(strategy="filter", pe="100,200", batch="8,1000000")
    assert (row["rejection"]["pe"], row["rejection"]["batch"]) == (200, 8)
    assert row["limit"][0] == "too_many_pes"
    # Too many samples for the memory of either, and too many PEs beside.
    (row,) = rank(strategy="filter", pe="64,128", batch=1_000_000)
    assert (row["rejection"]["pe"], row["rejection"]["limit"]) == (64, ["memory"])


@pytest.mark.parametrize(("batch", "nearest"), [(64, 63), (2, 3)])
def test_the_nearest_batch_that_micro_batches_divide(batch, nearest):
    space = SpaceValues("llama2_7b", 64, batch, "pile", "dgx-h100", strategy="data:micro=3,zero=3")
    (row,) = rank_strategies(make_grid(space))
    assert row["rejection"]["changes"]["batch"] == nearest
