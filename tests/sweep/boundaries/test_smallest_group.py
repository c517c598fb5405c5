"""The smallest group that fits is the first that does, of the groups tried one after the other."""

from typing import Any

import pytest
from open_answers import describe_obstacle

import paradl

POWERS = [2**n for n in range(13)]  # ABCI has 4,352 PEs


def ask(strategy: str, pe: int, batch: int, **settings: Any) -> dict[str, Any]:
    chosen = {"oracle": "machine"} | settings
    return paradl.predict(
        "resnet50", strategy, pe, batch, dataset="imagenet", system="abci", settings=chosen
    )


def find_first(strategy: str, pe: int, batch: int, **settings: Any) -> int:
    """The smallest group, asking for each."""
    if "+" in strategy:
        sizes = [size for size in range(1, pe + 1) if pe % size == 0]
        query = [(f"{strategy}:group={size}", pe) for size in sizes]
    else:
        sizes = sorted({*POWERS[:8], *(size for size in range(1, pe + 1) if pe % size == 0)})
        query = [(strategy, size) for size in sizes]
    return next(
        (
            size
            for size, (size_, count) in zip(sizes, query, strict=True)
            if ask(size_, count, batch, **settings)["feasible"]
        ),
        0,
    )


@pytest.mark.parametrize(
    ("strategy", "pe", "batch", "settings", "expected"),
    [
        ("spatial", 1, 512, {}, 4),
        ("pipeline", 1, 512, {}, 8),
        ("pipeline", 6, 512, {}, 6),  # a divisor of the PEs asked for
        ("filter", 8, 512, {}, 0),
        ("data+spatial", 8, 512, {}, 4),
        ("data+spatial", 6, 512, {}, 6),
        ("data+spatial:group=2", 8, 32, {}, 1),
        ("spatial", 1, 32, {"oracle": "paper"}, 2),
        ("spatial", 1, 32, {"oracle": "paper", "conventions": "authors"}, 8),
        ("data+pipeline", 8, 32, {"oracle": "paper"}, 2),
        # b = B p2 / p: of 4 PEs 256 samples in groups of one, and more in larger ones.
        ("data+filter", 8, 1024, {"scaling": "strong"}, 1),
        ("data+filter", 4, 1024, {"scaling": "strong"}, 0),
        # Less than a sample a replica, of more than 4 replicas.
        ("data+spatial", 32, 4, {"scaling": "strong"}, 8),
    ],
)
def test_it_is_the_first_that_is_allowed(strategy, pe, batch, settings, expected) -> None:
    answer = ask(strategy, pe, batch, **settings)
    assert answer["smallest_group"] == expected
    base = strategy.partition(":")[0]
    assert find_first(base, pe, batch, **settings) == expected


@pytest.mark.parametrize(
    ("strategy", "batch", "settings"),
    [("pipeline", 1536, {"recompute": "full"}), ("data+pipeline", 768, {})],
)
def test_any_segments_will_do_for_the_best(strategy, batch, settings) -> None:
    """Of many segments fewer PEs hold a batch."""
    counts = (1, 4, 16, 64)
    values = [
        ask(f"{strategy}:segments={count}", 8, batch, **settings)["smallest_group"]
        for count in counts
    ]
    best = ask(f"{strategy}:segments=best", 8, batch, **settings)["smallest_group"]
    assert best == min(size for size in values if size)
    assert values[0] == 0


@pytest.mark.parametrize("strategy", ["data", "serial"])
def test_there_is_none_without_groups(strategy) -> None:
    assert ask(strategy, 1, 32)["smallest_group"] is None


def test_samples_that_do_not_fit_the_model_fit_no_group() -> None:
    answer = paradl.predict(
        "alexnet", "data+spatial", 8, 256, dataset="cosmoflow-128", system="abci"
    )
    assert answer["smallest_group"] is None


def test_an_explanation_tells_it_too() -> None:
    answer = paradl.explain("resnet50", "spatial", 1, 512, dataset="imagenet", system="abci")
    assert answer["smallest_group"] == 4


@pytest.mark.parametrize(
    ("strategy", "pe", "group"),
    [
        ("data", 8, ""),
        ("spatial", 2, "; the smallest group that fits has 4 PEs"),
        ("filter", 8, "; no group fits"),
    ],
)
def test_memory_that_is_too_small_has_a_way_out(strategy, pe, group) -> None:
    answer = ask(strategy, pe, 512)
    batch = answer["largest_batch"]
    assert f" {batch} samples" in describe_obstacle(answer)
    assert describe_obstacle(answer).endswith(group)
    assert ask(strategy, pe, batch)["feasible"]


def test_not_one_sample_may_fit() -> None:
    answer = paradl.predict("cosmoflow", "data", 1, 1, dataset="cosmoflow-512", system="abci")
    assert describe_obstacle(answer).endswith(": memory; not one sample fits")


def test_serial_is_one_pe() -> None:
    obstacle = describe_obstacle(ask("serial", 2, 8))
    assert obstacle.endswith("one PE")


@pytest.mark.parametrize(
    ("group", "advice"),
    [
        (3, " 2, 4, 8, 16, 32, 64"),
        (128, " 2, 4, 8, 16, 32, 64"),
    ],
)
def test_groups_that_would_divide_are_listed(group, advice) -> None:
    obstacle = describe_obstacle(ask(f"data+filter:group={group}", 64, 8))
    assert "group_does_not_divide" in obstacle
    assert obstacle.endswith(advice)


def test_the_limit_of_a_strategy_is_named() -> None:
    obstacle = describe_obstacle(ask("filter", 4096, 8))
    assert "too_many_pes" in obstacle
    assert "min F" in obstacle
