"""Exports as others read them, none of whom knows paradl: pandas, Polars, DuckDB, xarray."""

import errno
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
import tracemalloc
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray as xr
from cubes import MIXED, unmark

import paradl
from paradl.grids.reading.errors import InputError
from paradl.sweep.cells.source import open_source
from paradl.sweep.cube.creation import create_cube
from paradl.sweep.cube.plan import count_cell_bytes, make_plan
from paradl.sweep.engine.block import run_blocks
from paradl.sweep.engine.run import read_grid
from paradl.sweep.errors import RunError
from paradl.sweep.exports.tables import RENAMED, make_batches, make_schema, write_parquet

KEYS = ["model", "dataset", "system_name", "strategy", "pe", "batch", "inter_bandwidth"]


@pytest.fixture(scope="module")
def table(mixed_url, tmp_path_factory) -> Path:
    """All that exists of MIXED as Parquet."""
    path = tmp_path_factory.mktemp("export") / "cells.parquet"
    paradl.export(mixed_url, path)
    return path


def ask(query: str) -> duckdb.DuckDBPyRelation:
    """What DuckDB answers."""
    answer = duckdb.sql(query)
    assert answer is not None
    return answer


def flatten(cube: xr.Dataset) -> pd.DataFrame:
    """A cube's cells as xarray makes a table of them, named as ours."""
    return cube.to_dataframe().reset_index().rename(columns=RENAMED)


def test_every_row_is_a_cell_that_can_exist(table, mixed):
    ours = pd.read_parquet(table)
    expected = flatten(mixed.load())
    expected = expected[(expected["comp_time"] + expected["comm_time"]).notna()]
    for name in KEYS[:4]:
        ours[name] = ours[name].astype(expected[name].dtype)
    merged = ours.merge(expected, on=KEYS, suffixes=("", "_stored"), validate="one_to_one")
    assert len(merged) == len(ours) == len(expected)
    for name in expected.columns.difference(KEYS):
        np.testing.assert_array_equal(merged[name], merged[f"{name}_stored"], err_msg=name)
    np.testing.assert_array_equal(ours["epoch_time"], ours["comp_time"] + ours["comm_time"])


def test_limits_have_names(table, mixed):
    rows = pd.read_parquet(table)
    for flags, names in zip(rows["limit_flags"], rows["limit_names"], strict=True):
        assert names == ", ".join(mixed.paradl.reasons(flags))
    forbidding = {"memory", "too_many_pes", "batch_too_small", "group_does_not_divide"}
    answer = rows["limit_names"].map(lambda names: not forbidding & set(names.split(", ")))
    assert not rows["feasible"][~answer].any()
    assert 0 < rows["feasible"].sum() < len(rows)


def test_pandas_polars_and_duckdb_read_the_same(table):
    query = "SELECT count(*), sum(memory), max(epoch_time) FROM cells"
    rows = pd.read_parquet(table)
    expected = (len(rows), rows["memory"].astype(float).sum(), rows["epoch_time"].max())
    polars = pl.read_parquet(table).select(
        pl.len(), pl.col("memory").cast(pl.Float64).sum(), pl.col("epoch_time").max()
    )
    (answer,) = ask(query.replace("cells", f"'{table}'")).fetchall()
    assert polars.row(0) == pytest.approx(expected, rel=1e-6)
    assert answer == pytest.approx(expected, rel=1e-6)
    types = {name: str(kind) for name, kind in pl.read_parquet(table).schema.items()}
    assert (types["pe"], types["batch"], types["feasible"]) == ("Int64", "Int64", "Boolean")
    assert (types["comp_time"], types["limit_flags"]) == ("Float32", "UInt16")


def test_units_and_the_spec_are_in_the_metadata(table, mixed):
    schema = pa.parquet.read_schema(table)
    assert schema.field("memory").metadata == {
        b"units": b"byte",
        b"long_name": b"memory of the fullest PE",
    }
    assert json.loads(schema.metadata[b"paradl_spec"]) == json.loads(mixed.attrs["paradl_spec"])
    query = f"SELECT decode(value) FROM parquet_kv_metadata('{table}') WHERE decode(key) = "
    ((columns,),) = ask(query + "'paradl_columns'").fetchall()
    assert json.loads(columns)["comp_time"]["units"] == "s"


def test_no_column_needs_quotes(mixed_grid):
    from paradl.grids.entries.parameters import PARAMETERS
    from paradl.sweep.cube.variables import VARIABLES

    dims = ["model", "dataset", "system", "strategy", *PARAMETERS]
    names = make_schema(dims, list(VARIABLES), mixed_grid, marked=True).names
    assert len(names) == len(set(names))
    keywords = "SELECT keyword_name FROM duckdb_keywords()"
    assert not set(names) & {word for (word,) in ask(keywords).fetchall()}
    # SQLite knows others, such as LIMIT without quotes nowhere.
    base = sqlite3.connect(":memory:")
    base.execute(f"CREATE TABLE cells ({', '.join(names)})")
    base.execute(f"SELECT {', '.join(names)} FROM cells GROUP BY {', '.join(names)}")
    base.close()


def test_all_marks_what_cannot_exist(mixed_url, mixed, tmp_path):
    paradl.export(mixed_url, tmp_path / "all.parquet", undefined=True)
    rows = pd.read_parquet(tmp_path / "all.parquet")
    assert len(rows) == mixed["limit"].size
    exists = rows["comp_time"].notna()
    assert (rows["defined"] == exists).all()
    assert 0 < exists.sum() < len(rows)
    assert (rows["limit_names"][~exists] != "").all()
    (nulls,) = ask(
        f"SELECT count(*) FROM '{tmp_path}/all.parquet' WHERE comp_time IS NULL"
    ).fetchall()
    assert nulls == ((~exists).sum(),)


def test_partitions(mixed_url, table, tmp_path):
    path = tmp_path / "parts.parquet"
    export = paradl.export(mixed_url, path, partition_by=["model", "system", "strategy"])
    whole = pd.read_parquet(table)
    assert export.rows == len(whole)
    assert export.files == len(whole[["model", "strategy"]].drop_duplicates())
    for rows in (
        pd.read_parquet(path),
        pl.read_parquet(path, hive_partitioning=True).to_pandas(),
        ask(f"FROM read_parquet('{path}/**/*.parquet', hive_partitioning=true)").df(),
    ):
        assert set(rows.columns) == set(whole.columns)
        counts = rows.groupby(["model", "strategy"], observed=True)["memory"].sum()
        expected = whole.groupby(["model", "strategy"], observed=True)["memory"].sum()
        assert counts.to_dict() == pytest.approx(expected.to_dict(), rel=1e-5)


def test_partitions_without_rows_have_no_folder(mixed_url, tmp_path):
    path = tmp_path / "parts.parquet"
    paradl.export(mixed_url, path, {"model": "alexnet"}, partition_by=["dataset", "model"])
    assert [folder.name for folder in path.iterdir()] == ["dataset=imagenet-226"]


def test_csv(mixed_url, table, tmp_path):
    paradl.export(mixed_url, tmp_path / "cells.csv")
    whole = pd.read_parquet(table)
    rows = pd.read_csv(tmp_path / "cells.csv", keep_default_na=False, na_values=[""])
    assert list(rows.columns) == list(whole.columns)
    for name in whole.select_dtypes("number"):
        np.testing.assert_array_equal(rows[name].astype(whole[name].dtype), whole[name])
    assert pl.read_csv(tmp_path / "cells.csv")["comm_time"].dtype == pl.Float64


def test_netcdf_is_the_cube(small_url, tmp_path):
    paradl.export(small_url, tmp_path / "cube.nc")
    with xr.open_dataset(tmp_path / "cube.nc", engine="h5netcdf") as read:
        xr.testing.assert_identical(read.load(), paradl.open_dataset(small_url).load())
        assert "memory" in read["limit"].attrs["flag_meanings"].split()


@pytest.mark.parametrize("name", ["cells.parquet", "cells.csv", "cube.nc"])
def test_exports_of_one_store_are_equal(name, small_url, tmp_path):
    written = set()
    for _ in range(3):
        paradl.export(small_url, tmp_path / name, force=True)
        written.add((tmp_path / name).read_bytes())
    assert len(written) == 1


def test_slices(mixed_url, mixed, small_url, tmp_path):
    chosen = {"model": "alexnet", "pe": [4, 8]}
    paradl.export(mixed_url, tmp_path / "a.parquet", chosen)
    paradl.export(mixed.sel(model="alexnet", pe=[4, 8]), tmp_path / "b.parquet")
    first, second = (pd.read_parquet(tmp_path / f"{name}.parquet") for name in "ab")
    pd.testing.assert_frame_equal(first, second)
    assert set(first["pe"]) == {4, 8}
    paradl.export(small_url, tmp_path / "c.nc", chosen)
    with xr.open_dataset(tmp_path / "c.nc", engine="h5netcdf") as read:
        assert read["pe"].values.tolist() == [4, 8]


def test_blocks_that_are_not_done(small_url, tmp_path):
    shutil.copytree(small_url, tmp_path / "cube.zarr")
    paradl.export(tmp_path / "cube.zarr", tmp_path / "whole.parquet")
    unmark(tmp_path / "cube.zarr", 1)
    export = paradl.export(tmp_path / "cube.zarr", tmp_path / "some.parquet", undefined=True)
    whole = paradl.export(tmp_path / "cube.zarr", tmp_path / "left.parquet").rows
    assert whole < pa.parquet.read_metadata(tmp_path / "whole.parquet").num_rows
    assert export.rows < export.cells
    with pytest.raises(RunError, match="1 of 4 blocks"):
        paradl.export(tmp_path / "cube.zarr", tmp_path / "cube.nc")
    assert sorted(os.listdir(tmp_path)) == [
        "cube.zarr",
        "left.parquet",
        "some.parquet",
        "whole.parquet",
    ]


def measure_memory(write):
    """The most that is there while a file is written [B]: Python's, and Arrow's."""
    # Of its own: the most that the default pool had may be another test's.
    default, pool = pa.default_memory_pool(), pa.proxy_memory_pool(pa.system_memory_pool())
    pa.set_memory_pool(pool)
    tracemalloc.start()
    write()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    pa.set_memory_pool(default)
    assert pool.max_memory() > 0
    return peak + pool.max_memory()


def test_memory_does_not_grow_with_the_cube(tmp_path):
    peaks, cells = {}, {}
    for blocks in (4, 12):
        values = np.linspace(1e9, 2e9, 64 * blocks).tolist()
        axes = {**MIXED["axes"], "model": "alexnet", "dataset": "imagenet-226", "strategy": "data"}
        grid = read_grid({"oracle": "paper", "axes": {**axes, "inter_bandwidth": values}})
        plan = make_plan(grid.dims, grid.shape, count_cell_bytes(grid), 2, 640, 640)
        cube = create_cube(str(tmp_path / f"{blocks}.zarr"), grid, plan)
        for block in run_blocks(cube, range(plan.blocks)):
            cube.mark([block])
        assert plan.blocks == blocks
        names = [*grid.spec.outputs, "serial_time"]
        schema = make_schema(grid.dims, names, grid, marked=False)
        path = tmp_path / f"{blocks}.parquet"

        def write(path=path, cube=cube, names=names, schema=schema):
            path.unlink(missing_ok=True)
            reader = open_source(cube)
            parts = reader.read_parts(names, reader.locate({}))
            write_parquet(path, make_batches(parts, schema, {}), schema, 640)

        # Of all threads of the process, also those that tests before have left: one run of three
        # had 8 MB of others', where all cells have 0.2 MB. What grows does so each time.
        peaks[blocks] = min(measure_memory(write) for _ in range(2))
        cells[blocks] = pq.read_table(path).nbytes
    # A group of rows leaves some kB in the file's own table of contents.
    assert peaks[12] - peaks[4] < 0.5 * (cells[12] - cells[4])


def test_a_file_is_kept_unless_forced(small_url, tmp_path):
    path = tmp_path / "cells.parquet"
    path.write_text("mine")
    with pytest.raises(InputError, match=r"cells.parquet: .* force=True"):
        paradl.export(small_url, path)
    assert path.read_text() == "mine"
    paradl.export(small_url, path, force=True)
    assert pa.parquet.read_metadata(path).num_rows
    paradl.export(small_url, tmp_path / "parts.parquet", partition_by=["model"])
    paradl.export(small_url, tmp_path / "parts.parquet", partition_by=["strategy"], force=True)
    assert all("strategy=" in name for name in os.listdir(tmp_path / "parts.parquet"))
    (tmp_path / "parts.parquet" / "diary.txt").write_text("mine")
    with pytest.raises(InputError, match=r"parts.parquet: "):
        paradl.export(small_url, tmp_path / "parts.parquet", force=True)


def test_a_label_is_no_formula_of_a_spreadsheet(cli, tmp_path):
    """In CSV, of an export and of an answer; other formats are not opened by spreadsheets."""
    _, machine, _ = cli("list", "systems", "abci", "--yaml")
    machine = re.sub(r"(?m)^name: .*", "name: '=1+1'", machine)
    (tmp_path / "machine.yaml").write_text(machine)
    axes = "model: [vgg16], dataset: [imagenet], strategy: [data], pe: [8], batch: [32]"
    text = f"axes: {{{axes}, system: [{tmp_path}/machine.yaml]}}"
    (tmp_path / "spec.yaml").write_text(text)
    store = tmp_path / "store.zarr"
    code, _, err = cli("sweep", tmp_path / "spec.yaml", store)
    assert code == 0, err
    for name in ("cells.csv", "cells.parquet"):
        assert cli("export", store, tmp_path / name)[0] == 0
    (label,) = pd.read_csv(tmp_path / "cells.csv")["system_name"]
    assert label == "'=1+1"
    assert [label.removeprefix("'")] == [*pd.read_parquet(tmp_path / "cells.parquet").system_name]
    code, out, err = cli("best", store, "--format", "csv")
    assert code == 0, err
    assert ",'=1+1," in out


@pytest.mark.parametrize("name", ["cells.parquet", "cells.csv", "cells.nc"])
def test_nothing_is_half_written(name, mixed_url, tmp_path, monkeypatch):
    def fail(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("paradl.sweep.exports.tables.make_batches", fail)
    monkeypatch.setattr("paradl.sweep.exports.export.write_netcdf", fail)
    with pytest.raises(RunError, match="the disk is full"):
        paradl.export(mixed_url, tmp_path / name)
    assert os.listdir(tmp_path) == []


# Python's bytecode would be cut short by the limit, too.
LIMITED = """
import resource, sys
from pathlib import Path
import h5netcdf, numpy, xarray
from paradl.sweep.exports.export import write_netcdf
sys.dont_write_bytecode = True
cube = xarray.Dataset({"memory": ("cell", numpy.random.default_rng(0).random(50_000))})
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write_netcdf(Path(sys.argv[1]), cube)
except OSError as error:
    sys.exit(error.errno)
"""


def test_a_file_that_the_system_cuts_short(tmp_path):
    # In a process of its own, which HDF5 would end by a segmentation fault.
    ended = subprocess.run([sys.executable, "-c", LIMITED, str(tmp_path / "cube.nc")], check=False)
    assert ended.returncode == errno.EFBIG


BAD = [
    (("cells.xlsx",), {}, "'cells.xlsx'"),
    (("no/cells.csv",), {}, "no: "),
    (("cells.csv",), {"partition_by": ["model"]}, "^partition_by: "),
    (("cells.nc",), {"undefined": True}, "^undefined: "),
    (("cells.parquet",), {"partition_by": ["pe"]}, "'pe'"),
    (("cells.parquet", {"model": "alexnot"}), {}, "'alexnot'"),
]


@pytest.mark.parametrize(("arguments", "options", "message"), BAD)
def test_bad_input(arguments, options, message, mixed_url, tmp_path):
    path, *rest = arguments
    with pytest.raises(InputError, match=message):
        paradl.export(mixed_url, tmp_path / path, *rest, **options)
    assert os.listdir(tmp_path) == []


def test_summaries_alone_have_no_cells(small, tmp_path):
    paradl.run(small, tmp_path / "cube.zarr", reduce_only=True)
    for name in ("cells.csv", "cells.parquet", "cells.nc"):
        with pytest.raises(InputError, match="only their summaries"):
            paradl.export(tmp_path / "cube.zarr", tmp_path / name)
        assert not (tmp_path / name).exists()


def test_a_library_that_is_missing(mixed_url, tmp_path, monkeypatch):
    monkeypatch.setattr("paradl.sweep.errors.find_spec", lambda name: None)
    for name in ("cells.parquet", "cells.nc"):
        with pytest.raises(RunError, match=r"pip install '.\[export\]'"):
            paradl.export(mixed_url, tmp_path / name)


def test_the_command(mixed_url, tmp_path, cli):
    path = tmp_path / "cells.parquet"
    code, out, answer = cli("export", mixed_url, path, "--sel", "model=alexnet")
    rows = pa.parquet.read_metadata(path).num_rows
    assert (code, out) == (0, "")
    assert f"{rows:,} rows of 240 cells in {path}" in answer
    code, _, answer = cli("export", mixed_url, path)
    assert (code, "--force" in answer) == (2, True)


def test_settings_are_words(tmp_path) -> None:
    axes = {"strategy": "data", "recompute": ["none", "core_attn+mlp"], "sequence": ["off", "on"]}
    named = {"model": "llama3_8b", "dataset": "pile", "system": "dgx-h100:precision=bf16"}
    paradl.run({"axes": named | axes | {"pe": 8, "batch": 8}}, tmp_path / "cube.zarr")
    for name in ("rows.csv", "rows.parquet"):
        paradl.export(tmp_path / "cube.zarr", tmp_path / name)
        rows = (pd.read_csv if name.endswith("csv") else pd.read_parquet)(tmp_path / name)
        assert set(rows["recompute"]) == {"none", "core_attn+mlp"}
        assert set(rows["sequence_parallel"]) == {"off", "on"}
