"""From rows to an entry: steps, batches that never converge, warnings and mistakes."""

import pytest

from paradl.grids.reading.errors import InputError


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
