"""Accuracy as the paper states it, over strategies; and what grows with PEs inside groups."""

import csv
from pathlib import Path
from typing import Any

import pytest

import paradl
from paradl.sweep.measured.compare import summarise_accuracy
from paradl.sweep.measured.runs import PARTS


def rate(strategy: str, accuracy: float) -> dict[str, Any]:
    nothing = ("predicted_total", "within", "within_comp", "within_comm", "accuracy_memory")
    parts = {f"accuracy_{part}": accuracy for part in PARTS}
    authors = {f"authors_accuracy_{part}": None for part in PARTS}
    return {"strategy": strategy, "model": "m", **dict.fromkeys(nothing), **parts, **authors}


def test_each_strategy_counts_once_and_serial_runs_do_not() -> None:
    rows = [rate("data", 0.9), rate("data", 0.7), rate("filter", 0.6), rate("serial", 0.0)]
    summary = summarise_accuracy(rows)
    assert summary["strategies_mean"] == pytest.approx(dict.fromkeys(PARTS, (0.8 + 0.6) / 2))
    assert summary["overall"]["total"]["mean"] == pytest.approx(0.55)
    assert summarise_accuracy([rate("serial", 1.0)])["strategies_mean"]["total"] is None


def predict(p: int) -> dict[str, float]:
    answer = paradl.predict(
        "resnet50",
        "data+filter",
        p,
        64,
        dataset="imagenet",
        system="abci",
        settings={"calibration": "none"},
    )
    return {part: answer[f"iteration_{part}_time"] for part in ("comp", "comm")}


def test_what_grows_with_pes_inside_groups_is_log_files_and_no_congestion(tmp_path: Path) -> None:
    path = tmp_path / "runs.csv"
    small, large = predict(16), predict(256)
    with path.open("w", newline="") as file:
        columns = ("model", "dataset", "strategy", "p", "samples_per_replica")
        lines = csv.writer(file)
        lines.writerow([*columns, "total_s", "comp_s", "comm_s"])
        for p, times, slower in ((16, small, 1), (256, large, 4)):
            comp, comm = times["comp"], slower * times["comm"]
            lines.writerow(["resnet50", "imagenet", "data+filter", p, 64, comp + comm, comp, comm])
    near, far = paradl.compare(path, system="abci", calibration="none")["rows"]
    assert near["anomaly"] is None
    assert "log files" in far["anomaly"]["cause"]
