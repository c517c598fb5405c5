"""Splits leak nothing, by the command and by an independent check, and the command finds leaks."""

import json
import shutil

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sampled_spaces import SPACE
from typer.testing import CliRunner

from paradl.grids.entries.names import list_names
from paradl.sweep.cli.main import app
from paradl.sweep.samples.leakage import check_leakage
from paradl.sweep.samples.read import Samples
from paradl.sweep.samples.space import read_space
from paradl.sweep.samples.splits import SPLITS, choose_splits


@pytest.fixture(scope="module")
def rows(drawn: Samples) -> pd.DataFrame:
    return drawn.read([column["name"] for column in drawn.facts["columns"]])


def test_every_split_has_both_sides(drawn, rows) -> None:
    assert drawn.splits == tuple(SPLITS)
    for split in SPLITS:
        sides = rows[f"split_{split}"].value_counts()
        assert set(sides.index) == {"train", "test"}
        assert dict(sides) == drawn.facts["sides"][split]


@pytest.mark.parametrize("split", ["model", "system", "strategy"])
def test_no_tested_value_is_trained_on(rows, split) -> None:
    column = "system_name" if split == "system" else split
    train, test = (set(rows[rows[f"split_{split}"] == side][column]) for side in ("train", "test"))
    assert train
    assert test
    assert not train & test


@pytest.mark.parametrize(("split", "column"), [("scale", "pe"), ("size", "batch")])
def test_tested_values_lie_above_those_trained_on(rows, split, column) -> None:
    train, test = (rows[rows[f"split_{split}"] == side][column] for side in ("train", "test"))
    assert train.max() < test.min()


def test_problems_are_on_one_side(drawn, rows) -> None:
    """Rows that differ only in the batch, or in what does not matter on one PE or in a node."""
    features = [*drawn.list_columns("feature", constants=True)]
    problem = [name for name in features if name != "batch"]
    assert (rows.groupby(problem)["split_random"].nunique() == 1).all()
    alone = rows[rows.pe == 1]
    assert (alone.groupby(["model", "system_name"])["split_random"].nunique() == 1).all()
    # Inside a node the links beyond it do not matter.
    inside = rows[(rows.pe > 1) & (rows.pe <= rows.pes_per_node)]
    assert len(inside) > 50
    assert (inside.groupby(["model", "system_name", "pe"])["split_random"].nunique() == 1).all()


def test_links_beyond_a_node_have_no_slope_inside_it(rows) -> None:
    defined = rows[rows.defined]
    inside = defined[defined.pe <= defined.pes_per_node]
    for name in ("inter_bandwidth", "inter_latency"):
        assert (inside[f"elasticity_epoch_time_{name}"] == 0).all()
        beyond = defined[(defined.pe > defined.pes_per_node) & (defined.strategy == "data")]
        assert (beyond[f"elasticity_epoch_time_{name}"] != 0).any()


# A fifth of the values, to the nearest: by hand.
@pytest.mark.parametrize(
    ("count", "tested"), [(2, 1), (3, 1), (4, 1), (7, 1), (8, 2), (12, 2), (13, 3)]
)
def test_a_split_holds_out_a_fifth_of_the_values(count, tested) -> None:
    machines = [name for name in list_names("system") if name.startswith(("d", "h", "a"))][:count]
    assert len(machines) == count
    space = read_space(SPACE | {"axes": SPACE["axes"] | {"system": machines}})
    assert len(choose_splits(space, 0).tested["system"]) == tested


# Of PE counts at least a fifth, but never all: one of two, two of six.
@pytest.mark.parametrize(
    ("count", "tested"), [(2, 1), (3, 1), (4, 1), (5, 1), (6, 2), (8, 2), (10, 2), (11, 3)]
)
def test_a_split_tests_the_largest_fifth_of_a_list(count, tested) -> None:
    counts = [2**n for n in range(count)]
    space = read_space(SPACE | {"axes": SPACE["axes"] | {"pe": counts}})
    most = choose_splits(space, 0).most["scale"]
    assert sum(pe > most for pe in counts) == tested


def test_settings_of_a_machine_are_held_out_together() -> None:
    axes = SPACE["axes"] | {"system": ["dgx-a100", "dgx-a100:precision=tf32", "dgx1-v100"]}
    for seed in range(4):
        held = choose_splits(read_space(SPACE | {"axes": axes}), seed).tested["system"]
        assert held in ({"dgx-a100", "dgx-a100:precision=tf32"}, {"dgx1-v100"})


def test_the_command_says_that_nothing_leaks(drawn) -> None:
    result = CliRunner().invoke(app, ["surrogate", "check", str(drawn.path), "--format", "json"])
    assert result.exit_code == 0
    rows = json.loads(result.stdout)
    assert {row["split"] for row in rows} == set(SPLITS)
    assert not any(row["leaks"] for row in rows)


def test_the_command_finds_leaks(drawn, tmp_path) -> None:
    path = tmp_path / "rows"
    shutil.copytree(drawn.path, path)
    for split in ("model", "scale", "random"):
        # The rows of one file change sides, and their folder its name.
        file = next(path.glob(f"data/*{split}-test*/*.parquet"))
        table = pq.read_table(file)
        column = table.column_names.index(f"split_{split}")
        half = pa.array(["train"] * table.num_rows)
        pq.write_table(table.set_column(column, table.schema.field(column), half), file)
        moved = str(file.parent).replace(f"{split}-test", f"{split}-train")
        file.parent.rename(f"{moved},moved-{split}")
    # Another file alone is in the wrong folder.
    file = next(path.glob("data/*system-test*/*.parquet"))
    file.rename(next(path.glob("data/*system-train*")) / "part-99999.parquet")
    leaks = {row["split"]: row["what"] for row in check_leakage(path) if row["leaks"]}
    assert leaks.keys() >= {"model", "scale", "random"}
    assert "part-99999" in leaks["system"]
