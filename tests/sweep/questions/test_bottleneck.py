import pytest

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.inputs.draws import DRAWS
from paradl.sweep.configurations.row_cases import build_row_case
from paradl.sweep.engine.run import read_grid
from paradl.sweep.questions.bottleneck import list_bottlenecks
from paradl.sweep.text.planning import settle_label
from paradl.sweep.uncertainty.draws import draw_terms


@pytest.fixture(scope="module")
def rows():
    strategies = "data,data+filter:group=4"
    options = SpaceValues("alexnet", "pow2:1..64", 32, "imagenet", "abci", strategy=strategies)
    return list_bottlenecks(make_grid(options))


def test_shares_are_those_of_a_prediction(rows):
    row = next(row for row in rows if row["strategy"] == "data" and row["pe"] == 64)
    predicted = paradl.predict("alexnet", "data", 64, 32, dataset="imagenet", system="abci")
    time = predicted["epoch_time"]
    for name, share in row["shares"].items():
        assert share == pytest.approx(predicted["terms"][name] / time, rel=1e-9)
    assert row["memory_parts"] == pytest.approx(predicted["memory_parts"])
    assert row["epoch_time"] == pytest.approx(time)


def test_shares_add_up_and_the_largest_binds(rows):
    for row in rows:
        assert sum(row["shares"].values()) == pytest.approx(1)
        assert row["share"] == max(row["shares"].values()) == row["shares"][row["bottleneck"]]
        assert sum(row["memory_parts"].values()) == pytest.approx(row["memory"])
        assert row["sentence"].startswith(f"{row['share']:.0%} of the time is ")


def test_what_does_not_exist_has_no_row(mixed):
    rows = paradl.bottleneck(mixed, {"model": "alexnet", "strategy": "serial"})
    assert set(rows["pe"]) == {1}


def test_ranges_of_shares_are_those_of_the_draws(rows):
    options = SpaceValues(
        "alexnet", "pow2:1..64", 32, "imagenet", "abci", strategy="data+filter:group=4"
    )
    grid = make_grid(options).ask_intervals()
    row = next(row for row in rows if row["strategy"] != "data" and row["pe"] == 64)
    terms = {
        name: draw_term[0, 0] for name, draw_term in draw_terms(build_row_case(grid, row)).items()
    }
    binding = 0
    for draw in range(DRAWS):
        times = {name: float(term[draw]) for name, term in terms.items()}
        binding += max(times, key=times.__getitem__) == row["bottleneck"]
    assert row["bottleneck_probability"] == binding / DRAWS
    for name, share in row["shares"].items():
        shares = sorted(float(terms[name][n] / sum(terms.values())[n]) for n in range(DRAWS))
        low, high = row["shares_p10"][name], row["shares_p90"][name]
        assert shares[3] <= low <= shares[4]
        assert shares[27] <= high <= shares[28]
        assert low < share < high
    assert row["share_p10"] == row["shares_p10"][row["bottleneck"]]
    assert row["computing_p10"] < row["computing"] < row["computing_p90"]


def test_table_iii_has_no_ranges(mixed):
    rows = paradl.bottleneck(mixed, {"model": "alexnet", "strategy": "data"})
    assert not [name for name in map(str, rows) if "p10" in name or "probability" in name]


def test_what_was_left_to_a_cell_is_stated():
    """The group and the segments are those that `predict` chooses."""
    strategy = "data+pipeline:group=best,segments=best"
    options = SpaceValues("alexnet", 16, 32, "imagenet", "abci", strategy=strategy)
    (row,) = list_bottlenecks(make_grid(options))
    predicted = paradl.predict("alexnet", strategy, 16, 32, dataset="imagenet", system="abci")
    assert row["group_size"] == predicted["group"]
    assert row["segment_count"] == predicted["segments"]
    assert row["replicas"] * row["group_size"] == 16
    settled = settle_label(row)
    assert "best" not in settled
    again = paradl.predict("alexnet", settled, 16, 32, dataset="imagenet", system="abci")
    assert again["epoch_time"] == pytest.approx(row["epoch_time"])


def test_of_many_layouts_the_best_of_each_cell_has_a_row():
    """Even where it cannot exist at the other PE count."""
    axes = {
        "model": "llama2_7b",
        "dataset": "pile:length=4096",
        "system": "dgx-h100:precision=bf16",
        "strategy": "data+tensor+pipeline",
        "pe": [8, 1024],
        "batch": 128,
        "layout": {"product": {"tensor": [1, 2, 4, 8], "pipeline": [1, 2, 4, 8], "micro": [1, 2]}},
    }
    grid = read_grid({"scaling": "strong", "axes": axes})
    rows = paradl.bottleneck(grid)
    for pe in (8, 1024):
        best = paradl.best(grid, {"pe": pe}).iloc[0]
        listed = rows[rows["pe"] == pe].set_index("layout")["epoch_time"]
        assert listed[best["layout"]] == listed.min() == pytest.approx(best["epoch_time"])
