"""The tornado has the elasticities of `sensitivity`, the steepest first."""

from typing import Any

import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.bars import draw_bars
from paradl.sweep.plots.stacks import describe_tornado

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_bars


@pytest.mark.parametrize("most", [None, 2])
def test_bars_are_the_elasticities(most, machine_url, monkeypatch):
    if most:
        monkeypatch.setattr("paradl.sweep.plots.stacks.MOST_SLOPES", most)
    chosen: dict[str, Any] = {"pe": 4}
    rows = paradl.sensitivity(machine_url, chosen).to_dict("records")
    tornado = describe_tornado(machine_url, chosen)
    steepest = sorted((abs(row["elasticity"]) for row in rows), reverse=True)
    drawn = [abs(slope) for slope in tornado.totals]
    assert drawn == pytest.approx(steepest[: len(drawn)])
    rest = len(rows) - len(drawn)
    assert rest or not most
    assert (f"not drawn: {rest} smaller ones" in tornado.notes) == (rest > 0)
    bars = [bar for bar in draw(tornado).axes[0].patches if bar.get_width()]
    widths = {round(bar.get_y() + 0.35): bar.get_width() for bar in bars}
    assert [widths[n] for n in range(len(drawn))] == pytest.approx(tornado.totals.tolist())


def test_one_configuration_alone(mixed, machine_url):
    with pytest.raises(InputError, match="pe"):
        describe_tornado(machine_url)
    place = {"model": "alexnet", "inter_bandwidth": "1 GB/s", "batch": 8}
    with pytest.raises(NothingFeasibleError):
        describe_tornado(mixed, place | {"strategy": "serial", "pe": 8})


def test_sensitivity_is_of_the_best_layout(layouts):
    cell = {"pe": [128], "batch": [256]}
    layout = paradl.best(layouts, cell).iloc[0]["layout"]
    alone = describe_tornado(layouts, {**cell, "layout": [layout]})
    assert describe_tornado(layouts, cell).totals.tolist() == alone.totals.tolist()
