import re
from typing import Any

import pytest

import paradl

IMAGENET: Any = {"dataset": "imagenet", "system": "abci"}
UNIT = re.compile(r"(?<=[\de]) (?:s|B/s|B)(?![A-Za-z/])")
STATED = re.compile(
    r"^(?:(?P<passes>[\d.]+) x \()?(?:.*, )?(?P<seconds>[-+.e\d]+ s)(?: exposed)?\)?$"
)


def evaluated(numbers: str) -> float:
    """What a term's numbers come to, their units left out.

    Where they would fill lines, their seconds stand at the end, for each pass.
    """
    stated = STATED.match(numbers)
    if stated:
        numbers = f"{stated['passes'] or 1} x {stated['seconds']}"
    return eval(UNIT.sub("", numbers).replace("x", "*"), {"__builtins__": {}})


STRATEGIES = (
    *("data", "spatial", "pipeline", "filter", "channel"),
    *("data+spatial", "data+pipeline:segments=8", "data+filter", "data+channel"),
)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("oracle", "iterations", "accumulate"),
    [
        ("machine", "exact", 1),
        ("machine", "ceil", 1),
        ("machine", "exact", 3),
        ("paper", "ceil", 3),
    ],
)
def test_the_numbers_come_to_the_seconds_they_state(strategy, oracle, iterations, accumulate):
    explanation = paradl.explain(
        "alexnet",
        strategy,
        8,
        64,
        **IMAGENET,
        parameters={"accumulate": accumulate},
        settings={"iterations": iterations, "oracle": oracle},
    )
    assert explanation["formulas"]
    for row in explanation["formulas"]:
        assert evaluated(row["numbers"]) == pytest.approx(row["seconds_per_iteration"], rel=1e-3)


@pytest.mark.parametrize("stage", [1, 2, 3])
def test_replicas_that_divide_states_state_their_seconds(stage):
    """An update each of its own part; a third stage sends half as much again, at least."""
    explanation, plain = (
        paradl.explain("vgg16", strategy, 64, 64, **IMAGENET, settings={"optimizer": "adam"})
        for strategy in (f"data:zero={stage}", "data")
    )
    for row in explanation["formulas"]:
        assert evaluated(row["numbers"]) == pytest.approx(row["seconds_per_iteration"], rel=1e-3)
    seconds, before = (
        {row["term"]: row["seconds_per_iteration"] for row in value["formulas"] + value["hidden"]}
        for value in (explanation, plain)
    )
    assert seconds["weight_update"] == pytest.approx(before["weight_update"] / 64)
    sent, once = (
        value["gradient_exchange"] + value.get("hidden_communication", 0.0)
        for value in (seconds, before)
    )
    assert sent == pytest.approx(once * (1.5 if stage == 3 else 1))


@pytest.mark.parametrize("oracle", ["machine", "paper"])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_are_the_whole(strategy, oracle):
    explanation = paradl.explain(
        "resnet50", strategy, 8, 64, **IMAGENET, settings={"oracle": oracle}
    )
    assert sum(row["part"] for row in explanation["formulas"]) == pytest.approx(1)
    assert sum(row["seconds_per_epoch"] for row in explanation["formulas"]) == pytest.approx(
        explanation["epoch_time"]
    )
    assert {row["term"] for row in explanation["formulas"]} | {"hidden_communication"} == {
        *(term for term, seconds in explanation["terms"].items() if seconds),
        "hidden_communication",
    }


def test_what_is_hidden_is_stated_beside_the_whole():
    plain, ddp = (
        paradl.explain("resnet50", "data", 8, 64, dataset="imagenet", system=f"abci{how}")
        for how in ("", ":software=ddp")
    )
    assert plain["hidden"] == []
    (row,) = ddp["hidden"]
    assert row["term"] == "hidden_communication"
    assert row["seconds_per_epoch"] == ddp["terms"]["hidden_communication"] > 0
    assert evaluated(row["numbers"]) == pytest.approx(row["seconds_per_iteration"])


def test_a_pipeline_says_what_crosses_its_cuts():
    explanation = paradl.explain("resnet50", "pipeline", 4, 64, **IMAGENET)
    (sent,) = (row for row in explanation["formulas"] if row["term"] == "point_to_point")
    assert sent["formula"].endswith("P2P = alpha + b/S a cut beta, cut: items across it")


@pytest.mark.parametrize("oracle", ["machine", "paper"])
def test_layers_send_what_the_halos_are(oracle):
    """Table III's are one less than the kernel, the machine's no more than windows share."""
    explanation = paradl.explain(
        "alexnet", "spatial", 4, 64, **IMAGENET, settings={"oracle": oracle}
    )
    (halos,) = (row for row in explanation["formulas"] if row["term"] == "halo_exchange")
    bytes_sent = float(re.findall(r"2 x ([-+.e\d]+) B", halos["numbers"])[0])
    items = sum(row["halo_items"] for row in explanation["layers"])
    assert 64 * explanation["parameters"]["delta"] * items == pytest.approx(bytes_sent, rel=1e-5)


@pytest.mark.parametrize("strategy", ["data", "data+filter", "data+spatial"])
def test_layers_add_up_to_the_compute(strategy):
    explanation = paradl.explain("alexnet", strategy, 8, 64, **IMAGENET)
    seconds = 64 * sum(row["seconds_per_sample"] for row in explanation["layers"])
    passes = explanation["samples"] / explanation["global_batch"]
    assert seconds * passes == pytest.approx(explanation["terms"]["forward_backward"])


def test_layers_say_what_is_exchanged():
    channel = paradl.explain("alexnet", "channel", 4, 64, **IMAGENET)["layers"]
    assert any(row["gathered_items"] for row in channel)
    assert not any(row["halo_items"] for row in channel)
    spatial = paradl.explain("alexnet", "spatial", 4, 64, **IMAGENET)["layers"]
    assert any(row["halo_items"] for row in spatial)


def test_a_pipeline_says_which_stage():
    layers = paradl.explain("alexnet", "pipeline", 4, 64, **IMAGENET)["layers"]
    stages = [row["stage"] for row in layers]
    assert stages == sorted(stages)
    assert set(stages) == {1, 2, 3, 4}


def test_gradients_sent_are_those_of_all_weights():
    explanation = paradl.explain("alexnet", "data", 8, 64, **IMAGENET)
    named = {row["term"]: row["numbers"] for row in explanation["formulas"]}
    sent = 4 * sum(layer["weights"] for layer in explanation["layers"])
    assert named["gradient_exchange"].startswith(f"m = {sent:.6g} B, ")


PILE: Any = {"dataset": "pile", "system": "dgx-h100"}


def test_what_a_layout_hides_of_an_exchange_is_what_it_does_not_expose():
    hidden = paradl.explain("llama2_7b", "fsdp:micro=1", 16, 16, **PILE)["hidden"]
    assert max(row["seconds_per_iteration"] for row in hidden) > 0
    for row in hidden:
        assert evaluated(row["numbers"]) == pytest.approx(row["seconds_per_iteration"], abs=1e-5)


def test_another_algorithm_is_named():
    explanation = paradl.explain(
        "alexnet", "data", 8, 64, **IMAGENET, settings={"collectives": "tree"}
    )
    named = {row["term"]: row["formula"] for row in explanation["formulas"]}
    assert named["gradient_exchange"].startswith("[tree]")


def test_what_binds_is_stated_in_a_sentence():
    explanation = paradl.explain("alexnet", "data+filter:group=4", 8, 64, **IMAGENET)
    largest = max(explanation["formulas"], key=lambda row: row["part"])
    term = largest["term"].replace("_", " ")
    assert explanation["sentence"].startswith(f"{largest['part']:.0%} of the time is {term}: ")


def test_the_best_group_is_explained():
    explanation = paradl.explain("alexnet", "data+filter:group=best", 8, 64, **IMAGENET)
    assert sum(row["part"] for row in explanation["formulas"]) == pytest.approx(1)
    assert explanation["layers"]


def test_the_best_segments_are_explained():
    explanation = paradl.explain(
        "alexnet", "data+pipeline:group=best,segments=best", 8, 64, **IMAGENET
    )
    assert sum(row["part"] for row in explanation["formulas"]) == pytest.approx(1)
    assert {row["stage"] for row in explanation["layers"]} == set(
        range(1, explanation["group"] + 1)
    )
    bubble = next(row for row in explanation["formulas"] if row["term"] == "pipeline_bubble")
    assert bubble["numbers"].startswith(f"({explanation['group']}-1)/{explanation['segments']} x ")


def test_what_does_not_fit_has_nothing_to_explain():
    explanation = paradl.explain("alexnet", "data", 8, 64, dataset="cosmoflow-128", system="abci")
    assert explanation["formulas"] == explanation["layers"] == []


@pytest.mark.parametrize("segments", [1, 4])
def test_a_placed_group_is_explained_in_segments(segments):
    strategy = f"data+placement:group=2,segments={segments}"
    explanation = paradl.explain("alexnet", strategy, 4, 16, dataset="imagenet", system="dgx1-v100")
    assert explanation["segments"] == segments
    assert explanation["launch"]["micro_batches"] == segments
    assert explanation["launch"]["micro_batch"] == 16 / segments
    for row in explanation["formulas"]:
        assert evaluated(row["numbers"]) == pytest.approx(row["seconds_per_iteration"], rel=1e-3)
    assert sum(row["part"] for row in explanation["formulas"]) == pytest.approx(1)
