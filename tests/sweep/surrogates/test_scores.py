"""Scores against a plain loop, on made-up answers."""

import numpy as np
import pytest

from paradl.sweep.surrogates.evaluate import Answers, measure_tau, score_rows, score_slices


@pytest.fixture
def made_up():
    """True and predicted answers: 40 slices of 5 strategies, some of them infeasible."""
    rng = np.random.default_rng(3)
    slices = np.repeat(np.arange(40), 5)
    truth = Answers(rng.lognormal(size=200), rng.random(200) < 0.7)
    truth.seconds[rng.random(200) < 0.1] = np.nan
    truth.feasible[np.isnan(truth.seconds)] = False
    guess = Answers(
        np.nan_to_num(truth.seconds, nan=1.0) * rng.lognormal(sigma=0.5, size=200),
        truth.feasible ^ (rng.random(200) < 0.1),
    )
    order = rng.permutation(200)  # rows of a slice need not be neighbours
    return truth.take(order), guess.take(order), slices[order]


def try_strategies(truth, guess, rows):
    """The pick's time over the best, by trying one after the other, as a planner would."""
    best = min(truth.seconds[row] for row in rows if truth.feasible[row])
    tries = 0
    for is_feasible in (True, False):
        candidates = [row for row in rows if guess.feasible[row] == is_feasible]
        for row in sorted(candidates, key=lambda row: guess.seconds[row]):
            tries += 1
            if truth.feasible[row]:
                return truth.seconds[row] / best - 1, tries > 1
    raise AssertionError


def test_regret_is_that_of_trying_one_after_the_other(made_up):
    truth, guess, slices = made_up
    groups = [np.flatnonzero(slices == number) for number in range(40)]
    tried = [
        try_strategies(truth, guess, rows) for rows in groups if truth.feasible[rows].sum() > 1
    ]
    regrets = np.array([regret for regret, _ in tried])
    scores = score_slices(truth, guess, slices)
    assert scores["slices"] == len(tried) > 30
    assert scores["mean_regret"] == pytest.approx(regrets.mean())
    assert scores["median_regret"] == pytest.approx(np.median(regrets))
    assert scores["p95_regret"] == pytest.approx(np.percentile(regrets, 95))
    assert scores["forbidden_picks"] == np.mean([failed for _, failed in tried])
    assert 0 < sum(failed for _, failed in tried) < len(tried)


def test_the_truth_regrets_nothing(made_up):
    truth, _, slices = made_up
    guess = Answers(np.nan_to_num(truth.seconds, nan=1.0), truth.feasible)
    scores = score_slices(truth, guess, slices)
    assert (scores["mean_regret"], scores["kendall_tau"], scores["forbidden_picks"]) == (0, 1, 0)
    assert score_rows(truth, guess) == {
        "r2_log_time": 1.0,
        "median_error": 0.0,
        "p95_error": 0.0,
        "feasibility_f1": 1.0,
    }


def test_tau_counts_pairs():
    known = np.array([1.0, 2.0, 3.0, 4.0])
    assert measure_tau(known, known[::-1]) == -1
    assert measure_tau(known, np.array([2.0, 1.0, 3.0, 4.0])) == pytest.approx(4 / 6)


def test_r2_and_errors_are_of_logarithms_and_of_times():
    truth = Answers(np.array([1.0, 10.0, 100.0]), np.array([True, True, False]))
    guess = Answers(truth.seconds * np.array([1.1, 1.0, 1.0]), np.array([True, False, True]))
    scores = score_rows(truth, guess)
    spread = 2 * np.log(10) ** 2
    assert scores["r2_log_time"] == pytest.approx(1 - np.log(1.1) ** 2 / spread)
    assert scores["median_error"] == pytest.approx(0)
    assert scores["p95_error"] == pytest.approx(0.09)
    assert scores["feasibility_f1"] == pytest.approx(0.5)


def test_nothing_to_choose_is_no_score():
    truth = Answers(np.array([1.0, 2.0]), np.array([True, False]))
    assert score_slices(truth, truth, np.array([0, 0]))["mean_regret"] is None
