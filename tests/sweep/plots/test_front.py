"""The front is that of `pareto`, and its knee is named."""

from typing import Any

import numpy as np
import pytest
from open_answers import list_front

from paradl.grids.reading.errors import InputError
from paradl.sweep.engine.run import read_grid
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.front import Front, describe_front, draw_front
from paradl.sweep.questions.pareto import find_knee

ALEXNET: dict[str, Any] = {"model": "alexnet", "inter_bandwidth": "1 GB/s"}
# What figures are made of is typed too widely to be asked about.
draw: Any = draw_front


@pytest.mark.parametrize(("against", "key"), [("pe-hours", "pe_hours"), ("memory", "memory")])
def test_the_front_is_that_of_the_question(against, key, mixed):
    front = describe_front(mixed, ALEXNET, against)
    rows = list_front(mixed, ALEXNET, against=against)
    assert front.times.tolist() == [row["epoch_time"] for row in rows]
    assert front.costs.tolist() == [row[key] for row in rows]
    # No strategy's own front has a point that the front of all does not equal or beat.
    for times, costs in front.strategies.values():
        for time, cost in zip(times, costs, strict=True):
            assert ((front.times <= time) & (front.costs <= cost)).any()


def test_a_picture_trades_time_for_two_quantities(mixed):
    other: Any = ("pe_hours", "pe")
    assert describe_front(mixed, ALEXNET, other[0]).against == "pe-hours"
    with pytest.raises(InputError, match="against: unknown quantity 'pe'"):
        describe_front(mixed, ALEXNET, other[1])


def test_the_knee_is_where_the_front_bends_most():
    assert find_knee([1, 2, 8], [8, 2, 1]) == 1
    assert find_knee([1.0], [1.0]) == 0
    assert find_knee([1, 3, 4, 8], [8, 7, 1.2, 1]) == 2


def test_several_machines_have_several_fronts(mixed):
    with pytest.raises(InputError, match="inter_bandwidth"):
        describe_front(mixed, {"model": "alexnet"})
    with pytest.raises(NothingFeasibleError):
        describe_front(mixed, ALEXNET | {"strategy": "serial", "pe": 8})


def test_the_knee_of_layouts_is_written_in_words(layouts):
    assert "tp" in describe_front(layouts, against="memory").words


def test_the_knee_has_the_name_of_the_legend():
    axes = {"model": "resnet50", "dataset": "imagenet", "system": "abci", "pe": [16, 1024]}
    strategies = ["pipeline:segments=16", "data", "data+spatial:group=best"]
    front = describe_front(
        read_grid({"axes": {**axes, "strategy": strategies, "batch": 64}}), against="memory"
    )
    assert front.words == "data+spatial, p = 1,024"
    assert "data+spatial" in [text.get_text() for text in draw(front).legends[0].get_texts()]


NAMES = ("serial", "data", "spatial", "pipeline", "filter", "channel")


def make_front(count: int) -> Front:
    times = np.geomspace(1, 100, 5)
    own = {f"data+{name}:group={n}" for name in NAMES[2:] for n in (2, 4, 8, 16)}
    known = [*NAMES, *sorted(own)][:count]
    points = {name: (times * (n + 1), 1e10 / times) for n, name in enumerate(known)}
    return Front(
        "vgg16, imagenet on abci",
        "memory",
        times,
        1e10 / times,
        points,
        tuple(known),
        2,
        "data, p = 64",
    )


@pytest.mark.parametrize(("count", "size"), [(1, "slide"), (20, "paper"), (20, "slide")])
def test_texts_are_legible(count, size, expect_legible):
    front = make_front(count)
    figure = draw(front, size)
    expect_legible(figure)
    keys = [text.get_text().replace("\n", "") for text in figure.legends[0].get_texts()]
    assert keys == [*front.strategies, "front", "knee: data, p = 64"]
    assert figure.axes[0].get_ylabel() == "time of an epoch [s]"


def test_points_are_the_fronts():
    front = make_front(4)
    lines = {line.get_label(): line for line in draw(front).axes[0].get_lines()}
    for name, (times, costs) in front.strategies.items():
        assert lines[name].get_ydata().tolist() == times.tolist()
        assert lines[name].get_xdata().tolist() == costs.tolist()
    ring = lines["knee: data, p = 64"]
    assert (ring.get_xdata(), ring.get_ydata()) == ([front.costs[2]], [front.times[2]])
