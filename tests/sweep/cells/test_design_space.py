"""Design spaces of options: what a text means, what is searched, and the cube that comes of it."""

from typing import Any

import numpy as np
import pytest

import paradl
from paradl.grids.design_space import SpaceValues, make_grid
from paradl.grids.entries.names import split_labels
from paradl.grids.reading.errors import InputError
from paradl.grids.shorthands import split_values
from paradl.sweep.cells.memory_cube import compute_cells

PAPER = {"oracle": "paper"}


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("64", "64"),
        ("64, 128", ["64", "128"]),
        ("1..8", {"range": ["1", "8"]}),
        ("pow2:1..8,12", [{"pow2": ["1", "8"]}, "12"]),
        (
            "geomspace:1 GB/s..9 GB/s..20",
            {"geomspace": ["1 GB/s", "9 GB/s", "20"]},
        ),
        (64, 64),
        ({"pow2": [1, 8]}, {"pow2": [1, 8]}),
    ],
)
def test_texts_are_values_of_a_spec(text, values):
    assert split_values(text) == values


def test_settings_of_a_name_have_commas_of_their_own():
    text = "abci,dgx-h100:precision=amp,software=ddp,./mine.yaml"
    assert split_labels(text) == ["abci", "dgx-h100:precision=amp,software=ddp", "./mine.yaml"]


def test_an_unknown_range():
    with pytest.raises(InputError, match=r"'powers:1..8'.*pow2"):
        split_values("powers:1..8")


def test_what_is_not_given_is_searched():
    grid = make_grid(
        SpaceValues("alexnet", pe="8", dataset="imagenet", system="abci", settings=PAPER)
    )
    assert len(grid.strategies) == 10
    assert all(strategy.group == "best" for strategy in grid.strategies if strategy.hybrid)
    pipelines = [strategy for strategy in grid.strategies if strategy.parts == ("pipeline",)]
    assert [pipeline.segments for pipeline in pipelines] == ["best", "best"]
    samples = grid.datasets[0].samples
    assert grid.axes["batch"].max() == min(samples, 2**20)
    assert grid.spec.parameters["max_global_batch"] == samples


def test_what_is_given_stays():
    options = SpaceValues(
        "alexnet",
        pe="pow2:1..8",
        batch="16,32",
        dataset="imagenet",
        system="abci",
        strategy="data+filter,data+pipeline:group=4",
        parameters={"group": "2", "segments": "8", "inter_bandwidth": "1 GB/s,2 GB/s"},
        settings=PAPER,
    )
    grid = make_grid(options)
    assert grid.labels["strategy"] == ("data+filter", "data+pipeline:group=4")
    assert grid.axes["pe"].tolist() == [1, 2, 4, 8]
    assert grid.axes["inter_bandwidth"].tolist() == [1e9, 2e9]
    assert grid.spec.parameters == {"group": 2, "segments": 8}


def test_batches_end_at_the_largest_global_batch():
    parameters = {"max_global_batch": 48}
    options = SpaceValues(
        "alexnet", "8", dataset="imagenet", system="abci", parameters=parameters, settings=PAPER
    )
    assert make_grid(options).axes["batch"].tolist() == [1, 2, 4, 8, 16, 32, 48]


def test_without_pes_all_powers_of_two_of_the_machine():
    grid = make_grid(SpaceValues("alexnet", dataset="imagenet", system="abci", settings=PAPER))
    assert grid.axes["pe"].tolist() == [
        2.0**n for n in range(grid.systems[0].most_pes.bit_length())
    ]


def test_a_cube_in_memory_is_the_one_in_a_store(mixed, mixed_grid):
    cells = compute_cells(mixed_grid)
    assert cells.sizes == mixed.sizes
    for name in mixed.data_vars:
        np.testing.assert_array_equal(cells[name].values, mixed[name].values)
    assert (cells.paradl.efficiency.fillna(0) == mixed.paradl.efficiency.fillna(0)).all()


def test_a_space_in_python():
    cells = paradl.compute_space(
        "alexnet",
        dataset="imagenet",
        system="abci",
        pe=[4, 8],
        batch=32,
        strategy="data",
        settings=PAPER,
    )
    predicted = paradl.predict(
        "alexnet", "data", 8, 32, dataset="imagenet", system="abci", settings=PAPER
    )
    time = cells.paradl.epoch_time.sel(pe=8).item()
    assert time == pytest.approx(predicted["epoch_time"], rel=1e-6)
    assert len(paradl.best(cells)) == len(paradl.best(cells.sel(pe=4))) == 1


def test_too_many_cells():
    with pytest.raises(InputError, match="cells"):
        paradl.compute_space(
            "alexnet", pe="1..99999", batch="1..1000", dataset="imagenet", system="abci"
        )


def test_a_misspelt_word_has_the_nearest():
    words: dict[str, Any] = {"globalbatch": 64}
    with pytest.raises(
        TypeError, match=r"compute_space\(\) has no 'globalbatch'; .*'global_batch'"
    ):
        paradl.compute_space("llama2_7b", **words)
    words = {"sequnce": 64}
    with pytest.raises(TypeError, match="'sequence'"):
        paradl.predict("llama2_7b", "data", 8, 8, **words)
    words = {"sytem": "abci"}
    with pytest.raises(TypeError, match="did you mean 'system'"):
        paradl.predict("llama2_7b", "data", 8, 8, **words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ({"batch": 8, "global_batch": 64}, "^global_batch: "),
        ({"global_batch": 64, "dataset": "pile", "tokens": 1e12}, "^tokens: "),
        ({"global_batch": 64, "precision": "fp99"}, "^precision: "),
        ({"global_batch": 64, "sequence": 0}, "^sequence: "),
        ({"global_batch": 64, "tokens": 0}, "^tokens: "),
    ],
)
def test_words_of_planners_name_themselves(words, said):
    with pytest.raises(InputError, match=said):
        make_grid(SpaceValues("llama2_7b", pe=8, system="dgx-h100", **words))
