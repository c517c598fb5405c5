"""Layers one by one: they add up to the network, the times and the memory."""

import math
from typing import Any

import pytest

import paradl

IMAGENET: Any = {"dataset": "imagenet", "system": "abci"}
STRATEGIES = ("data+filter", "data+spatial")


def test_shapes_have_all_items():
    answer = paradl.explain("alexnet", "data", 4, 64, **IMAGENET)
    for row in answer["layers"]:
        assert math.prod(row["output"]) == row["y"], row["layer"]
    assert answer["layers"][0]["output"] == [64, 55, 55]
    assert answer["layers"][-1]["output"] == [1000]


def test_sequences_have_positions():
    layers = paradl.explain("vit_b_16", "filter", 4, 64, **IMAGENET)["layers"]
    assert [768, 197] in [row["output"] for row in layers]


def test_products_are_the_published_ones():
    """AlexNet's: 714 million multiply-accumulates (torchvision: 0.71 GFLOPS)."""
    layers = paradl.explain("alexnet", "data", 4, 64, **IMAGENET)["layers"]
    assert sum(row["macs"] for row in layers) == pytest.approx(714e6, rel=0.01)
    assert not any(row["macs"] for row in layers if row["kind"] in ("relu", "maxpool"))


@pytest.mark.parametrize("oracle", ["machine", "paper"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_both_passes_are_the_compute(strategy, oracle):
    answer = paradl.explain("alexnet", strategy, 8, 64, **IMAGENET, settings={"oracle": oracle})
    seconds = 64 * sum(row["forward"] + row["backward"] for row in answer["layers"])
    passes = answer["samples"] / answer["global_batch"]
    assert seconds * passes == pytest.approx(answer["terms"]["forward_backward"])


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_table_iii_is_the_sum_of_its_layers(strategy):
    answer = paradl.explain(
        "alexnet", strategy, 8, 64,
        **IMAGENET, parameters={"gamma": 0.3}, settings={"oracle": "paper"},
    )  # fmt: skip
    assert sum(row["memory"] for row in answer["layers"]) == pytest.approx(answer["memory"])


def test_stages_of_table_iii_are_sums_of_their_layers():
    answer = paradl.explain("alexnet", "pipeline", 4, 64, **IMAGENET, settings={"oracle": "paper"})
    stages = [
        sum(row["memory"] for row in answer["layers"] if row["stage"] == stage)
        for stage in (1, 2, 3, 4)
    ]
    assert max(stages) == pytest.approx(answer["memory"])
