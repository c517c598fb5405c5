"""Stacks add up to the cube's times, and their terms are those that a cube stores."""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.terms import TERMS, list_terms
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.looks import TERM_LOOKS
from paradl.sweep.plots.stacks import describe_breakdown

COMMUNICATION = list_terms("communication")
SUMMED = (*list_terms("compute"), *COMMUNICATION)
ALEXNET: dict[str, Any] = {"model": "alexnet", "inter_bandwidth": "1 GB/s", "batch": 8}


def list_counts(breakdown):
    return [int(name.replace(",", "")) for name in breakdown.names]


def expect_sums(breakdown, cube, **chosen):
    """Of each PE count that is feasible, the time of an iteration."""
    part = cube.sel(chosen)
    cells = part.isel({dim: 0 for dim in part.dims if dim != "pe"}).load()
    feasible = cells.paradl.feasible.values
    np.testing.assert_array_equal(list_counts(breakdown), cells["pe"].values[feasible])
    expected = cells.paradl.iteration_time.values[feasible]
    np.testing.assert_allclose(breakdown.totals, expected, rtol=1e-6)


@pytest.mark.parametrize("strategy", ["data", "pipeline:segments=8", "data+spatial:group=best"])
def test_terms_add_up(strategy, mixed):
    cube = mixed.drop_vars([*TERMS, "replicas"])
    breakdown = describe_breakdown(cube, ALEXNET | {"strategy": strategy})
    place = {"model": "alexnet", "dataset": "imagenet-226", "batch": 8, "inter_bandwidth": 1e9}
    expect_sums(breakdown, mixed, strategy=strategy, **place)
    assert all((seconds > 0).any() for seconds in breakdown.parts.values())


def test_computed_terms_are_the_stored_ones(mixed):
    computed = describe_breakdown(mixed, ALEXNET | {"strategy": "data+filter"})
    place = {"model": "alexnet", "dataset": "imagenet-226", "batch": 8, "inter_bandwidth": 1e9}
    cube = mixed.sel(place | {"strategy": "data+filter", "pe": list_counts(computed)}).squeeze()
    for name in SUMMED:
        stored = np.broadcast_to(cube[name] / cube.paradl.iterations, len(computed.names))
        np.testing.assert_allclose(computed.parts.get(name, 0.0), stored, rtol=1e-6)


def test_the_machine_oracle_adds_up(machine_url):
    breakdown = describe_breakdown(machine_url)
    expect_sums(breakdown, paradl.open_dataset(machine_url))
    assert "pass_overhead" in breakdown.parts  # which Table III does not have


def test_one_strategy_alone(mixed):
    with pytest.raises(InputError, match="strategy"):
        describe_breakdown(mixed, ALEXNET)


def test_an_empty_picture_is_refused(mixed):
    with pytest.raises(NothingFeasibleError, match="too many PEs"):
        describe_breakdown(mixed, ALEXNET | {"strategy": "serial", "pe": [8, 12]})


def test_every_term_has_a_look():
    assert {*EVERY_TERM} - {*TERM_LOOKS} == {"hidden_communication"}  # no part of the sum


def test_texts_state_how_much_is_communication(machine_url):
    breakdown = describe_breakdown(machine_url)
    waiting = sum(breakdown.parts[name] for name in breakdown.parts if name in COMMUNICATION)
    assert [text.split(", ")[1] for text in breakdown.texts] == [
        f"{share:.0%} comm." for share in waiting / breakdown.totals
    ]


def test_many_counts_are_thinned(many_counts):
    breakdown = describe_breakdown(many_counts)
    assert list_counts(breakdown) == [1, 2, 4, 8, 16, 32]
    assert breakdown.notes == ["6 of 40 PE counts"]


def test_each_pe_count_has_its_best_layout(layouts):
    breakdown = describe_breakdown(layouts, {"batch": [256]})
    for pe, total in zip(list_counts(breakdown), breakdown.totals, strict=True):
        row = paradl.best(layouts, {"pe": [pe], "batch": [256]}).iloc[0]
        layout = {"pe": [pe], "batch": [256], "layout": [row["layout"]]}
        assert total == pytest.approx(describe_breakdown(layouts, layout).totals.item())
