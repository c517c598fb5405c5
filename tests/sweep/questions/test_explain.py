import re

import pytest

import sweep

UNIT = re.compile(r"(?<=[\de]) (?:s|B/s|B)(?![A-Za-z/])")


def evaluated(numbers: str) -> float:
    """What a term's numbers come to, their units left out."""
    return eval(UNIT.sub("", numbers).replace("x", "*"), {"__builtins__": {}})


STRATEGIES = (
    *("data", "spatial", "pipeline", "filter", "channel"),
    *("data+spatial", "data+pipeline:segments=8", "data+filter", "data+channel"),
)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("iterations", ["exact", "ceil"])
def test_the_numbers_come_to_the_seconds_they_state(strategy, iterations):
    found = sweep.explain(
        "alexnet", strategy, 8, 64, dataset="imagenet", settings={"iterations": iterations}
    )
    assert found["formulas"]
    for row in found["formulas"]:
        assert evaluated(row["numbers"]) == pytest.approx(row["seconds_per_iteration"], rel=1e-3)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_parts_are_the_whole(strategy):
    found = sweep.explain("resnet50", strategy, 8, 64, dataset="imagenet")
    assert sum(row["part"] for row in found["formulas"]) == pytest.approx(1)
    assert sum(row["seconds_per_epoch"] for row in found["formulas"]) == pytest.approx(
        found["epoch_time"]
    )
    assert {row["term"] for row in found["formulas"]} == {
        term for term, seconds in found["terms"].items() if seconds
    }


@pytest.mark.parametrize("strategy", ["data", "data+filter", "data+spatial"])
def test_layers_add_up_to_the_compute(strategy):
    found = sweep.explain("alexnet", strategy, 8, 64, dataset="imagenet")
    seconds = 64 * sum(row["seconds_per_sample"] for row in found["layers"])
    passes = found["samples"] / found["global_batch"]
    assert seconds * passes == pytest.approx(found["terms"]["forward_backward"])


def test_layers_say_what_is_exchanged():
    channel = sweep.explain("alexnet", "channel", 4, 64, dataset="imagenet")["layers"]
    assert any(row["gathered_items"] for row in channel)
    assert not any(row["halo_items"] for row in channel)
    spatial = sweep.explain("alexnet", "spatial", 4, 64, dataset="imagenet")["layers"]
    assert any(row["halo_items"] for row in spatial)


def test_a_pipeline_says_which_stage():
    layers = sweep.explain("alexnet", "pipeline", 4, 64, dataset="imagenet")["layers"]
    stages = [row["stage"] for row in layers]
    assert stages == sorted(stages)
    assert set(stages) == {1, 2, 3, 4}


def test_another_algorithm_is_named():
    found = sweep.explain(
        "alexnet", "data", 8, 64, dataset="imagenet", settings={"collectives": "tree"}
    )
    named = {row["term"]: row["formula"] for row in found["formulas"]}
    assert named["gradient_exchange"].startswith("[tree]")


def test_the_best_group_is_explained():
    found = sweep.explain("alexnet", "data+filter:group=best", 8, 64, dataset="imagenet")
    assert sum(row["part"] for row in found["formulas"]) == pytest.approx(1)
    assert found["layers"]


def test_the_best_segments_are_explained():
    found = sweep.explain(
        "alexnet", "data+pipeline:group=best,segments=best", 8, 64, dataset="imagenet"
    )
    assert sum(row["part"] for row in found["formulas"]) == pytest.approx(1)
    assert {row["stage"] for row in found["layers"]} == set(range(1, found["group"] + 1))
    bubble = next(row for row in found["formulas"] if row["term"] == "pipeline_bubble")
    assert bubble["numbers"].startswith(f"({found['group']}-1)/{found['segments']} x ")


def test_what_does_not_fit_has_nothing_to_explain():
    found = sweep.explain("alexnet", "data", 8, 64, dataset="cosmoflow-128")
    assert found["formulas"] == found["layers"] == []
