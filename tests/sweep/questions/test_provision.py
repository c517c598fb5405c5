"""The inverse questions, each answer put back into `predict`."""

import pytest
from open_answers import list_needs, list_provisions

import paradl
from paradl.grids.design_space import SpaceValues, make_grid, make_product
from paradl.grids.grid import Grid
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.units import parse_duration

PAPER = {"oracle": "paper"}


def read_grid(**options):
    return make_grid(SpaceValues("alexnet", dataset="imagenet", system="abci", **options))


def predict(strategy, pe, batch, settings=None, **parameters):
    return paradl.predict(
        "alexnet",
        strategy,
        pe,
        batch,
        dataset="imagenet",
        system="abci",
        parameters=parameters,
        settings=settings,
    )


def test_the_fewest_pes_that_meet_a_deadline():
    deadline = predict("data", 21, 64, PAPER)["epoch_time"] * 10.001
    grid = read_grid(pe="pow2:1..64", batch=64, strategy="data,serial", settings=PAPER)
    best, alone = list_provisions(grid, deadline, epochs=10, price=2.0)
    assert (best["strategy"], best["pe"], best["global_batch"]) == ("data", 21, 21 * 64)
    assert best["train_time"] <= deadline < 10 * predict("data", 20, 64, PAPER)["epoch_time"]
    assert best["pe_hours"] == pytest.approx(21 * best["train_time"] / 3600)
    assert best["cost"] == pytest.approx(2 * best["pe_hours"])
    assert best["holds"] is None
    assert list_provisions(grid, f"{deadline!r} s", epochs=10, price=2.0) == [best, alone]
    assert alone["pe"] is None
    assert alone["reason"].startswith("at best ")
    assert alone["reason"].endswith(" h, on 1 PE")


def test_a_deadline_at_the_median_holds_in_half_of_the_cases():
    grid = read_grid(pe=1, batch=32, strategy="data")
    (row,) = list_provisions(grid, 5 * predict("data", 1, 32)["epoch_time"] * (1 + 1e-6), epochs=5)
    assert row["pe"] == 1
    assert row["holds"] == pytest.approx(0.5, abs=1e-3)


def test_deadlines_and_epochs_that_cannot_be(mixed):
    with pytest.raises(InputError, match=r"^deadline: .*0"):
        list_provisions(mixed, 0)
    with pytest.raises(InputError, match=r"^epochs: "):
        list_provisions(read_grid(pe=4, batch=8, strategy="data", settings=PAPER), 60)


def test_a_bandwidth_that_a_goal_needs():
    grid = read_grid(pe=64, batch=64, strategy="data", settings=PAPER)
    (row,) = list_needs(grid, "inter_bandwidth", efficiency=0.8)
    together = predict("data", 64, 64, PAPER, inter_bandwidth=f"{row['needed']!r} B/s")
    alone = predict("serial", 1, 64, PAPER)
    reached = alone["epoch_time"] / together["epoch_time"] / 64
    assert reached == pytest.approx(0.8, rel=1e-7)
    assert row["own"] == 12.5e9


def test_never_tells_what_is_reached_at_best():
    grid = read_grid(pe=64, batch=1, strategy="data", settings=PAPER)
    (row,) = list_needs(grid, "inter_latency", efficiency=0.99)
    assert row["needed"] is None
    assert row["reason"].endswith("bottleneck: gradient_exchange")
    (row,) = list_needs(grid, "inter_bandwidth", efficiency=0.99)
    reached = predict("serial", 1, 1, PAPER)["epoch_time"] / 64
    reached /= predict("data", 64, 1, PAPER, inter_bandwidth="12.5 PB/s")["epoch_time"]
    assert row["reason"].startswith(f"never: {reached:.0%} at best, with 12.5 PB/s; ")
    assert row["reason"].endswith("start-ups of gradient_exchange")


def test_memory_and_batch():
    grid = read_grid(pe=8, batch=100_000, strategy="data", settings=PAPER)
    predicted = predict("data", 8, 100_000, PAPER)
    (memory,) = list_needs(grid, "memory_capacity")
    assert memory["needed"] == pytest.approx(predicted["memory"])
    (batch,) = list_needs(grid, "batch")
    assert batch["needed"] == predicted["largest_batch"]


def test_the_largest_batch_has_no_bound_but_memory():
    room = {"memory_capacity": "20 TB"}
    (batch,) = list_needs(read_grid(pe=8, batch=32, strategy="data", parameters=room), "batch")
    assert batch["needed"] == predict("data", 8, 32, None, **room)["largest_batch"] > 2**20


def test_the_largest_batch_where_memory_depends_on_fewer_choices_than_limits():
    """Of Table III's pipelines in replicas, segments are no matter of memory."""

    def make(batch: int | None) -> Grid:
        options = SpaceValues(
            *("gnmt", 4, batch, "wmt16-en-de", "abci"), strategy="data+pipeline", settings=PAPER
        )
        return make_grid(options)

    (row,) = list_needs(make(None), "batch")
    batches = (row["needed"], row["needed"] + 1)
    assert [paradl.best(make(batch)).feasible.item() for batch in batches] == [True, False]


def test_the_data_set_bounds_the_batch_of_a_layout_that_memory_does_not():
    """Where no batch is stated, one of more than an epoch is forbidden: by ImageNet's 1,281,167."""
    grid = make_grid(
        SpaceValues("vit_b_16", dataset="imagenet", system="abci", pe=2, strategy="data")
    )
    (row,) = list_needs(grid, "batch")
    assert (row["needed"], row["reason"]) == (1_281_167 // 2, None)


def test_the_largest_batch_of_a_layout_has_no_bound_but_memory():
    room = {"memory_capacity": 80e12}
    cell = {"model": "vit_b_16", "dataset": "imagenet", "system": "abci", "strategy": "data"}
    (row,) = list_needs(make_product(cell | {"pe": 8, "batch": 32}, room, {}), "batch")
    batch = row["needed"]
    assert 2**19 < batch < 2**20
    for samples, fits in ((batch, True), (batch + 1, False)):
        answer = paradl.predict(
            "vit_b_16", "data", 8, samples, dataset="imagenet", system="abci", parameters=room
        )
        assert ("memory" not in answer["limit"]) == fits


@pytest.mark.parametrize(
    ("parameter", "swept", "own"),
    [
        ("inter_bandwidth", ["5 GB/s", "10 GB/s", "20 GB/s"], 12.5e9),
        ("memory_capacity", ["1 GB", "80 GB"], 16e9),
    ],
)
def test_a_swept_parameter_that_is_sought_has_one_answer(parameter, swept, own):
    options = {"pe": [32, 64], "batch": 64, "strategy": "data", "settings": PAPER}
    plain = list_needs(read_grid(**options), parameter, efficiency=0.8)
    rows = list_needs(
        read_grid(**options, parameters={parameter: swept}), parameter, efficiency=0.8
    )
    assert [row["pe"] for row in rows] == [32, 64]
    assert [row["needed"] for row in rows] == [row["needed"] for row in plain]
    assert {row["own"] for row in rows} == {own}
    assert all(parameter not in row for row in rows)


def test_swept_batches_have_one_largest_batch():
    grid = read_grid(
        pe=8,
        batch=[16, 100_000],
        strategy="data",
        settings=PAPER,
        parameters={"memory_capacity": ["16 GB", "32 GB"]},
    )
    rows = list_needs(grid, "batch")
    assert [row["memory_capacity"] for row in rows] == [16e9, 32e9]
    assert rows[0]["needed"] == predict("data", 8, 16, PAPER)["largest_batch"]
    assert [row["own"] for row in rows] == [None, None]
    (chosen,) = list_needs(grid, "batch", {"batch": 16, "memory_capacity": "16 GB"})
    assert (chosen["own"], chosen["needed"]) == (16, rows[0]["needed"])


def test_a_need_without_a_goal(mixed):
    with pytest.raises(InputError, match=r"^efficiency: .*inter_latency"):
        list_needs(mixed, "inter_latency")
    with pytest.raises(InputError, match=r"^need: .*'inter_latncy'.*'inter_latency'"):
        list_needs(mixed, "inter_latncy")


def test_the_fewest_pes_that_probably_meet_a_deadline():
    grid = read_grid(pe="pow2:1..64", batch=64, strategy="data")
    deadline = predict("data", 21, 64)["epoch_time"] * 10.001
    (even,) = list_provisions(grid, deadline, epochs=10)
    (sure,) = list_provisions(grid, deadline, epochs=10, holds=0.9)
    fewer = read_grid(pe=sure["pe"] - 1, batch=64, strategy="data")
    (short,) = list_provisions(fewer, deadline, epochs=10)
    assert even["pe"] < sure["pe"]
    assert short["holds"] < 0.9 <= sure["holds"]


@pytest.mark.parametrize("odds", [0.1, 0.5, 0.9])
def test_a_percentile_of_the_time_is_met_with_its_probability(odds):
    """The intervals that `predict` prints and the odds of a deadline are one distribution."""
    predicted = predict("data", 16, 64)
    percentile = predicted["intervals"]["iteration_time"][f"p{100 * odds:.0f}"]
    deadline = 10 * predicted["epoch_time"] * percentile / predicted["iteration_time"]
    grid = read_grid(pe=16, batch=64, strategy="data")
    (row,) = list_provisions(grid, deadline, epochs=10, holds=odds - 1e-5)
    assert row["holds"] == pytest.approx(odds, abs=1e-5)
    (row,) = list_provisions(grid, deadline, epochs=10, holds=odds + 1e-5)
    assert row["holds"] is None
    # The reason states what would hold, which is beyond the deadline.
    assert read_best(row) > deadline * 0.999


def test_the_batch_whose_bound_is_least_wins_not_the_one_that_is_faster_on_average():
    """The epochs of larger batches are known better: ResNet-50 with 64 or 128 samples per PE."""

    def provision(batch, deadline, holds):
        grid = make_grid(
            SpaceValues(
                "resnet50",
                dataset="imagenet",
                system="abci",
                pe=256,
                batch=batch,
                strategy="data",
                settings={"convergence": "auto"},
                parameters={"memory_capacity": "32 GB"},
            )
        )
        (row,) = list_provisions(grid, deadline, holds=holds)
        return row

    sure, both = 0.9999, [64, 128]
    expected = {batch: read_best(provision(batch, 60, None)) for batch in both}
    bounds = {batch: read_best(provision(batch, 60, sure)) for batch in both}
    assert expected[64] < expected[128]
    assert bounds[128] < bounds[64]
    assert read_best(provision(both, 60, sure)) == bounds[128]
    row = provision(both, (bounds[64] + bounds[128]) / 2, sure)
    assert row["global_batch"] == 128 * row["pe"]
    assert row["holds"] >= sure


def read_best(row):
    """Time [s] that the reason of a missed deadline says is reached at best."""
    value, unit = row["reason"].removeprefix("at best ").split()[:2]
    return parse_duration(f"{value} {unit.rstrip(',')}", "reason", "6 h")


def test_stated_epochs_have_no_spread():
    """Whether or not the design space knows how many there may be."""
    named = {"name": "mine", "model": "alexnet", "dataset": "imagenet", "target": "top1>=0.57"}
    law = {**named, "epochs_min": 50, "critical_batch": 4096, "epochs_variance": 0.25}
    grids = [
        read_grid(pe=16, batch=64, strategy="data", settings=settings)
        for settings in ({}, {"convergence": [law]})
    ]
    deadline = predict("data", 16, 64)["epoch_time"] * 11
    stated, known = (list_provisions(grid, deadline, epochs=10)[0]["holds"] for grid in grids)
    assert stated == known
    assert 0.5 < stated < 1


def test_each_bandwidth_needs_its_own_fewest_pes():
    bandwidths = {"inter_bandwidth": ["1 GB/s", "25 GB/s"]}
    options = {"pe": "pow2:1..256", "batch": 64, "strategy": "data", "settings": PAPER}
    slow, fast = (
        list_provisions(
            read_grid(**options, parameters={"inter_bandwidth": bandwidth}), 1800, epochs=10
        )
        for bandwidth in bandwidths["inter_bandwidth"]
    )
    rows = list_provisions(read_grid(**options, parameters=bandwidths), 1800, epochs=10)
    assert [row["pe"] for row in rows] == [fast[0]["pe"], slow[0]["pe"]]
    assert [row["inter_bandwidth"] for row in rows] == [25e9, 1e9]


@pytest.mark.parametrize(("settings", "holds"), [({}, 1.0), (PAPER, 0.9)])
def test_probabilities_that_cannot_be_met(settings, holds):
    grid = read_grid(pe=4, batch=8, strategy="data", settings=settings)
    with pytest.raises(InputError, match="holds"):
        list_provisions(grid, 60, epochs=1, holds=holds)


@pytest.mark.parametrize(
    ("pe", "scaling", "step"), [(64, "weak", 3), (48, "strong", 36), (48, "weak", 3)]
)
def test_the_largest_batch_of_a_layout_divides_into_its_micro_batches(pe, scaling, step):
    """All of GPipe's micro-batches are in memory at once, of 1F1B's as many as there are stages."""
    gpipe = "data+pipeline:pipeline=4,micro=3,schedule=gpipe"
    options = SpaceValues(
        "llama2_7b",
        pe,
        step,
        "pile",
        "dgx-h100",
        strategy=f"{gpipe},{gpipe.replace('gpipe', '1f1b')}",
        settings={"scaling": scaling},
    )
    largest, any_batch = list_needs(make_grid(options), "batch")
    assert largest["needed"] % step == 0
    fits = [
        paradl.predict(
            "llama2_7b",
            gpipe,
            pe,
            batch,
            dataset="pile",
            system="dgx-h100",
            settings={"scaling": scaling},
        )["feasible"]
        for batch in (largest["needed"], largest["needed"] + step)
    ]
    assert fits == [True, False]
    assert any_batch["needed"] is None
    assert not any_batch["reason"].startswith("never")
