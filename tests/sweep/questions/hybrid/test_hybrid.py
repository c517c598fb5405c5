"""When hybrid beats data parallelism: formulas, crossovers, the published gains."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from budgets import limit_examples
from hybrids import CONSTANT, INCEPTION, NAMES, ask, pick_crossover, pick_row, tabulate
from hypothesis import given
from hypothesis import strategies as st
from reference_hybrid import find_first, interpolate, keep_best, speedup

from paradl.grids.convergence.entry import Convergence
from paradl.grids.convergence.fit import fit
from paradl.grids.convergence.points import read_points
from paradl.sweep.answers.numbers import pick_percentiles
from paradl.sweep.questions.hybrid.epochs import COUNT, make_draws
from paradl.sweep.questions.hybrid.lines import find_last_rise

PAL = Path(__file__).parents[4] / "examples" / "pal2019.csv"


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
@limit_examples(5)
def test_with_the_law_more_pes_are_never_slower(least, critical, efficiency):
    law = Convergence(**NAMES, epochs_min=least, critical_batch=critical)
    most = 2**10
    counts = [*range(1, 100), *range(100, most, 61), most]
    answer = ask(law, counts, {2: 1.0}, scaling_efficiency=efficiency)
    times = [1 / row["speedup"] for row in answer["rows"] if row["strategy"] == "data"]
    assert all(more <= fewer for fewer, more in pairwise(times))
    # T S_min, over the time of one PE, T S(b): S(B) = S_min (1 + B_c/B).
    steps = 1 / (1 + critical / 64) / efficiency
    assert times[-1] == pytest.approx(steps * (1 + critical / 64 / most))


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
    assert find_last_rise(wins, counts).tolist() == [6, 2, np.inf, np.inf]


def test_counts_where_nothing_converges_decide_nothing():
    law = Convergence(**NAMES, epochs_min=7, converges_to=64 * 16)
    beyond, before = ask(law, 256, {2: 1.22}), ask(law, 32, {2: 1.22})
    assert pick_crossover(beyond)["pe"] == pick_crossover(before)["pe"] == 18
    assert beyond["gain"] | {"pe": 32} == before["gain"]
    assert before["gain"]["gain"] == pytest.approx(0.22)
    assert (before["gain"]["hybrid_pe"], before["gain"]["data_pe"]) == (32, 16)


def test_an_interval_holds_what_is_expected():
    points = ((64, 1.0), *INCEPTION)
    law = tabulate(points, epochs_variance=0.04, covariance=0.05, batch_variance=0.07)
    answer = ask(law, 256, {2: 1.32})
    row = pick_row(answer, "data", 256)
    assert row["p10"] < row["speedup"] < row["p90"]
    assert row["p50"] == pytest.approx(row["speedup"], rel=0.05)
    crossover, gain = pick_crossover(answer), answer["gain"]
    assert crossover["p10"] <= crossover["pe"] <= crossover["p90"]
    assert gain["p10"] < gain["gain"] < gain["p90"]


def test_a_gain_that_no_draw_moves_has_no_interval():
    # What all batches share, E_min, moves no ratio: nothing tells how far the gain may be off.
    gain = ask(tabulate(INCEPTION, epochs_variance=0.04), 256, {2: 1.32})["gain"]
    assert gain["gain"] == pytest.approx(0.265)
    assert {gain[key] for key in ("p10", "p50", "p90", "chance")} == {None}


def test_a_crossover_below_the_measured_batches_holds_both_forms_of_epochs():
    """By the law Inception-v3's epochs halve from 32 to 16 replicas; nobody measured that."""
    [series] = [entry for entry in read_points(PAL) if entry.model == "inception_v3"]
    nothing = dict.fromkeys(("epochs_variance", "covariance", "batch_variance"), 0.0)
    law = fit(series).model_copy(update=nothing)
    crossover = pick_crossover(ask(law, 256, {2: 1.32}))
    assert [crossover[key] for key in ("pe", "p10", "p90")] == [36, 36, 54]
    # As if 16 replicas needed the four epochs of 32, too: a second opinion.
    epochs = interpolate(((1, 4.0), *INCEPTION))
    data = {n: speedup(1, 1, n, epochs, 64) for n in range(1, 257)}
    ours = {n: speedup(1.32, 1, n // 2, epochs, 64) for n in range(2, 257, 2)}
    assert find_first(ours, data) == 54


def test_draws_are_normal_and_independent():
    draws = make_draws()
    assert not draws.stays[0]
    assert draws.stays[1:].mean() == 0.5
    assert abs(draws.laws[1:][draws.stays[1:]].mean(axis=0)).max() < 0.2
    # Those of the law, and of data and three hybrids.
    normals = np.concatenate([draws.laws, draws.errors[:, :4]], axis=1)
    assert normals.shape == (COUNT + 1, 6)
    assert not normals[0].any()
    np.testing.assert_allclose(normals[1:].mean(axis=0), 0, atol=0.02)
    np.testing.assert_allclose(np.cov(normals[1:].T), np.eye(6), atol=0.2)


def test_one_hybrid_more_moves_no_other_s_interval():
    law = tabulate(INCEPTION, batch_variance=0.07)
    few, many = (ask(law, 64, speedups) for speedups in ({2: 1.32}, {2: 1.32, 4: 2.0}))
    assert pick_row(few, "2-way", 64) == pick_row(many, "2-way", 64) | {"wins": True}
    assert pick_crossover(few) == pick_crossover(many)


def test_percentiles_of_what_may_never_be():
    drawn = np.array([*range(1, 8), np.inf, np.inf, np.inf])
    assert pick_percentiles(drawn, (10, 50, 90)) == {"p10": 1, "p50": 5, "p90": np.inf}


def test_batches_beyond_the_measured_ones_are_told():
    answer = ask(tabulate(INCEPTION), 512, {2: 1.32})
    counts = {
        row["pe"] for row in answer["rows"] if row["strategy"] == "data" and row["extrapolated"]
    }
    assert counts == {1, 2, 4, 8, 16, 512}
    assert answer["epochs"]["alone_extrapolated"]
    # At 34 PEs the hybrid's batch is one of 1,088; a gain at 512 is one of data's 32,768.
    assert (pick_crossover(answer)["pe"], pick_crossover(answer)["extrapolated"]) == (34, True)
    assert answer["gain"]["extrapolated"]
    assert not ask(tabulate(INCEPTION), 256, {2: 1.32})["gain"]["extrapolated"]
