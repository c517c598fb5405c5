"""Layouts of transformers and other strategies of one network: never in one ranking."""

from collections.abc import Callable
from typing import Any

import pytest

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.reading.errors import InputError
from paradl.sweep.plots.winners import describe_map
from paradl.sweep.questions.best.question import rank_strategies
from paradl.sweep.questions.crossovers import list_crossovers
from paradl.sweep.questions.pareto import list_front
from paradl.sweep.questions.provision import list_provisions
from paradl.sweep.questions.regret import rank_regrets

RANKED: dict[str, Callable[..., Any]] = {
    "best": rank_strategies,
    "pareto": list_front,
    "provision": lambda source, selection=None: list_provisions(source, "9 h", selection, epochs=1),
    "crossovers": lambda source, selection=None: list_crossovers(source, "pe", selection),
    "regret": lambda source, selection=None: rank_regrets(source, selection),
    "winners": describe_map,
}
VIT: dict[str, Any] = {"model": "vit_b_16", "dataset": "imagenet", "batch": "32,64"}
LLAMA: dict[str, Any] = {"model": "llama2_7b", "dataset": "pile", "batch": "2,4"}
MIXED = [  # a network with blocks, and strategies of both kinds: `data` and stages are layouts
    (VIT, "data,data+channel"),
    (VIT, "filter,data+tensor:tensor=2,micro=1"),
    (LLAMA, "filter,pipeline"),
]


def make(place: dict[str, Any], strategy: str, **more: Any) -> Any:
    return make_grid(SpaceValues(system="dgx-h100", pe="4,8", strategy=strategy, **(place | more)))


@pytest.mark.parametrize("question", RANKED)
@pytest.mark.parametrize(("place", "strategies"), MIXED)
def test_both_kinds_are_not_ranked(question, place, strategies):
    with pytest.raises(InputError, match=r"selection: .* strategy="):
        RANKED[question](make(place, strategies))


@pytest.mark.parametrize("question", RANKED)
def test_a_store_is_ranked_a_kind_at_a_time(question, tmp_path):
    axes = {"system": "dgx-h100", "pe": [4, 8], "batch": [32, 64]}
    axes |= {"model": "vit_b_16", "dataset": "imagenet"}
    strategies = ["filter", "data+filter:group=2", "data", "data+pipeline:group=2"]
    store = str(tmp_path / "store")
    paradl.run({"axes": {**axes, "strategy": strategies}}, store)
    with pytest.raises(InputError, match=r"selection: .* strategy="):
        RANKED[question](store)
    for kind in (strategies[:2], strategies[2:]):
        assert RANKED[question](store, {"strategy": kind})


def test_networks_of_a_kind_each_are_ranked():
    """A layout for one network and none for the other, of the same name."""
    space = make(VIT, "data", model="resnet50,llama2_7b", dataset="imagenet,pile")
    rows = rank_strategies(space)
    assert {row["model"] for row in rows} == {"resnet50", "llama2_7b"}
    assert {row["rank"] for row in rows if row["feasible"]} == {1}


@pytest.mark.parametrize(
    "verb", ["best", "pareto", "best --worst-case system", "limits --crossovers pe"]
)
def test_the_command_line_says_what_to_do(verb, cli):
    given = ("--model", "vit_b_16", "--dataset", "imagenet", "--system", "abci")
    more = ("--pe", 8, "--batch", 64, "--strategy", "data,channel")
    code, out, err = cli(*verb.split(), *given, *more)
    assert (code, out) == (2, "")
    assert "--strategy channel" in err.splitlines()[-1]


@pytest.mark.parametrize(
    ("strategies", "mixed"),
    [("data,pipeline", False), ("filter,pipeline", True), ("filter,channel", False)],
)
def test_rows_that_are_not_ranked_have_a_warning(strategies, mixed, cli):
    given = ("--model", "llama2_7b", "--dataset", "pile", "--system", "abci", "--pe", 8)
    _, out, err = cli("limits", *given, "--batch", 2, "--strategy", strategies)
    assert out
    assert ("do not compare" in err) == mixed
