"""When hybrid beats data parallelism: formulas, crossovers, the published gains."""

import json
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st
from reference_hybrid import find_first, interpolate, keep_best, speedup

import sweep
from grids.convergence.entry import Convergence, Point
from grids.reading.errors import InputError
from sweep.questions.hybrid.contenders import MOST_PES, list_contenders, list_counts
from sweep.questions.hybrid.draws import COUNT, find_percentiles, make_draws
from sweep.questions.hybrid.verdicts import _find_last_rise

NAMES: Any = {"name": "mine", "model": "inception_v3", "dataset": "mine", "target": "all of it"}
CONSTANT = Convergence(**NAMES, epochs_min=7)
INCEPTION = ((2048, 4.0), (4096, 7.0), (8192, 12.0), (16384, 23.0))


def tabulate(points: Any, **more: Any) -> Convergence:
    """Measured points with a law that nothing is asked of."""
    listed = tuple(Point(global_batch=batch, epochs=epochs) for batch, epochs in points)
    return Convergence(**NAMES, epochs_min=1, critical_batch=1000, points=listed, **more)


def ask(law: Convergence, pe: Any, speedups: dict[int, float], **more: Any) -> dict[str, Any]:
    """The answer where speed-ups are given; SE is 1 where nothing else is said."""
    asked = {"batch": 64, "scaling_efficiency": 1.0} | more
    return sweep.hybrid("inception_v3", pe=pe, speedups=speedups, epochs=law, **asked)


def pick_row(answer: dict[str, Any], strategy: str, pe: int) -> dict[str, Any]:
    [row] = [row for row in answer["rows"] if (row["strategy"], row["pe"]) == (strategy, pe)]
    return row


def pick_crossover(answer: dict[str, Any], against: str = "same", group: int = 2) -> dict[str, Any]:
    [one] = [c for c in answer["crossovers"] if (c["against"], c["group"]) == (against, group)]
    return one


@given(split=st.floats(0.5, 6), group=st.sampled_from([2, 3, 4]), efficiency=st.floats(0.1, 1))
@limit_examples(20)
def test_of_constant_epochs_data_wins_unless_a_group_is_worth_its_pes(split, group, efficiency):
    answer = ask(CONSTANT, 48, {group: split}, scaling_efficiency=efficiency)
    crossover = pick_crossover(answer, group=group)
    assert crossover["pe"] == (group if split > group else None)
    assert pick_row(answer, "data", 16)["speedup"] == pytest.approx(16 * efficiency)


@given(split=st.floats(0.01, 2), group=st.sampled_from([2, 4]))
@limit_examples(20)
def test_where_data_never_converges_the_hybrid_wins(split, group):
    law = Convergence(**NAMES, epochs_min=7, converges_to=64 * 16)
    answer = ask(law, 16 * group, {group: split})
    crossover = pick_crossover(answer, group=group)
    # From the first multiple beyond 16 PEs on, or before that if the split is worth it.
    assert crossover["pe"] is not None
    assert crossover["pe"] <= 16 + group
    row = pick_row(answer, "data", 32)
    assert (row["epochs"], row["converges"], row["speedup"], row["p10"]) == (
        None,
        False,
        None,
        None,
    )
    assert pick_row(answer, f"{group}-way", 16 * group)["wins"]


@given(split=st.floats(1.01, 1.99), off=st.floats(0.001, 0.2), more=st.booleans())
@limit_examples(20)
def test_the_threshold_of_two_ways(split, off, more):
    ratio = 2 / split * (1 + off if more else 1 / (1 + off))
    law = tabulate(((64 * 8, 1.0), (64 * 16, max(ratio, 1.0))))
    answer = ask(law, [16], {2: split})
    assert pick_row(answer, "2-way", 16)["wins"] == (max(ratio, 1.0) > 2 / split)


@given(least=st.floats(0.1, 100), critical=st.floats(10, 1e5), efficiency=st.floats(0.1, 1))
@limit_examples(20)
def test_with_the_law_more_pes_are_never_slower(least, critical, efficiency):
    law = Convergence(**NAMES, epochs_min=least, critical_batch=critical)
    answer = ask(law, MOST_PES, {2: 1.0}, scaling_efficiency=efficiency)
    times = [1 / row["speedup"] for row in answer["rows"] if row["strategy"] == "data"]
    assert all(more <= fewer for fewer, more in pairwise(times))
    # T S_min, over the time of one PE, T S(b): S(B) = S_min (1 + B_c/B).
    steps = 1 / (1 + critical / 64) / efficiency
    assert times[-1] == pytest.approx(steps * (1 + critical / 64 / MOST_PES))


def test_speedups_and_crossovers_are_those_of_a_scalar_version():
    points = ((64, 1.0), *INCEPTION)
    epochs = interpolate(points)
    answer = ask(tabulate(points), list(range(1, 257)), {2: 1.32, 4: 1.7}, scaling_efficiency=0.9)
    data = {n: speedup(1, 0.9, n, epochs, 64) for n in range(1, 257)}
    for group, split in ((2, 1.32), (4, 1.7)):
        counts = range(group, 257, group)
        ours = {n: speedup(split, 0.9, n // group, epochs, 64) for n in counts}
        for count in counts:
            row = pick_row(answer, f"{group}-way", count)
            assert row["speedup"] == pytest.approx(ours[count], rel=1e-12)
        for against, keep in (("same", dict), ("best", keep_best)):
            expected = find_first(keep(ours), keep(data))
            assert pick_crossover(answer, against, group)["pe"] == expected
    assert pick_row(answer, "data", 100)["speedup"] == pytest.approx(data[100], rel=1e-12)
    best = max(1.7 * 0.9 * n / epochs(64 * n) for n in range(1, 65))
    assert answer["gain"]["gain"] == pytest.approx(best / max(data.values()) - 1, rel=1e-12)


def test_the_last_of_several_crossings_is_told():
    # Epochs jump from 8 to 9 replicas, and again from 32 to 33.
    points = tuple((64 * n, e) for n, e in ((1, 1), (8, 1), (9, 3), (32, 3), (33, 9), (64, 9)))
    whole, part = (ask(tabulate(points), most, {2: 1.2}) for most in (64, 32))
    epochs = interpolate([(batch, float(needed)) for batch, needed in points])
    data = {n: speedup(1, 1, n, epochs, 64) for n in range(1, 65)}
    ours = {n: speedup(1.2, 1, n // 2, epochs, 64) for n in range(2, 65, 2)}
    wins = [n for n in ours if ours[n] > data[n]]
    assert wins == [10, 12, 14, 16, *range(34, 65, 2)]
    crossover = pick_crossover(whole)
    assert (crossover["pe"], crossover["several"]) == (find_first(ours, data), True) == (34, True)
    assert crossover["speedup"] == pytest.approx(ours[34])
    crossover = pick_crossover(part)
    assert (crossover["pe"], crossover["speedup"]) == (None, None)
    assert (crossover["chance"], crossover["several"]) == (0, False)


def test_wins_behind_the_last_loss():
    wins = np.array([[1, 0, 1, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]], bool)
    counts = np.array([2, 4, 6, 8])
    assert _find_last_rise(wins, counts).tolist() == [6, 2, np.inf, np.inf]


def test_counts_where_nothing_converges_decide_nothing():
    law = Convergence(**NAMES, epochs_min=7, converges_to=64 * 16)
    beyond, before = ask(law, 256, {2: 1.22}), ask(law, 32, {2: 1.22})
    assert pick_crossover(beyond)["pe"] == pick_crossover(before)["pe"] == 18
    assert beyond["gain"] | {"pe": 32} == before["gain"]
    assert before["gain"]["gain"] == pytest.approx(0.22)
    assert (before["gain"]["hybrid_pe"], before["gain"]["data_pe"]) == (32, 16)


def test_an_interval_holds_what_is_expected():
    law = tabulate(INCEPTION, epochs_variance=0.04, covariance=0.05, batch_variance=0.07)
    answer = ask(law, 256, {2: 1.32})
    row = pick_row(answer, "data", 256)
    assert row["p10"] < row["speedup"] < row["p90"]
    assert row["p50"] == pytest.approx(row["speedup"], rel=0.05)
    crossover, gain = pick_crossover(answer), answer["gain"]
    assert crossover["p10"] <= crossover["pe"] <= crossover["p90"]
    assert gain["p10"] < gain["gain"] < gain["p90"]
    # What all batches share, E_min, moves no ratio.
    sure = ask(tabulate(INCEPTION, epochs_variance=0.04), 256, {2: 1.32})
    assert sure["gain"]["p10"] == pytest.approx(sure["gain"]["p90"])


def test_draws_are_normal_and_independent():
    draws = make_draws()
    # Those of the law, and of data and three hybrids.
    normals = np.concatenate([draws.laws, draws.errors[:, :4]], axis=1)
    assert normals.shape == (COUNT + 1, 6)
    assert not normals[0].any()
    np.testing.assert_allclose(normals[1:].mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(np.cov(normals[1:].T), np.eye(6), atol=0.06)
    # Nor do they go along with the draws of the machine that they are paired with.
    blocks = normals[1:].reshape(32, -1, 6).mean(axis=1)
    np.testing.assert_allclose(blocks, 0, atol=0.35)


def test_one_hybrid_more_moves_no_other_s_interval():
    law = tabulate(INCEPTION, batch_variance=0.07)
    few, many = (ask(law, 64, speedups) for speedups in ({2: 1.32}, {2: 1.32, 4: 2.0}))
    assert pick_row(few, "2-way", 64) == pick_row(many, "2-way", 64) | {"wins": True}
    assert pick_crossover(few) == pick_crossover(many)


def test_percentiles_of_what_may_never_be():
    drawn = np.array([5.0, *range(1, 8), np.inf, np.inf, np.inf])
    assert find_percentiles(drawn) == {"p10": 1, "p50": 5, "p90": np.inf}


def test_batches_beyond_the_measured_ones_are_told():
    answer = ask(tabulate(INCEPTION), 512, {2: 1.32})
    told = {
        row["pe"] for row in answer["rows"] if row["strategy"] == "data" and row["extrapolated"]
    }
    assert told == {1, 2, 4, 8, 16, 512}
    assert answer["epochs"]["alone_extrapolated"]
    # At 34 PEs the hybrid's batch is one of 1,088; a gain at 512 is one of data's 32,768.
    assert (pick_crossover(answer)["pe"], pick_crossover(answer)["extrapolated"]) == (34, True)
    assert answer["gain"]["extrapolated"]
    assert not ask(tabulate(INCEPTION), 256, {2: 1.32})["gain"]["extrapolated"]


MACHINE: Any = {"dataset": "imagenet-299", "system": "dgx1-v100"}


@pytest.mark.parametrize(
    ("strategy", "group"), [("data+spatial:group=2", 2), ("data+pipeline:group=4", 4)]
)
def test_the_oracle_s_times_are_those_of_predict(strategy, group):
    law = tabulate(INCEPTION)
    answer = sweep.hybrid(
        "inception_v3", 64, [group, 32], strategies=[strategy], epochs=law, **MACHINE
    )

    def time(label: str, pe: int) -> float:
        told = sweep.predict("inception_v3", label, pe, 64, **MACHINE)
        return float(told["iteration_time"])

    alone, split, whole = time("data", 1), time(strategy, group), time(strategy, 32)
    assert answer["iteration_time"] == pytest.approx(alone, rel=1e-9)
    assert answer["splits"][0]["speedup"] == pytest.approx(alone / split, rel=1e-9)
    row = pick_row(answer, strategy, 32)
    assert row["scaling_efficiency"] == pytest.approx(split / whole, rel=1e-9)
    ratio = answer["epochs"]["alone"] / row["epochs"]
    assert row["speedup"] == pytest.approx(alone / whole * 32 / group * ratio, rel=1e-9)
    assert row["p10"] < row["speedup"] < row["p90"]
    assert pick_row(answer, "data", 32)["scaling_efficiency"] == pytest.approx(
        alone / time("data", 32), rel=1e-9
    )


def test_given_numbers_go_before_the_oracle_s():
    law = tabulate(INCEPTION)
    strategy = "data+pipeline:group=2"
    asked: Any = {"epochs": law, **MACHINE}
    split = sweep.hybrid("inception_v3", 64, [64], speedups={2: 1.32}, **asked)
    data = pick_row(sweep.hybrid("inception_v3", 64, [32], speedups={2: 1.32}, **asked), "data", 32)
    # A split of which no more is known scales as data does across as many replicas.
    scaling = pick_row(split, "2-way", 64)["scaling_efficiency"]
    assert scaling == data["scaling_efficiency"] < 1
    both = sweep.hybrid("inception_v3", 64, [64], strategies=[strategy], speedups={2: 9}, **asked)
    assert both["splits"][0] == {
        **{"strategy": strategy, "group": 2, "speedup": 9.0},
        **{"basis": "given", "scaling_efficiency": "oracle"},
    }
    ideal = sweep.hybrid(
        "inception_v3", 64, [64], strategies=[strategy], scaling_efficiency=1, **asked
    )
    assert pick_row(ideal, "data", 64)["scaling_efficiency"] == 1
    assert ideal["splits"][0]["basis"] == "oracle"


def test_what_is_forbidden_is_a_gap_with_its_reason():
    answer = sweep.hybrid(
        "inception_v3",
        64,
        [128, 256],
        strategies=["data+spatial:group=64"],
        epochs=CONSTANT,
        dataset="imagenet-299",
        system="xe8545",
    )
    row = pick_row(answer, "data", 256)
    assert (row["speedup"], row["feasible"], row["limit"]) == (None, False, ["machine_too_small"])
    assert pick_row(answer, "data", 128)["feasible"]
    assert answer["gain"]["data_pe"] == 128
    crowded = sweep.hybrid(
        "inception_v3", 4096, [8], strategies=["data+filter:group=2"], epochs=CONSTANT, **MACHINE
    )
    assert {tuple(row["limit"]) for row in crowded["rows"]} == {("memory",)}
    assert crowded["gain"]["gain"] is None
    assert pick_crossover(crowded)["pe"] is None
    assert json.dumps(crowded, allow_nan=False)


def test_table_iii_has_no_intervals_of_its_own():
    answer = sweep.hybrid(
        "inception_v3",
        64,
        [16],
        strategies=["data+filter:group=2"],
        epochs=CONSTANT,
        **MACHINE,
        settings={"oracle": "paper"},
    )
    row = pick_row(answer, "data+filter:group=2", 16)
    assert row["p10"] == pytest.approx(row["p90"])


def test_accumulated_passes_count_as_samples_of_a_replica():
    answer = sweep.hybrid(
        "inception_v3",
        16,
        [32],
        strategies=["data+filter:group=2"],
        epochs=tabulate(INCEPTION),
        parameters={"accumulate": 4},
        **MACHINE,
    )
    assert pick_row(answer, "data", 32)["global_batch"] == 2048
    assert pick_row(answer, "data", 32)["epochs"] == 4


@pytest.mark.parametrize(
    ("pe", "counts"),
    [(1, (1,)), (8, (1, 2, 4, 8)), (12, (1, 2, 4, 8, 12)), ([96, 8, 96], (8, 96))],
)
def test_counts(pe, counts):
    assert list_counts(pe, list_contenders((), {2: 1.1})[:1]) == counts


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({}, "--strategy: expected hybrids to compare"),
        ({"strategies": ["data+spatial"]}, "--strategy: expected the size of its groups"),
        ({"strategies": ["data+filter:group=best"]}, "write data\\+filter:group=2"),
        ({"strategies": ["spatial"]}, "--strategy: expected a hybrid, got 'spatial'"),
        ({"strategies": ["data+spatal:group=2"]}, "did you mean 'data\\+spatial'"),
        ({"strategies": ["data+filter:group=2"], "speedups": {3: 1.5}}, "groups are of 2"),
        ({"speedups": {1: 1.5}}, "--speedup: expected groups of 2 PEs or more, got 1"),
        ({"speedups": {2: float("nan")}}, "--speedup: expected a number above 0"),
        ({"speedups": {2: 1.5}, "scaling_efficiency": 95}, "95 % is 0.95"),
        ({"speedups": dict.fromkeys(range(2, 16), 1.5)}, "expected at most 13 hybrids, got 14"),
        ({"speedups": {512: 1.5}}, "--pe: expected 512 or more"),
        ({"speedups": {2: 1.5}, "batch": 0}, "--batch: expected a sample or more"),
        ({"speedups": {2: 1.5}, "pe": MOST_PES + 1}, "--pe: expected PE counts from 1 to 16,384"),
        ({"speedups": {2: 1.5}, "pe": []}, "--pe: expected PE counts"),
    ],
)
def test_what_makes_no_sense_is_told(more, message):
    asked: Any = {"batch": 64, "pe": 256, "epochs": CONSTANT, "scaling_efficiency": 1.0} | more
    with pytest.raises(InputError, match=message):
        sweep.hybrid("inception_v3", **asked)


def test_a_batch_is_no_larger_than_what_converges_or_the_data_set():
    law = Convergence(**NAMES, epochs_min=7, converges_to=32)
    with pytest.raises(InputError, match="--batch: expected at most 32, the largest batch"):
        ask(law, 8, {2: 1.2})
    asked: Any = {"speedups": {2: 1.2}, "epochs": CONSTANT, **MACHINE}
    with pytest.raises(InputError, match="--batch: expected at most 1,281,167, the samples"):
        sweep.hybrid("inception_v3", 2_000_000, 8, **asked)
    with pytest.raises(InputError, match="--dataset: inception_v3 takes samples of 2"):
        sweep.hybrid("inception_v3", 1, 8, **{**asked, "dataset": "cosmoflow-128"})
