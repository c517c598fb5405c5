"""Decisions between layouts of one run, worked out by hand; probabilities against answers'."""

import json
import sys
from dataclasses import replace
from itertools import pairwise
from math import log, sqrt
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest

from benchmarks import decisions
from benchmarks.clusters import find_cluster
from benchmarks.decisions import Duel, Rival
from benchmarks.forecasts import Forecast
from benchmarks.layout_runs import Run, predict_seconds, read_runs
from paradl.grids.entries.layout_words import parse_layout
from paradl.grids.entries.transformer_rates import FITTED, RIVAL_SPREAD
from paradl.kernels.work.layouts import Layouts
from paradl.sweep.cli.main import main


def move(run: Run, words: str) -> Run:
    """The run with another layout."""
    columns, _ = parse_layout(words, "")
    return replace(run, layout=Layouts.from_names([columns]))


def foresee(run: Run, predicted: float) -> Forecast:
    """A forecast of these seconds."""
    return Forecast(run, "", FITTED, predicted, 0.1, predicted, predicted)


def publish(*rows: tuple[str, float, float], **changes: Any) -> list[Forecast]:
    """Forecasts of runs by layout, measured and predicted seconds."""
    run = read_runs()[2]  # tp8 pp2 dp32
    return [
        foresee(replace(move(run, words), seconds=measured, **changes), predicted)
        for words, measured, predicted in rows
    ]


def test_decisions_of_three_layouts_by_hand() -> None:
    """10 and 10.2 s tie; the others are ranked right; the first is 2 % slower than the best."""
    (group,) = decisions.group_rivals(
        publish(("tp8 dp64", 10, 5), ("tp4 dp128", 10.2, 4), ("tp2 dp256", 12, 6))
    )
    made = decisions.decide([group])
    logs = [log(0.5), log(4 / 10.2), log(0.5)]
    mean = sum(logs) / 3
    assert (made.groups, made.pairs, made.named) == (1, 2, 1)
    assert made.regret == pytest.approx(0.02)
    assert made.scatter == pytest.approx(sqrt(sum((one - mean) ** 2 for one in logs) / 2))


def test_regret_is_a_mean_of_groups_and_pairs_count_alike() -> None:
    """The wrong one of two, 30 % slower, and a group without an error; equal predictions are none
    that name the faster layout."""
    wrong = publish(("tp8 dp64", 10, 5), ("tp4 dp128", 13, 4))
    right = publish(("tp8 dp64", 10, 5), ("tp4 dp128", 13, 6), ("tp2 dp256", 13, 6), source="b")
    made = decisions.decide(decisions.group_rivals([*wrong, *right]))
    assert (made.groups, made.pairs) == (2, 3)
    assert made.named == pytest.approx(2 / 3)
    assert made.regret == pytest.approx(0.15)
    (same,) = decisions.group_rivals(publish(("tp8 dp64", 10, 5), ("tp4 dp128", 13, 5)))
    assert decisions.decide([same]).named == 0


def test_repeated_runs_are_one_layout() -> None:
    (group,) = decisions.group_rivals(
        publish(("tp8 dp64", 10, 5), ("tp8 dp64", 14, 5), ("tp8 dp64", 11, 5), ("tp4 dp128", 9, 5))
    )
    assert sorted(one.seconds for one in group) == [9, 11]
    assert decisions.group_rivals(publish(("tp8 dp64", 10, 5), ("tp8 dp64", 14, 5))) == []


@pytest.mark.parametrize("changes", [{"source": "b"}, {"network": "b"}, {"precision": "bf16"}])
def test_layouts_of_other_tasks_are_no_rivals(changes: dict[str, str]) -> None:
    rows = publish(("tp8 dp64", 10, 5)) + publish(("tp4 dp128", 13, 4), **changes)
    assert decisions.group_rivals(rows) == []
    assert decisions.group_rivals(publish(("tp8 dp64", 10, 5), ("tp4 dp64", 13, 4))) == []


def test_software_is_compared_apart() -> None:
    rows = publish(("tp8 dp64", 10, 5)) + publish(("tp4 dp128", 13, 4), stack="DeepSpeed 2021")
    assert decisions.group_rivals(rows) == []
    (pair,) = decisions.pair_software(rows)
    assert decisions.decide([pair]).regret == pytest.approx(0.3)
    assert decisions.pair_software(publish(("tp8 dp64", 10, 5), ("tp4 dp128", 13, 4))) == []


def test_a_chance_without_draws_is_that_of_two_normal_errors() -> None:
    duel = Duel(np.full(4, 0.1), is_right=True, group=0)
    assert duel.find_chance(0.05) == pytest.approx(NormalDist(0, 0.05 * sqrt(2)).cdf(0.1))
    spread = Duel(np.array([0.1, -0.3]), is_right=True, group=0)
    means = [NormalDist(0, 0.05 * sqrt(2)).cdf(apart) for apart in (0.1, -0.3)]
    assert spread.find_chance(0.05) == pytest.approx(sum(means) / 2)


def test_chances_are_those_of_answers(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of the first two layouts that `best` names, by the same draws."""
    system = "dgx-a100-80gb:software=megatron,precision=bf16"
    task = "--model llama2_7b --pe 16 --global-batch 64 --sequence 4096 --json"
    monkeypatch.setattr(sys, "argv", ["paradl", "best", "--system", system, *task.split()])
    with pytest.raises(SystemExit, match="0"):
        main()
    first, second = json.loads(capsys.readouterr().out)[:2]
    run = next(run for run in read_runs() if run.model == "llama2-7b" and run.precision == "bf16")
    run = replace(run, stack="megatron", system=find_cluster("dgx-a100-80gb"))
    training = replace(run.training, batch=64, length=4096, fused_attention=True)
    runs = [replace(move(run, row["layout"]), training=training) for row in (first, second)]
    group = [Rival(1.0, foresee(one, predict_seconds(one, FITTED))) for one in runs]
    for rival, row in zip(group, (first, second), strict=True):
        assert rival.forecast.seconds == pytest.approx(row["iteration_time"], rel=1e-6)
    (duel,) = decisions.list_duels([group])
    assert duel.find_chance(RIVAL_SPREAD) == pytest.approx(first["faster_than_next"], abs=1e-4)


def toss(spread: float, count: int, group: int = 0) -> list[Duel]:
    """Duels whose outcomes have the probabilities that a spread states."""
    random = np.random.default_rng(7)
    apart = random.uniform(0, 0.3, count)
    noise = random.normal(0, spread * sqrt(2), count)
    return [
        Duel(np.array([one]), bool(won), group)
        for one, won in zip(apart, apart > noise, strict=True)
    ]


@pytest.mark.parametrize("spread", [0.05, 0.12])
def test_the_calibrated_spread_is_the_one_that_made_the_outcomes(spread: float) -> None:
    assert decisions.fit_rival_spread(toss(spread, 3000)) == pytest.approx(spread, rel=0.1)


def test_groups_may_count_alike_whatever_their_pairs() -> None:
    many, few = toss(0.3, 900), toss(0.03, 300, group=1)
    by_pair, by_group = (
        decisions.fit_rival_spread(many + few, by_group=way) for way in (False, True)
    )
    weights = decisions.weigh_duels(many + few, by_group=True)
    assert weights[:900].sum() == pytest.approx(0.5)
    assert by_group < by_pair


def test_bins_hold_each_pair_once_and_are_reliable_where_the_spread_is_right() -> None:
    duels = toss(0.1, 5000)
    bins = [*decisions.bin_duels(duels, 0.1)]
    assert sum(pairs for _, _, pairs, _, _ in bins) == len(duels)
    for low, high, _, stated, right in bins:
        assert low <= stated <= high
        assert right == pytest.approx(stated, abs=0.06)
    assert all(one[1] == other[0] for one, other in pairwise(bins))
    certain = Duel(np.array([9.0]), is_right=True, group=0)
    assert [*decisions.bin_duels([certain], 0.1)] == [(0.9, 1.0, 1, 1.0, 1.0)]
