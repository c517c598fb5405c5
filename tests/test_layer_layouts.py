"""Layouts of networks without blocks: what they come to at their limits, exactly."""

from itertools import product
from typing import Any

import pytest

import paradl
from paradl.sweep.cube.variables import name_limits

SYSTEM = "dgx-h100:precision=amp"
STAGES = "data+pipeline:pipeline=4,micro=4"
NETWORKS = ("resnet50", "vgg16", "densenet121", "mobilenet_v2", "efficientnet_b0", "alexnet")


def predict(strategy: str, model: str = "resnet50", pe: int = 32, **more: Any) -> dict[str, Any]:
    return paradl.predict(model, strategy, pe, 32, system=SYSTEM, dataset="imagenet", **more)


def list_numbers(answer: dict[str, Any]) -> list[Any]:
    """Return times, memory and limits; a part of no bytes may be named or not."""
    parts = {name: size for name, size in answer["memory_parts"].items() if size}
    names = ("terms", "memory", "intervals", "limit", "largest_batch", "global_batch")
    return [parts, *(answer[name] for name in names)]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        *((f"data:zero={k},shard=32", f"data:zero={k}") for k in (1, 2, 3)),
        *((f"data:zero={k},shard=1", "data") for k in (1, 2, 3)),
        (f"{STAGES},zero=3,shard=8", f"{STAGES},zero=3"),
        (f"{STAGES},zero=1,shard=1", STAGES),
        # A node of 8 has two replicas of four stages.
        (f"{STAGES},zero=1,shard=node", f"{STAGES},zero=1,shard=2"),
        ("data:zero=1,shard=node", "data:zero=1,shard=8"),
        (f"{STAGES},chunks=1", STAGES),
        ("data:micro=32,recompute=none", "data:micro=32"),
    ],
)
def test_two_words_are_one_run(one: str, two: str) -> None:
    assert list_numbers(predict(one)) == list_numbers(predict(two))


def test_states_are_divided_among_some_replicas() -> None:
    """Of amp with SGD, ZeRO 3 divides all of a weight's bytes; HSDP among a node's PEs."""
    parts = {
        shard: predict(f"data:zero=3,shard={shard}")["memory_parts"] for shard in (1, 2, 8, 32)
    }
    for shard, held in parts.items():
        for name in ("weights", "gradients", "states"):
            assert held[name] == pytest.approx(parts[1][name] / shard, rel=1e-12)


def test_what_does_not_divide_has_no_time() -> None:
    for strategy in (
        "data:zero=1,shard=5",
        f"{STAGES},chunks=2,schedule=gpipe",
        "data+pipeline:pipeline=4,micro=6,chunks=2",  # six micro-batches
        "data+pipeline:pipeline=1,micro=8,chunks=2",
    ):
        answer = predict(strategy)
        assert "does_not_divide" in answer["limit"]
        assert answer["epoch_time"] is None


def test_chunks_shorten_the_bubble() -> None:
    """By their number: 3 / 8 of the slowest stage's work, then 3 / 16 and 3 / 24."""
    for chunks in (1, 2, 3):
        terms = predict(f"{STAGES},chunks={chunks}")["terms"]
        share = terms["pipeline_bubble"] / terms["forward_backward"]
        assert share == pytest.approx(3 / 8 / chunks, rel=1e-12)
    assert predict(f"{STAGES},chunks=2", pe=4)["limit"] == []
    assert "too_many_pes" in predict(f"{STAGES},chunks=20")["limit"]


@pytest.mark.parametrize("model", NETWORKS)
def test_cheap_layers_cost_less_than_all(model: str) -> None:
    none, cheap, full = (
        predict(f"data:micro=32,recompute={again}", model)
        for again in ("none", "layernorm", "full")
    )
    times = [answer["terms"]["forward_backward"] for answer in (none, cheap, full)]
    assert times == sorted(times)
    assert cheap["memory"] <= none["memory"]


def test_a_strategy_decides_what_is_computed_again() -> None:
    """As of networks with blocks, whatever the run says."""
    full: dict[str, Any] = {"settings": {"recompute": "full"}}
    for again in ("none", "layernorm", "full"):
        strategy = f"data:micro=32,recompute={again}"
        assert list_numbers(predict(strategy, **full)) == list_numbers(predict(strategy))


def test_a_sweep_has_the_same_numbers() -> None:
    strategies = [
        "data:zero=3,shard=node",
        "data:zero=1,shard=4",
        "data+pipeline:pipeline=4,chunks=2,micro=4",
        "data:micro=32,recompute=layernorm",
    ]
    cube = paradl.compute_space(
        model=["resnet50", "vgg16"],
        dataset="imagenet",
        system=SYSTEM,
        strategy=strategies,
        pe=[4, 6, 8, 32],
        batch=32,
        settings={"outputs": ["comp_time", "memory", "limit"]},
    )
    for model, strategy, pe in product(("resnet50", "vgg16"), strategies, (4, 6, 8, 32)):
        cell = cube.sel(model=model, strategy=strategy, pe=pe).squeeze()
        answer = predict(strategy, model, pe)
        assert name_limits(int(cell["limit"])) == answer["limit"]
        for name in ("comp_time", "memory"):
            if answer[name] is None:
                assert cell[name].isnull()
            else:
                assert cell[name].item() == pytest.approx(answer[name], rel=1e-6)
