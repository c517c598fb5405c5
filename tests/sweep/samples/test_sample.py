"""Rows equal the oracle's answers, and slopes equal its differences."""

import json

import numpy as np
import pandas as pd
import pytest
from sampled_spaces import ROWS, SPACE

from paradl.grids.reading.errors import InputError
from paradl.sweep.questions.predict import predict
from paradl.sweep.samples.columns import FACTS
from paradl.sweep.samples.draw import draw_slices, make_tables
from paradl.sweep.samples.read import Samples, open_samples
from paradl.sweep.samples.sample import sample
from paradl.sweep.samples.space import read_space

TARGETS = ("epoch_time", "comp_time", "comm_time", "memory")
PARAMETERS = ("pe", "batch", "inter_bandwidth", "inter_latency")


@pytest.fixture(scope="module")
def rows(drawn: Samples) -> pd.DataFrame:
    # Of 180 features few are enough.
    columns = drawn.facts["columns"]
    others = [column["name"] for column in columns if column["role"] != "feature"]
    return drawn.read([*PARAMETERS, *others])


def predict_row(row, **changed: float) -> dict[str, float]:
    """The oracle's answer for a row with changed parameters."""
    given = {name: float(row[name]) for name in PARAMETERS} | changed
    answer = predict(
        row["model"],
        row["strategy"],
        int(given.pop("pe")),
        int(given.pop("batch")),
        system=row["system_name"],
        dataset=row["dataset"],
        parameters=given,
    )
    return {name: np.nan if answer[name] is None else answer[name] for name in TARGETS}


def test_rows_equal_predictions(rows) -> None:
    for _, row in rows.sample(12, random_state=0).iterrows():
        answer = predict_row(row)
        for name in TARGETS:
            np.testing.assert_allclose(row[name], answer[name], rtol=1e-6)


@pytest.mark.parametrize("name", ["inter_bandwidth", "inter_latency"])
def test_slopes_are_central_differences_away_from_kinks(rows, name) -> None:
    smooth = rows[rows.defined & ~rows.near_kink & (rows.pe > 64) & (rows.strategy != "serial")]
    step = 1e-4
    for _, row in smooth.sample(6, random_state=1).iterrows():
        sides = [predict_row(row, **{name: row[name] * np.exp(sign * step)}) for sign in (1, -1)]
        for target in TARGETS:
            slope = (np.log(sides[0][target]) - np.log(sides[1][target])) / (2 * step)
            np.testing.assert_allclose(row[f"elasticity_{target}_{name}"], slope, atol=2e-6)


def test_every_slope_lies_between_those_of_both_sides(rows) -> None:
    """Beside kinks, too, and where a program rounds the same number in two ways."""
    marked = rows[rows.defined & rows.near_kink & (rows.strategy != "serial")]
    step, name = 1e-5, "inter_bandwidth"
    for _, row in marked.iterrows():
        points = (row[name] * np.exp(sign * step) for sign in (-1, 0, 1))
        answers = [predict_row(row, **{name: point}) for point in points]
        for target in TARGETS:
            sides = np.diff(np.log([answer[target] for answer in answers])) / step
            slope = row[f"elasticity_{target}_{name}"]
            assert sides.min() - 1e-5 <= slope <= sides.max() + 1e-5, target


def test_every_requested_row_is_there_once(rows) -> None:
    assert len(rows) == ROWS
    assert not rows.duplicated(["slice", "strategy"]).any()
    # A slice is one point under every strategy, but for the last one.
    sizes = rows.groupby("slice").size()
    assert (sizes == 3).sum() == len(sizes) - 1
    assert (rows.groupby("slice")[["model", "pe", "batch", "inter_bandwidth"]].nunique() == 1).all(
        axis=None
    )


def test_undefined_rows_have_a_reason_and_no_targets(rows) -> None:
    undefined = rows[~rows.defined]
    assert len(undefined) > 0
    assert (undefined.limit_names != "").all()
    assert undefined["epoch_time"].isna().all()
    assert not undefined.feasible.any()


def test_the_same_rows_for_the_same_seed_on_any_number_of_workers(drawn, tmp_path) -> None:
    names = ["slice", "strategy", "batch", "inter_bandwidth", "epoch_time", "split_random"]
    names += ["elasticity_epoch_time_batch"]
    expected = drawn.read(names).sort_values(["slice", "strategy"], ignore_index=True)
    sample(SPACE, tmp_path / "rows", ROWS, seed=7, workers=1)
    again = open_samples(tmp_path / "rows").read(names)
    again = again.sort_values(["slice", "strategy"], ignore_index=True)
    assert again.equals(expected)


def test_another_seed_draws_others() -> None:
    space = read_space(SPACE)
    tables = make_tables(space, space.problems[0], 0)
    one, other = (draw_slices(space, tables, space.problems[0], seed, 0, 64) for seed in (7, 8))
    assert not np.array_equal(one.rows, other.rows)
    assert not np.isin(one.values["inter_bandwidth"], other.values["inter_bandwidth"]).any()


def test_rows_are_left_out_on_request(tmp_path) -> None:
    # As many rows as of the data set: the same programs.
    written = sample(SPACE, tmp_path / "rows", ROWS, leave_out=["undefined", "kinks"])
    rows = open_samples(tmp_path / "rows").read(["defined", "near_kink"])
    assert written.rows == len(rows) < written.drawn == ROWS
    assert rows.defined.all()
    assert not rows.near_kink.any()


@pytest.mark.parametrize(
    ("arguments", "where"),
    [
        ({"rows": 0}, "rows: "),
        ({"leave_out": ["feasible"]}, "leave_out: .*'feasible'.*'infeasible'"),
        ({"splits": ["models"]}, "splits: .*'models'.*'model'"),
        ({"gradients": ["bandwidth"]}, "gradient: .*'bandwidth'"),
    ],
)
def test_bad_arguments_are_one_message_and_leave_nothing(arguments, where, tmp_path) -> None:
    with pytest.raises(InputError, match=f"^{where}") as error:
        sample(SPACE, tmp_path / "rows", **({"rows": 10} | arguments))
    assert len(str(error.value)) < 1000
    assert not list(tmp_path.iterdir())


def replace_axes(**axes: object) -> dict[str, object]:
    return SPACE | {"axes": SPACE["axes"] | axes}


@pytest.mark.parametrize(
    ("spec", "where"),
    [
        (replace_axes(batch=[8], inter_bandwidth="1 GB/s", inter_latency=["1 us", "2 us"]), "spec"),
        (replace_axes(pe={"uniform": [1, 64]}), "pe"),
        (replace_axes(batch={"loguniform": [8]}), "batch"),
        (replace_axes(batch={"uniform": [9, 8]}), "batch"),
        (replace_axes(inter_latency={"loguniform": [0, 1e-3]}), "inter_latency"),
        (replace_axes(batch=[8, {"uniform": [1, 9]}]), "batch"),
        (replace_axes(segments={"uniform": [1, 9]}), "segments"),
        (replace_axes(dataset="cosmoflow-128"), "spec"),
        (SPACE | {"outputs": ["straggler_wait"]}, "outputs"),
        (SPACE | {"outputs": ["elasticity_memory_memory_bandwidth"]}, "outputs"),
    ],
)
def test_bad_specs_are_one_message_that_names_the_key(spec, where, tmp_path) -> None:
    with pytest.raises(InputError) as error:
        sample(spec, tmp_path / "rows", 10)
    assert where in str(error.value).split("; ")[0]
    assert len(str(error.value)) < 1000


def test_a_split_that_leaves_nothing_to_test_is_refused(tmp_path) -> None:
    one = replace_axes(model="alexnet", system="dgx-a100", pe=8)
    with pytest.raises(InputError, match="splits model: "):
        sample(one, tmp_path / "rows", 10, splits=["model"])


def test_existing_files_are_kept(drawn, tmp_path) -> None:
    with pytest.raises(InputError, match=drawn.path.name):
        sample(SPACE, drawn.path, 10)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(InputError, match="mine"):
        sample(SPACE, tmp_path / "mine", 10, force=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()


def test_a_folder_without_a_data_set_and_another_format_are_refused(drawn, tmp_path) -> None:
    with pytest.raises(InputError, match=FACTS):
        open_samples(tmp_path)
    (tmp_path / FACTS).write_text(json.dumps({"format": 99}))
    with pytest.raises(InputError, match=FACTS):
        open_samples(tmp_path)
    with pytest.raises(InputError, match=r"splits: .*'speed'"):
        drawn.read(["epoch_time"], {"speed": "train"})


def test_networks_of_other_structure_are_sampled_beside_each_other(tmp_path) -> None:
    """BigLSTM looks up rows of its tables, which others lack."""
    axes = {
        "model": ["alexnet", "big_lstm", "vgg16"],
        "dataset": ["imagenet", "one-billion-words"],
        "system": "abci",
        "strategy": "data+filter:group=best",  # answered in numpy: nothing is compiled
        "pe": [4, 8],
        "batch": {"loguniform": [8, 64]},
    }
    sample({"axes": axes}, tmp_path / "rows", 6, gradients=None)
    samples = open_samples(tmp_path / "rows")
    rows = samples.read([column["name"] for column in samples.facts["columns"]])
    assert sorted(rows.model.unique()) == ["alexnet", "big_lstm", "vgg16"]
    for _, row in rows.iterrows():
        answer = predict(
            row.model, row.strategy, row.pe, row.batch, dataset=row.dataset, system="abci"
        )
        memory = np.nan if answer["memory"] is None else answer["memory"]
        np.testing.assert_allclose(row.memory, memory, rtol=1e-6)
