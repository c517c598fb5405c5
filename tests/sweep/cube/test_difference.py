from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from paradl.grids.library import find
from paradl.sweep.cube.difference import (
    describe_difference,
    describe_other_changes,
    list_added_values,
)
from paradl.sweep.engine.run import read_grid


def changed(spec: dict, **axes: object) -> dict:
    return {**spec, "axes": {**spec["axes"], **axes}}


@pytest.mark.parametrize(
    "same",
    [
        {"name": "another name"},
        {"scaling": "weak"},
        {"parameters": {}},
        {"outputs": ["comp_time", "comm_time", "memory", "limit"]},
    ],
)
def test_defaults_and_names_are_no_difference(small, same):
    assert describe_difference(read_grid(small), read_grid(small | same)) == ""


def test_how_an_axis_is_written_is_no_difference(small):
    assert (
        describe_difference(read_grid(small), read_grid(changed(small, pe={"pow2": [1, 8]}))) == ""
    )


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"scaling": "strong"}, "scaling: weak in the store, strong now"),
        ({"parameters": {"gamma": 0.5}}, "parameters.gamma: not set in the store, 0.5 now"),
        ({"outputs": ["limit"]}, "outputs: [comp_time, comm_time, memory, limit] in the store"),
    ],
)
def test_settings_are(small, more, text):
    assert text in describe_difference(read_grid(small), read_grid(small | more))


def test_axes_are(small):
    text = describe_difference(read_grid(small), read_grid(changed(small, pe=[1, 2, 4])))
    assert text == "axes.pe: [1, 2, 4, 8] in the store, [1, 2, 4] now"


def test_a_long_axis_is_told_by_its_ends(small):
    text = describe_difference(read_grid(small), read_grid(changed(small, pe={"range": [1, 100]})))
    assert text.endswith("[1, 2, 3, ... 100 values ..., 98, 99, 100] now")


def test_rows_of_parameters_are_told_by_the_first_and_last(small):
    rows = [{"inter_latency": n * 1e-6, "inter_bandwidth": 1e9} for n in range(1, 41)]
    stored, now = (read_grid(changed(small, link=some)) for some in (rows, rows[:30]))
    text = describe_difference(stored, now)
    assert text.count("(") == 4
    assert "... 40 values ..." in text


def test_an_entry_that_changed_is_told_by_its_part(small):
    entry: dict[str, Any] = find("system", "abci", Path()).definition()
    other = deepcopy(entry)
    other["pe"]["efficiency"] = 0.25
    text = describe_difference(
        read_grid(changed(small, system=[entry])), read_grid(changed(small, system=[other]))
    )
    assert text == "system.abci.pe.efficiency: 0.5 in the store, 0.25 now"


def test_facts_that_change_no_answer_are_no_difference(small):
    entry: dict[str, Any] = find("system", "abci", Path()).definition()
    other = entry | {"title": "", "source": ["elsewhere"]}
    assert other != entry
    grids = [read_grid(changed(small, system=[system])) for system in (entry, other)]
    assert describe_difference(*grids) == ""


def test_watts_change_times_of_transformers(small):
    entry: dict[str, Any] = find("system", "abci", Path()).definition()
    other = entry | {"pe": entry["pe"] | {"watts": 250.0}}
    grids = [read_grid(changed(small, system=[system])) for system in (entry, other)]
    assert describe_difference(*grids) == "system.abci.pe.watts: 300 in the store, 250 now"


@pytest.mark.parametrize(
    ("messages", "text"), [(2.0, ""), (3.0, "placements: [{...}] in the store, [{...}] now")]
)
def test_only_placed_groups_of_both_may_differ(small, messages, text):
    group = {"device": [0, 1], "forward": [1, 0], "backward": [1, 1], "messages": 2.0, "items": 5.0}
    names = {"model": "m", "dataset": "d", "system": "s"}
    pairs = {**names, "groups": {2: group}}
    more = {**names, "groups": {2: group | {"messages": messages}, 4: group}}
    stored, wanted = (read_grid(small | {"placements": [entry]}) for entry in (pairs, more))
    assert describe_difference(stored, wanted) == text
    assert describe_other_changes(stored, wanted) == text


def test_many_are_counted(small):
    other = changed(small, pe=3, batch=5, strategy="data", system="dgx-h100") | {
        "scaling": "strong"
    }
    assert "more)" in describe_difference(read_grid(small), read_grid(other))


def test_values_that_are_added(small):
    longer = changed(small, pe=[1, 2, 4, 8, 16], model=["vgg16", "cosmoflow", "alexnet"])
    assert list_added_values(read_grid(small), read_grid(longer)) == {
        "model": ["vgg16"],
        "pe": [16],
    }
    assert list_added_values(read_grid(small), read_grid(changed(small, pe=[1]))) == {}


def test_what_is_added_is_no_difference_beyond(small):
    longer = changed(small, pe=[1, 2, 4, 8, 16], model=["vgg16", "cosmoflow", "alexnet"])
    assert describe_other_changes(read_grid(small), read_grid(longer)) == ""
    shorter = changed(small, pe=[1, 2, 4, 16], strategy=["data"])
    text = describe_other_changes(read_grid(small), read_grid(shorter))
    assert "axes.pe: [1, 2, 4, 8] in the store, [1, 2, 4] now" in text
    assert "axes.strategy" in text
