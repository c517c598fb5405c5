import io
import json
from contextlib import redirect_stdout
from typing import Any

from paradl.sweep.questions import catalogue
from paradl.sweep.text.catalogue import show_entries


def printed(kind: str, form: Any) -> str:
    with redirect_stdout(io.StringIO()) as out:
        show_entries(getattr(catalogue, f"list_{kind}")(), form)
    return out.getvalue()


def test_the_catalogue_fits_a_screen(monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    for kind in ("models", "datasets", "systems", "strategies"):
        assert max(map(len, printed(kind, "table").splitlines())) <= 120


def test_levels_are_read_by_people_and_programs():
    table = printed("systems", "table")
    assert "leaf, 68 PEs: 40.31 us, 12.5 GB/s\n" in table
    assert "rack, 136 PEs: 40.49 us, 12.5 GB/s, 3:1" in table  # oversubscribed
    (abci,) = [row for row in json.loads(printed("systems", "json")) if row["system"] == "abci"]
    (leaf,) = [level for level in abci["levels"] if level["name"] == "leaf"]
    assert (leaf["pes"], leaf["latency"], leaf["bandwidth"]) == (68, 40.31e-6, 12.5e9)
    assert abci["source"]


def test_peaks_of_one_machine_are_shown():
    with redirect_stdout(io.StringIO()) as out:
        show_entries(catalogue.list_systems("dgx-b200"), "table")
    assert "nvfp4 9 PFLOP/s" in out.getvalue()
    rows = {row["system"]: row["tensor_peaks"] for row in json.loads(printed("systems", "json"))}
    assert rows["dgx-b200"]["mxfp8"] == 4.5e15
    assert set(rows["dgx-a100"]) == {"tf32", "amp", "bf16"}


def test_the_catalogue_in_csv_has_sources():
    assert "source" in printed("models", "csv").splitlines()[0]
