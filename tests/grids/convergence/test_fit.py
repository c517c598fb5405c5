"""From rows to an entry: steps, batches that never converge, warnings and mistakes."""

import math

import numpy as np
import pytest
from budgets import limit_examples
from hypothesis import given
from hypothesis import strategies as st

from paradl.grids.convergence.fit import PRIOR, LawPrior, fit_law
from paradl.grids.reading.errors import InputError
from paradl.kernels.configuration.convergence import Law, count_epochs, spread_epochs


def test_an_entry_keeps_its_points(fit_points):
    entry = fit_points("64,10,", "256,11.5,", "1024,20,")
    assert [(point.global_batch, point.epochs) for point in entry.points] == [
        (64, 10),
        (256, 11.5),
        (1024, 20),
    ]
    assert (entry.name, entry.model) == ("toy on small to 90 %", "toy")
    assert (entry.dataset, entry.target) == ("small", "90 %")
    assert (entry.smallest, entry.largest, entry.converges_to) == (64, 1024, None)
    assert entry.warnings == ()


def test_steps_become_epochs_of_the_data_set(fit_points):
    entry = fit_points("64,,2000", "128,,1100", samples=12_800)
    assert [point.epochs for point in entry.points] == [10, 11]


def test_published_epochs_go_before_steps(fit_points):
    entry = fit_points("64,12,2000", "128,,1100", samples=12_800)
    assert [point.epochs for point in entry.points] == [12, 11]


def test_steps_give_the_same_law_whatever_an_epoch_is(fit_points):
    rows = ("64,,2000", "128,,1100", "512,,400")
    one, other = (fit_points(*rows, samples=samples) for samples in (12_800, 10**9))
    assert one.critical_batch == pytest.approx(other.critical_batch)
    assert one.epochs_min * 12_800 == pytest.approx(other.epochs_min * 10**9)


def test_what_never_converges_bounds_the_batch(fit_points):
    entry = fit_points("64,10,", "256,11.5,", "1024,Never,", "4096,never,")
    assert entry.converges_to == 256
    assert entry.largest == 256
    assert entry.warnings == ()


def test_steps_may_say_never(fit_points):
    entry = fit_points("64,,2000", "128,,1100", "256,,Never", samples=12_800)
    assert (entry.largest, entry.converges_to) == (128, 128)


def test_a_larger_batch_that_converges_is_told(fit_points):
    entry = fit_points("64,10,", "256,11.5,", "1024,never,", "4096,30,")
    assert entry.converges_to == 256
    assert entry.warnings == (
        "4,096 converges and a smaller batch never does: 256 is taken as the last",
    )


def test_epochs_that_fall_are_told(fit_points):
    entry = fit_points("2048,38.5,", "4096,40,", "8192,38,", "16384,50,")
    assert entry.warnings == (
        "epochs fall from 40 at 4,096 to 38 at 8,192: noise, or another schedule; the law rises",
    )


BAD = [
    (("64,10,",), None, ":2:"),
    (("64,10,", "128,never,"), None, ":2:"),
    (("64,never,", "128,never,"), None, ":2:"),
    (("64,never,", "128,10,", "256,12,"), None, ":2: epochs:"),
    (("64,,2000", "128,,1100"), None, ":2: epochs:"),
    (("64,10,", "20000,20,"), 12_800, ":3: global_batch:"),
    (("64,10,", "20000,never,"), 12_800, ":3: global_batch:"),
    (("64,1e-6,", "128,1e6,"), None, ":2: epochs:"),
]


@pytest.mark.parametrize(("rows", "samples", "message"), BAD)
def test_what_no_law_follows_from_is_told_by_line(rows, samples, message, fit_points):
    with pytest.raises(InputError) as error:
        fit_points(*rows, samples=samples)
    assert f"epochs.csv{message}" in str(error.value)
    assert "; " in str(error.value)  # what to do
    assert "\n" not in str(error.value)


BATCHES = np.array([2.0**n for n in range(6, 15)])


@pytest.mark.parametrize("critical", [100, 1000, 10_000])
def test_noiseless_points_give_their_law(critical):
    """Within a hundredth: priors allow no more, and the uncertainty says so."""
    fitted = fit_law(BATCHES, 7 * (1 + BATCHES / critical))
    assert fitted.epochs_min == pytest.approx(7, rel=0.01)
    assert fitted.critical_batch == pytest.approx(critical, rel=0.01)
    assert fitted.error < PRIOR.error
    assert fitted.batch_variance < 0.06**2


@given(st.floats(0.01, 1e4), st.floats(0.3, 3))
@limit_examples(50)
def test_what_was_measured_is_met(epochs_min, ratio):
    epochs = epochs_min * (1 + BATCHES / (ratio * BATCHES[-1]))
    fitted = fit_law(BATCHES, epochs)
    np.testing.assert_allclose(count_epochs(fitted, BATCHES), epochs, rtol=0.02)


@given(st.lists(st.floats(1, 100), min_size=2, max_size=6))
@limit_examples(50)
def test_the_law_never_falls_whatever_the_points(epochs):
    fitted = fit_law(BATCHES[: len(epochs)], np.array(epochs))
    everywhere = np.geomspace(1, 1e7, 50)
    assert np.all(np.diff(count_epochs(fitted, everywhere)) >= 0)
    assert np.all(np.isfinite(spread_epochs(fitted, everywhere)))
    assert np.all(spread_epochs(fitted, everywhere) >= fitted.error * (1 - 1e-9))


def test_units_of_epochs_and_batches_do_not_matter():
    epochs = 7 * (1 + BATCHES / 5000) * np.exp(0.03 * np.cos(np.arange(9)))
    plain, scaled = fit_law(BATCHES, epochs), fit_law(BATCHES * 2048, epochs * 1e6)
    assert scaled.epochs_min == pytest.approx(plain.epochs_min * 1e6)
    assert scaled.critical_batch == pytest.approx(plain.critical_batch * 2048)
    assert scaled.batch_variance == pytest.approx(plain.batch_variance)


def test_the_order_does_not_matter():
    epochs = 7 * (1 + BATCHES / 5000)
    backwards = fit_law(BATCHES[::-1], epochs[::-1])
    assert backwards.critical_batch == pytest.approx(fit_law(BATCHES, epochs).critical_batch)


def test_the_same_points_give_the_same_bits():
    epochs = 7 * (1 + BATCHES / 5000)
    assert fit_law(BATCHES, epochs) == fit_law(BATCHES, epochs)


def test_small_batches_leave_the_critical_one_open():
    """Points that do not rise leave at least the prior's ratio, and nearly its spread."""
    flat = fit_law(BATCHES[:3], np.full(3, 9.0))
    assert np.log(flat.critical_batch / BATCHES[2]) > PRIOR.ratio
    assert flat.batch_variance > 0.5
    assert spread_epochs(flat, 100 * BATCHES[2]) > 4 * spread_epochs(flat, BATCHES[0])


def test_nothing_known_leaves_the_prior_of_the_largest_batch():
    """Runs that scatter by any factor say nothing: the critical batch is e times the largest."""
    vague = LawPrior(ratio=1.0, spread=0.5, error=1e4, count=3)
    fitted = fit_law(np.array([64.0, 128, 8192]), np.full(3, 9.0), vague)
    assert fitted.critical_batch == pytest.approx(8192 * math.e, rel=0.02)  # two steps of the grid
    assert fitted.batch_variance == pytest.approx(vague.spread**2, rel=0.01)


def test_noise_widens():
    epochs = 7 * (1 + BATCHES / 5000)
    noisy = fit_law(BATCHES, epochs * np.exp(0.2 * np.array([1, -1, 1, -1, 0, 1, -1, 1, -1])))
    assert noisy.error == pytest.approx(0.2, rel=0.3)
    assert np.all(spread_epochs(noisy, BATCHES) > spread_epochs(fit_law(BATCHES, epochs), BATCHES))


def test_intervals_hold_laws_drawn_from_the_priors():
    """At least 80 % of larger batches lie inside if points follow the fit's assumptions."""
    random = np.random.default_rng(0)
    batches, inside = np.array([256.0, 512, 1024, 4096]), []
    for _ in range(300):
        critical = batches[-1] * np.exp(random.normal(PRIOR.ratio, PRIOR.spread))
        drawn = Law(random.uniform(5, 50), critical)
        all_batches = np.array([*batches, 16_384.0])
        epochs = count_epochs(drawn, all_batches) * np.exp(random.normal(0, 0.05, 5))
        fitted = fit_law(batches, epochs[:-1])
        error = np.log(count_epochs(fitted, all_batches[-1]) / epochs[-1])
        inside.append(abs(error) <= 1.2816 * spread_epochs(fitted, all_batches[-1]))
    # A skewed posterior is given as a normal one, which is wider than necessary.
    assert 0.8 <= np.mean(inside) <= 0.95
