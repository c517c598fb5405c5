"""The tornado has the elasticities of `sensitivity`, the steepest first."""

from typing import Any

import pytest

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.looks import LESS, MORE
from paradl.sweep.plots.tornado import MOST_BARS, Slope, Tornado, describe_tornado, draw_tornado

# What figures are made of is typed too widely to be asked about.
draw: Any = draw_tornado


def test_bars_are_the_elasticities(machine_url):
    chosen: dict[str, Any] = {"pe": 4}
    rows = paradl.sensitivity(machine_url, chosen).to_dict("records")
    tornado = describe_tornado(machine_url, chosen)
    steepest = sorted((abs(row["elasticity"]) for row in rows), reverse=True)
    drawn = [abs(slope.elasticity) for slope in tornado.slopes]
    assert drawn == pytest.approx(steepest[: len(drawn)])
    assert len(tornado.slopes) + len(tornado.rest) == len(rows)
    bars = [bar for bar in draw(tornado).axes[0].patches if bar.get_width()]
    widths = {round(bar.get_y() + 0.35): bar.get_width() for bar in bars}
    assert [widths[n] for n in range(len(drawn))] == pytest.approx(
        [slope.elasticity for slope in tornado.slopes]
    )


def test_one_configuration_alone(mixed, machine_url):
    with pytest.raises(InputError, match="pe"):
        describe_tornado(machine_url)
    place = {"model": "alexnet", "inter_bandwidth": "1 GB/s", "batch": 8}
    with pytest.raises(NothingFeasibleError):
        describe_tornado(mixed, place | {"strategy": "serial", "pe": 8})


@pytest.mark.parametrize(("count", "size"), [(1, "slide"), (MOST_BARS, "paper")])
def test_texts_are_legible(count, size, expect_legible):
    slopes = [
        Slope(f"bandwidth of memory {n}", (-1) ** n / (n + 1), "doubled: -41.3%")
        for n in range(count)
    ]
    figure = draw(Tornado("vgg16, imagenet, data on abci, p = 64, b = 32", tuple(slopes)), size)
    texts = expect_legible(figure)
    assert {slope.name for slope in slopes} <= {*texts}
    keys = [text.get_text() for text in figure.legends[0].get_texts()]
    assert keys == ([LESS] if count == 1 else [MORE, LESS])
    assert figure.axes[0].get_xlabel() == "elasticity"


def test_the_note_counts_what_is_not_drawn():
    """Of more steep parameters than bars, it does not say that they are small."""
    slopes = tuple(Slope(f"parameter {n}", 1 / (n + 1)) for n in range(MOST_BARS))
    figure = draw(Tornado("vgg16 on abci", slopes, ("steep", "flat")))
    note = figure.get_supxlabel().replace("\N{NO-BREAK SPACE}", " ")
    assert note.endswith("not drawn: 2 smaller ones")


def test_sensitivity_is_of_the_best_layout(layouts):
    cell = {"pe": [128], "batch": [256]}
    layout = int(paradl.best(layouts, cell).iloc[0]["layout"])
    assert describe_tornado(layouts, cell).slopes == (
        describe_tornado(layouts, {**cell, "layout": [layout]}).slopes
    )
