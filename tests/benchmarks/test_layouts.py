"""Published runs of transformers: every row is read, shipped rates meet them."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks import clusters, forecasts, layout_runs, layouts
from paradl.grids.entries.transformer_rates import FITTED, find_peaks
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.sweep.measured.compare import rate_prediction


def test_allocated_memory_is_met_and_a_card_shows_more() -> None:
    runs = [run for run in layout_runs.read_runs() if run.memory]
    assert len(runs) == 121
    ratios: dict[str, list[float]] = {}
    for run in runs[::3]:
        ratios.setdefault(run.memory_kind, []).append(layout_runs.predict_memory(run) / run.memory)
    assert all(0.95 < ratio < 1 for ratio in ratios["allocated"])
    assert np.median(ratios["nvidia-smi"]) < 0.9


def test_what_ran_may_fit() -> None:
    """Each published run has a chance of 5 % or more; most rather fit than not."""
    runs = [*layout_runs.read_runs(), *layout_runs.read_runs(layout_runs.UNSEEN)]
    chances = np.array([layout_runs.find_fits(run) for run in runs])
    assert chances.min() > 0.05
    stated = np.array(["recompute" not in run.assumed for run in runs])
    assert np.count_nonzero(stated) > 450
    assert np.mean(chances[stated] > 0.5) > 0.9


def test_what_ran_out_of_memory_rather_does_not_fit(tmp_path: Path) -> None:
    """Three trials of BLOOM, 384 A100 of Jean Zay (BigScience, chronicles-prequel, 2022)."""
    with layout_runs.RUNS.open(newline="") as file:
        bloom = next(row for row in csv.DictReader(file) if row["model"] == "gpt-181b")
    usual = {"zero": "1", "sequence_parallel": "0", "recompute": "blocks", "chunks": "1"}
    trials = (
        {"tensor": "8", "pipeline": "1", "data": "48", "micro": "1", "global_batch": "2016"},
        {"tensor": "2", "pipeline": "6", "data": "32", "micro": "2", "global_batch": "2048"},
        {"tensor": "2", "pipeline": "6", "data": "32", "micro": "1", "global_batch": "2048"},
    )
    path = tmp_path / "rows.csv"
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, bloom)
        writer.writeheader()
        writer.writerows(bloom | usual | trial for trial in trials)
    chances = [layout_runs.find_fits(run) for run in layout_runs.read_runs(path)]
    assert len(chances) == 3
    assert max(chances) < 0.5


def test_shipped_rates_meet_published_times() -> None:
    """By a third of the runs, in all stacks; the scoreboard has all, each 25 ms."""
    runs = [run for run in layouts.select_timed() if forecasts.is_dense(run)]
    assert len(runs) == 527
    runs = runs[::3]
    logs = layouts.compare_times(runs, FITTED)
    assert layouts.measure_accuracy(logs) > 0.89
    assert 0.75 < layouts.find_inside(runs, logs).mean() < 0.9


def test_a_fit_finds_the_rates_that_made_the_rows() -> None:
    """Of rows whose times are predictions themselves."""
    runs = layouts.choose_rows(layouts.select_timed())[:60:4]
    prior = layouts.DENSE
    rates = {name: centre for name, (centre, _) in prior.items()} | {"expert_wait": 0.0}
    made = [replace(run, seconds=layout_runs.predict_seconds(run, rates)) for run in runs]
    assert layouts.fit_values(made, prior, {"expert_wait": 0.0}) == pytest.approx(rates, rel=0.01)


def test_every_row_is_read_and_its_stack_is_known() -> None:
    for path, rows in ((layout_runs.RUNS, 398), (layout_runs.UNSEEN, 202)):
        runs = layout_runs.read_runs(path)
        assert len(runs) == rows
        assert {run.stack for run in runs if run.seconds} <= set(layout_runs.STACKS)


def write_row(path: Path, **changes: str) -> Path:
    """Write the rows that no fit has seen, with the fourth changed."""
    with layout_runs.UNSEEN.open(newline="") as file:
        rows = [*csv.DictReader(file)]
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows([*rows[:3], rows[3] | changes])
    return path


EXPERTS = (
    "{name: moe, blocks: 96, features: 4096, heads: 64, experts: 64, active: 8, "
    "expert_hidden: 1536, vocabulary: 1024}"
)


@pytest.mark.parametrize(
    "changes",
    [
        # Eight ranks of tensor for each of 32 experts' parts: more than 8 x 15 PEs.
        {"network": EXPERTS, "expert": "32"},
        {"micro": "7"},
        {"tensor": "7"},
        {"pipeline": "97", "chunks": "1"},
        {"zero": "1", "shard": "7"},
    ],
)
def test_a_row_of_an_impossible_layout_is_named(changes: dict[str, str], tmp_path: Path) -> None:
    path = write_row(tmp_path / "runs.csv", **changes)
    with pytest.raises(InputError, match=r"runs\.csv:5: gpt-310\.1b"):
        layout_runs.read_runs(path)


def test_experts_are_divided_as_a_row_says(tmp_path: Path) -> None:
    changes = {"network": EXPERTS, "expert": "8", "data": "16", "global_batch": "2048"}
    changes |= {"sequence_parallel": "1"}
    stated, other = (
        layout_runs.read_runs(write_row(tmp_path / f"{etp}.csv", expert_tensor=etp, **changes))
        for etp in ("1", "0")
    )
    (one, of_tensor) = (layout_runs.predict_seconds(runs[3], FITTED) for runs in (stated, other))
    assert [int(runs[3].layout.etp[0]) for runs in (stated, other)] == [1, 8]
    assert np.isfinite([one, of_tensor]).all()
    assert one != of_tensor


def list_values(entry: Any, path: str = "") -> dict[str, Any]:
    """The numbers and texts of an entry, by their place in it."""
    if not isinstance(entry, dict | list):
        return {path: entry}
    items = entry.items() if isinstance(entry, dict) else enumerate(entry)
    return {
        key: value
        for name, part in items
        for key, value in list_values(part, f"{path}.{name}".strip(".")).items()
    }


@pytest.mark.parametrize(
    ("name", "system", "changes"),
    [
        ("dgx-h100", "dgx-h100", {}),
        ("v100-oneflow", "dgx1-v100", {"links_per_node": 1}),
        (
            "a100-jean-zay",
            "dgx-a100-80gb",
            {"links_per_node": 4, "levels.1.bandwidth": 12.5e9, "levels.2.bandwidth": 12.5e9},
        ),
        ("a800", "dgx-a100-80gb", {"levels.0.bandwidth": 200e9}),
        (
            "h100-96gb",
            "grand-teton",
            {"pe.memory_bandwidth": 2.4e12, "pe.memory_capacity": 95 * 2**30},
        ),
        ("tpu-v5p-int8", "tpu-v5p", {"pe.tensor_peaks.fp8": 918e12}),
    ],
)
def test_a_cluster_is_its_system_but_for_what_is_stated(
    name: str, system: str, changes: dict[str, float]
) -> None:
    before = list_values(find("system", system, Path()).definition())
    after = list_values(clusters.find_cluster(name).definition())
    changed = {key: value for key, value in after.items() if before.get(key) != value}
    roomy = {key for key in changed if key == "size" or key.endswith(".pes")}
    assert {changed.pop(key) for key in roomy} == {clusters.MOST_PES}
    changed.pop("name", None)
    assert changed == changes
    assert before.keys() <= after.keys()


def test_systems_of_runs_are_those_of_the_catalogue() -> None:
    """Racks have an adapter for each PE, nvfp4 its own peak, and every run has room."""
    runs = [*layout_runs.read_runs(), *layout_runs.read_runs(layout_runs.UNSEEN)]
    for run in runs:
        assert run.layout.pes[0] <= run.system.most_pes
        catalogue = clusters.CLUSTERS.get(run.system.name, clusters.Cluster(run.system.name))
        assert run.device == find("system", catalogue.system, Path()).pe.device
    racks = [run.system for run in runs if run.system.pes_per_node == 72]
    assert {system.links_per_node for system in racks} == {72}
    narrow = [run for run in runs if run.precision == "nvfp4"]
    assert {run.device for run in narrow} == {"gb200", "gb300"}
    for run in narrow:
        assert run.system.pe.tensor_peaks
        assert find_peaks(run.system, "nvfp4").products == run.system.pe.tensor_peaks.nvfp4


def test_accuracy_is_that_of_compare() -> None:
    ratios = [0.1, 0.5, 0.99, 1.0, 1.3, 2.0, 3.75]
    rated = np.array([rate_prediction(ratio, 1.0) for ratio in ratios], float)
    for ratio, accuracy in zip(ratios, rated, strict=True):
        assert layouts.measure_accuracy(np.log([ratio])) == pytest.approx(accuracy)
    assert layouts.measure_accuracy(np.log(ratios)) == pytest.approx(rated.mean())
