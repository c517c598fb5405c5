"""Common libraries read the files without any code of paradl."""

import json
import os
import subprocess
import sys

import duckdb
import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest
import yaml
from sampled_spaces import ROWS

from paradl.sweep.samples.features import FEATURES


def test_pandas_polars_and_duckdb_read_all_rows(drawn) -> None:
    files = f"{drawn.path}/data/*/*.parquet"
    assert len(pd.read_parquet(drawn.path / "data")) == ROWS
    assert pl.scan_parquet(files).select(pl.len()).collect().item() == ROWS
    query = f"select split_model, count(*) from '{files}' where feasible group by all"
    counted = dict(duckdb.execute(query).fetchall())
    assert set(counted) == {"train", "test"}


def test_no_column_is_a_reserved_word(drawn) -> None:
    names = [column["name"] for column in drawn.facts["columns"]]
    duckdb.execute(
        f"select {', '.join(names)} from '{drawn.path}/data/*/*.parquet' limit 1"
    ).fetchall()
    assert not {"system", "limit", "group", "size", "order"} & set(names)


def test_units_roles_and_the_spec_are_in_the_metadata(drawn) -> None:
    file = pq.ParquetFile(next(drawn.path.glob("data/*/*.parquet")))
    schema = file.schema_arrow
    assert schema.field("inter_bandwidth").metadata[b"units"] == b"B/s"
    assert schema.field("epoch_time").metadata[b"role"] == b"target"
    spec = json.loads(schema.metadata[b"paradl_spec"])
    assert spec["axes"]["inter_bandwidth"] == {"loguniform": [1e9, 1e11]}
    assert spec["axes"]["model"][0]["name"] == "alexnet"
    assert file.metadata.row_group(0).column(0).compression == "ZSTD"


def test_the_card_has_all_columns_and_a_configuration_per_split(drawn) -> None:
    _, header, body = (drawn.path / "README.md").read_text().split("---\n", 2)
    configured = {entry["config_name"]: entry for entry in yaml.safe_load(header)["configs"]}
    assert set(configured) == {"default", *drawn.splits}
    files = drawn.path.glob("data/*/*.parquet")
    rows = {file: pq.read_metadata(file).num_rows for file in files}
    for name in drawn.splits:
        for side in configured[name]["data_files"]:
            count = sum(rows[file] for file in drawn.path.glob(side["path"]))
            assert count == drawn.facts["sides"][name][side["split"]]
    for column in drawn.facts["columns"]:
        assert f"| `{column['name']}` |" in body


def test_the_card_is_utf8_in_any_locale(drawn, tmp_path) -> None:
    facts = tmp_path / "facts.json"
    facts.write_text(json.dumps(drawn.facts | {"name": "größe"}))
    code = (
        "import json, pathlib, sys; from paradl.sweep.samples.write import write_card; "
        "facts, card = map(pathlib.Path, sys.argv[1:]); "
        "write_card(card, json.loads(facts.read_text()), ())"
    )
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", code, str(facts), str(tmp_path / "README.md")]
    subprocess.run(command, check=True, timeout=60, env={**os.environ, **locale})
    assert "# größe" in (tmp_path / "README.md").read_text(encoding="utf-8")


def test_the_datasets_library_has_the_splits(drawn, tmp_path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.disable_progress_bars()
    loaded = datasets.load_dataset(str(drawn.path), "model", cache_dir=str(tmp_path))
    assert {side: part.num_rows for side, part in loaded.items()} == drawn.facts["sides"]["model"]


def test_reading_by_role_and_side(drawn) -> None:
    features = drawn.list_columns("feature")
    assert set(features) < set(drawn.list_columns("feature", constants=True)) == set(FEATURES)
    assert not set(features) & set(drawn.facts["constants"])
    train = drawn.read(["model"], {"model": "train", "scale": "test"})
    assert set(train.model).isdisjoint(drawn.facts["splits"]["model"]["tested"])
