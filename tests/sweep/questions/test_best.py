from unittest.mock import Mock

import numpy as np
import pytest

import sweep
from kernels.flags import FORBIDS
from sweep.cube.store import open_cube
from sweep.questions import summary_table


def test_against_brute_force(mixed):
    rows = sweep.best(mixed).to_dict("records")
    assert len(rows) == 12
    for row in rows:
        cells = mixed.sel({key: row[key] for key in ("model", "dataset", "system", "strategy")})
        time = (cells.comp_time.astype(float) + cells.comm_time.astype(float)).values
        allowed = np.where((cells.limit.values & FORBIDS) == 0, time, np.inf)
        assert row["feasible"] == np.isfinite(allowed).any()
        if row["feasible"]:
            assert row["epoch_time"] == pytest.approx(allowed.min(), rel=1e-6)
            cell = cells.sel({axis: row[axis] for axis in ("pe", "batch", "inter_bandwidth")})
            time = float(cell.comp_time) + float(cell.comm_time)
            assert row["epoch_time"] == pytest.approx(time, rel=1e-6)
            assert row["comp_time"] + row["comm_time"] == pytest.approx(time, rel=1e-6)
            assert row["memory"] == float(cell.memory)
            assert row["limit"] == []


def test_the_fastest_comes_first(mixed):
    rows = sweep.best(mixed)
    for _, place in rows.groupby(["model", "dataset"]):
        allowed = place[place["feasible"].astype(bool)]
        assert allowed["epoch_time"].is_monotonic_increasing
        assert allowed["rank"].tolist() == list(range(1, len(allowed) + 1))
        assert place["feasible"].tolist() == sorted(place["feasible"], reverse=True)


def test_losers_say_what_forbids_them(mixed):
    rows = sweep.best(mixed, {"pe": 12, "model": "alexnet"}).set_index("strategy")
    serial = rows.loc["serial"]
    assert serial["rank"] is None
    assert serial["limit"] == ["too_many_pes"]
    assert serial["pe"] is None
    assert rows.loc["data", "pe"] == 12


def test_nothing_feasible(mixed):
    rows = sweep.best(mixed, {"strategy": "serial", "pe": 12})
    assert not rows["feasible"].any()


def test_nothing_that_can_exist(mixed):
    assert len(sweep.best(mixed, {"model": "alexnet", "dataset": "cosmoflow-128"})) == 0


def test_a_store_is_opened_once(small_url, monkeypatch):
    opened = Mock(side_effect=open_cube)
    monkeypatch.setattr(summary_table, "open_cube", opened)
    assert len(sweep.best(small_url))
    opened.assert_called_once_with(small_url)
