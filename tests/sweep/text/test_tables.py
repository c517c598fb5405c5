import csv
import io
import json
from typing import Any

import numpy as np
import pandas as pd
import pytest

from paradl.sweep.text.columns import Ranged, format_cell
from paradl.sweep.text.data import flatten_record
from paradl.sweep.text.tables import print_table, show, show_one

ROWS: list[dict[str, Any]] = [
    {"strategy": "data", "pe": 8, "epoch_time": 12.345678, "memory": 16e9, "limit": []},
    {"strategy": "serial", "pe": None, "epoch_time": None, "memory": None, "limit": ["a", "b"]},
]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (float("nan"), "-"),
        (True, "yes"),
        (False, "no"),
        (1234567, "1,234,567"),
        (1234567.0, "1,234,567"),
        (1.23456, "1.235"),
        (9999.6, "10,000"),
        (-9999.6, "-10,000"),
        (12345.6, "12,350"),
        (1e20, "1e+20"),
        (float("inf"), "inf"),
        (["a", "b"], "a, b"),
        ([], ""),
        ("data", "data"),
    ],
)
def test_cells(value, text):
    assert format_cell(value) == text


def test_json_is_the_rows(capsys):
    show(ROWS, "json")
    assert json.loads(capsys.readouterr().out) == ROWS


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf"), np.float64("nan")])
def test_json_has_no_word_for_what_is_no_number(value, capsys):
    show([{"a": value, "b": {"c": [value, (1.5, value)]}}], "json")
    show_one({"a": value}, "json")
    rows, one = capsys.readouterr().out.split("]\n{")
    strict: dict[str, Any] = {"parse_constant": pytest.fail}
    assert json.loads(rows + "]", **strict) == [{"a": None, "b": {"c": [None, [1.5, None]]}}]
    assert json.loads("{" + one, **strict) == {"a": None}


def test_a_data_frame_is_its_rows(capsys):
    show(pd.DataFrame(ROWS, dtype=object), "json")
    assert json.loads(capsys.readouterr().out) == ROWS


def test_csv_reads_back(capsys):
    show(ROWS, "csv")
    first, second = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert first == {
        "strategy": "data",
        "pe": "8",
        "epoch_time": "12.345678",
        "memory": "16000000000.0",
        "limit": "",
    }
    assert second["pe"] == ""
    assert second["limit"] == "a, b"


def test_markup_is_text(capsys):
    show([{"name": "[bold]model[/bold]"}], "table")
    assert "[bold]model[/bold]" in capsys.readouterr().out


def test_one_record_has_units_behind_its_values(capsys):
    show_one({"terms": {"halo_exchange": 1.5}, "iteration_time": 0.002, "limit": []}, "table")
    out = capsys.readouterr().out
    assert "1.5 s/epoch" in out
    assert "2 ms" in out


def test_nested_records_are_flat_in_csv(capsys):
    assert flatten_record({"a": {"b": {"c": 1}}, "d": [1, 2]}) == {"a.b.c": 1, "d": "1, 2"}
    show_one({"a": {"b": 1}}, "csv")
    assert capsys.readouterr().out == "a.b\n1\n"


def test_no_rows(capsys):
    for form in ("json", "csv", "table"):
        show(pd.DataFrame([], dtype=object), form)
    assert capsys.readouterr().out.startswith("[]")


def test_what_is_hidden_is_said_to_be_no_part_of_the_sum(capsys):
    show_one({"terms": {"straggler_wait": 1.5, "hidden_communication": 2.5}}, "table")
    *_, waited, hidden = capsys.readouterr().out.strip().splitlines()
    assert waited.split() == ["terms.straggler_wait", "1.5", "s/epoch"]
    assert hidden.split()[1:] == ["2.5", "s/epoch", "(no", "part", "of", "the", "sum)"]


@pytest.mark.parametrize("width", range(60, 120))
def test_no_character_of_prose_is_lost(width, capsys, monkeypatch):
    """Of two columns that wrap, rich made the last too wide, and cut a letter."""
    monkeypatch.setenv("COLUMNS", str(width))
    remedies = ("micro-batches that are a multiple of the stages", "at most 32 chunks in all")
    systems = ("dgx-h100, gb200-nvl72", "dgx-h100")
    print_table(
        [
            {"reason": reason, "layouts": 10**n, "system": systems[n], "remedy": remedies[n]}
            for n, reason in enumerate(("interleaving", "more_stages_than_blocks"))
        ]
    )
    out = capsys.readouterr().out
    assert all(len(line) <= width for line in out.splitlines())
    for key, texts in (("system", systems), ("remedy", remedies)):
        if key not in out.partition("left out")[2]:
            assert {*" ".join(texts).split()} <= {*out.split()}


def test_a_single_row_that_turns_has_its_interval_and_unit(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    row = {"strategy": "data", "iteration_time": Ranged(1062.5, 808.7, 1396.0), "marks": None}
    print_table([row | {f"column_{n}": float(n) for n in range(1, 9)}])
    out = capsys.readouterr().out
    assert "iteration_time   17.7 min (13.5 to 23.3)" in out
    assert "marks" not in out
