"""Curves are the cells of the cube that nothing forbids, no more and no fewer."""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.entries.strategy_words import MEANING
from paradl.grids.reading.errors import InputError
from paradl.kernels.names.flags import Limit
from paradl.sweep.errors import NothingFeasibleError
from paradl.sweep.plots.looks import choose_looks
from paradl.sweep.plots.scaling import (
    MOST_BANDS,
    ScalingCurve,
    ScalingCurves,
    describe_scaling,
    draw_scaling,
)
from paradl.sweep.plots.slices import name_stop

ALEXNET: dict[str, Any] = {"model": "alexnet", "inter_bandwidth": "12.5 GB/s", "batch": 8}
WRONG: Any = "throughputs"


@pytest.mark.parametrize("quantity", ["time", "throughput", "efficiency"])
def test_points_are_the_feasible_cells(quantity, mixed):
    scaling = describe_scaling(mixed, ALEXNET, quantity)
    cells = mixed.sel(
        model="alexnet", dataset="imagenet-226", system="abci", batch=8, inter_bandwidth=12.5e9
    ).load()
    values = getattr(cells.paradl, {"time": "epoch_time"}.get(quantity, quantity))
    drawn = {curve.strategy: curve for curve in scaling.curves}
    assert {*drawn, *scaling.forbidden} == {*cells["strategy"].values}
    for name in cells["strategy"].values:
        feasible = cells.paradl.feasible.sel(strategy=name).values
        assert (name in drawn) == feasible.any()
        if name in drawn:
            np.testing.assert_array_equal(drawn[name].pe, cells["pe"].values[feasible])
            expected = values.sel(strategy=name).values[feasible]
            np.testing.assert_allclose(drawn[name].values, expected, rtol=1e-6)


def test_causes_are_those_of_limits(mixed):
    selection = ALEXNET | {"dataset": "imagenet-226"}
    curves = describe_scaling(mixed, selection).curves
    table = paradl.limits(mixed, selection=selection)
    rows: dict[str, Any] = {row["strategy"]: row for row in table.to_dict("records")}
    for curve in curves:
        assert curve.pe[-1] == rows[curve.strategy]["largest_pe"]
        expected = rows[curve.strategy]["forbidden_by"].replace("_", " ").replace("pes", "PEs")
        assert (curve.cause or "end of the axis") == expected
    assert any(curve.cause == "too many PEs" for curve in curves)


def test_points_of_a_hybrid_are_joined_across_its_multiples(mixed):
    curves = {curve.strategy: curve for curve in describe_scaling(mixed, ALEXNET).curves}
    hybrid = curves["data+filter"]
    assert hybrid.pe.tolist() == [4, 8, 12]
    assert np.isfinite(hybrid.values).all()


def test_a_store_a_dataset_and_a_slice_say_the_same(mixed, mixed_url):
    part = mixed.sel(model="alexnet", batch=8, inter_bandwidth=12.5e9)
    stored = describe_scaling(mixed_url, ALEXNET)
    unread = paradl.open_dataset(mixed_url)
    for other in (describe_scaling(unread, ALEXNET), describe_scaling(part)):
        assert (other.title, other.forbidden) == (stored.title, stored.forbidden)
        for mine, theirs in zip(stored.curves, other.curves, strict=True):
            assert (mine.strategy, mine.cause) == (theirs.strategy, theirs.cause)
            np.testing.assert_array_equal(mine.values, theirs.values)
    assert (
        stored.title == "alexnet, imagenet-226 on abci, b = 8, bandwidth between nodes = 12.5 GB/s"
    )


def test_colours_go_by_all_strategies_of_the_cube(mixed):
    known = tuple(mixed["strategy"].values)
    assert describe_scaling(mixed, ALEXNET | {"strategy": ["data"]}).known == known


@pytest.mark.parametrize(
    ("quantity", "ends"),
    [("time", (0.8, 1.5)), ("throughput", (1 / 1.5, 1 / 0.8))],
)
def test_bands_are_the_percentiles_of_the_cube(quantity, ends, mixed):
    time = mixed.paradl.epoch_time
    cube = mixed.assign(epoch_time_p10=0.8 * time, epoch_time_p90=1.5 * time)
    for curve in describe_scaling(cube, ALEXNET, quantity).curves:
        assert curve.band is not None
        np.testing.assert_allclose(curve.band, np.outer(ends, curve.values), rtol=1e-6)


def test_all_axes_with_several_values_are_told_at_once(mixed):
    with pytest.raises(InputError, match="batch, inter_bandwidth") as error:
        describe_scaling(mixed, {"model": "alexnet"})
    assert 'batch=8 inter_bandwidth="1 GB/s"' in str(error.value)
    assert "batch 8, 64" in str(error.value)


def test_a_quantity_that_is_none(mixed):
    with pytest.raises(InputError, match="throughput"):
        describe_scaling(mixed, ALEXNET, WRONG)


def test_an_empty_picture_is_refused(mixed):
    with pytest.raises(NothingFeasibleError, match="too many PEs"):
        describe_scaling(mixed, ALEXNET | {"strategy": "serial", "pe": [8, 12]})


# What figures are made of is typed too widely to be asked about.
draw: Any = draw_scaling

GROUPS = ("spatial", "pipeline", "filter", "channel", "data+spatial", "data+filter")
LABELS = [*MEANING, *(f"data+{name}:group={n}" for name in GROUPS[:4] for n in (2, 4, 8))]


def make_scaling(count: int, quantity="time", banded=True) -> ScalingCurves:
    """Curves that lie close together, every third of which a limit ends."""
    curves = []
    for number, label in enumerate(LABELS[:count]):
        last = 1 if label == "serial" else 2 ** (4 + number % 7)
        pe = np.exp2(np.arange(np.log2(last) + 1))
        values = 5000 * (1 + 0.05 * number) / pe**0.8
        band = (values / 1.3, values * 1.3) if banded else None
        cause = None if last == 1024 else "too many PEs"
        curves.append(ScalingCurve(label, pe, values, pe > 64, band, cause))
    place = "resnet50, imagenet on dgx-a100-80gb, b = 32"
    return ScalingCurves(quantity, place, tuple(curves), tuple(LABELS), {"channel": "memory"})


@pytest.mark.parametrize(("count", "size"), [(1, "paper"), (20, "slide")])
def test_texts_are_legible(count, size, expect_legible):
    scaling = make_scaling(count)
    figure = draw(scaling, size)
    texts = expect_legible(figure)
    named = {text.partition("\n")[0] for text in texts}
    assert {curve.strategy for curve in scaling.curves} <= named
    # Names stand beside or below the axes, and so over no data.
    box, inside = figure.legends[0].get_window_extent(), figure.axes[0].get_window_extent()
    assert box.x0 > inside.x1 or box.y1 < inside.y0


def test_every_cause_is_told(expect_legible):
    scaling = make_scaling(20)
    texts = expect_legible(draw(scaling, "paper"))
    for curve in scaling.curves:
        result = [text for text in texts if text.partition("\n")[0] == curve.strategy]
        end = f"\nto {curve.pe[-1]:,.0f}: too many PEs" if curve.is_stopped else ""
        assert result == [curve.strategy + end]
    assert any("not drawn: channel (memory)" in text for text in texts)


def test_curves_look_as_their_strategies(expect_legible):
    scaling = make_scaling(4)
    axes = draw(scaling).axes[0]
    looks = choose_looks(LABELS)
    lines = {line.get_label(): line for line in axes.get_lines()}
    for curve in scaling.curves:
        line = next(line for label, line in lines.items() if label.startswith(curve.strategy))
        assert line.get_color() == looks[curve.strategy].colour
        np.testing.assert_array_equal(line.get_xdata(), curve.pe)
        np.testing.assert_array_equal(line.get_ydata(), curve.values)


@pytest.mark.parametrize(
    ("quantity", "expected"), [("time", [8, 2]), ("throughput", [8, 32]), ("efficiency", [8, 8])]
)
def test_the_ideal_is_a_speed_up_of_p(quantity, expected):
    curve = ScalingCurve("data", np.array([1.0, 4]), np.array([9.0, 8]), np.zeros(2, bool))
    figure = draw(ScalingCurves(quantity, "here", (curve,), ("data",), {}, 8.0))
    (ideal,) = (line for line in figure.axes[0].get_lines() if line.get_label() == "ideal")
    assert list(ideal.get_ydata()) == expected
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["data", "ideal"]


def test_the_ideal_starts_on_one_pe(mixed):
    for quantity in ("time", "throughput", "efficiency"):
        scaling = describe_scaling(mixed, ALEXNET, quantity)
        curves = {curve.strategy: curve for curve in scaling.curves}
        assert scaling.serial == pytest.approx(curves["serial"].values[0], rel=1e-6)


def test_bands_are_drawn_as_long_as_they_can_be_told_apart():
    assert len(draw(make_scaling(4)).axes[0].collections) == 4
    many = draw(make_scaling(MOST_BANDS + 1))
    assert not many.axes[0].collections
    assert f"more than {MOST_BANDS} curves" in many.get_supxlabel()
    assert not draw(make_scaling(4, banded=False)).axes[0].collections
    figure = draw(make_scaling(4))
    low, high = figure.axes[0].get_ylim()
    curves: Any = make_scaling(4).curves
    assert all(low < curve.band[0].min() for curve in curves)
    assert all(curve.band[1].max() < high for curve in curves)


@pytest.mark.parametrize(
    ("quantity", "unit"),
    [("time", "[s]"), ("throughput", "[samples/s]"), ("efficiency", "efficiency")],
)
def test_axes_have_units_and_plain_numbers(quantity, unit):
    axes = draw(make_scaling(4, quantity)).axes[0]
    assert unit in axes.get_ylabel()
    assert (axes.get_xscale(), axes.xaxis.get_transform().base) == ("log", 2)
    assert axes.xaxis.get_major_formatter()(1024) == "1,024"


def test_where_the_machine_ends_no_limit_stops_a_curve():
    limit = np.array([0, 0, Limit.MACHINE_TOO_SMALL], np.uint16)
    assert name_stop(limit, 1) is None
    assert name_stop(limit | np.array([0, 0, Limit.MEMORY], np.uint16), 1) is None
    assert name_stop(np.array([0, Limit.MEMORY], np.uint16), 0) == "memory"


def test_a_name_is_no_formula(tmp_path):
    scaling = make_scaling(1)
    odd = ScalingCurves(
        "time", "$x_{$ \x1b[31m", scaling.curves, scaling.known, {"$y_{$": "memory"}
    )
    draw(odd).savefig(tmp_path / "odd.png")  # warnings are errors


def test_layouts_are_drawn_at_their_best(layouts):
    """As `best` answers at each PE count; several batches are still too many."""
    drawn = describe_scaling(layouts, {"batch": [256]})
    best = [paradl.best(layouts, {"pe": [pe], "batch": [256]}).iloc[0] for pe in (64, 128)]
    assert drawn.curves[0].values == pytest.approx([row["epoch_time"] for row in best])
    assert drawn.title.endswith("each at its best layout")
    with pytest.raises(InputError, match="batch"):
        describe_scaling(layouts)
