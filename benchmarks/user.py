"""A user's sweeps: eight axes, and one model; then what is asked besides, against the plain one.

Processes of their own, from an empty cache of programs and again with what the first one kept.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from benchmarks.first import Seconds, run_command
from benchmarks.report import Effort, Goal, Report, Row, at_most
from paradl.sweep.engine.run import read_grid

AXES: dict[str, Any] = {
    "model": ["resnet50", "vgg16", "cosmoflow"],
    "dataset": ["imagenet", "imagenet-226", "cosmoflow-128"],
    "system": ["abci", "dgx-a100"],
    "pe": {"pow2": [1, 1024]},
    "batch": {"pow2": [1, 128]},
    "inter_bandwidth": {"geomspace": [1e9, 1e11, 32]},
    "inter_latency": {"geomspace": [1e-6, 2e-5, 7]},
}
# 252,000 cells.
ONE_MODEL: dict[str, Any] = {
    "model": "resnet50",
    "dataset": "imagenet",
    "system": "abci",
    "pe": {"pow2": [2, 1024]},
    "batch": {"pow2": [1, 128]},
    "inter_bandwidth": {"geomspace": [1e9, 1e11, 45]},
    "inter_latency": {"geomspace": [1e-6, 2e-5, 10]},
}
ALONE = ("data", "spatial", "pipeline", "filter", "channel")
GROUPED = ("data+spatial", "data+pipeline", "data+filter")
PLACED = "data+placement:group=2"
FOUR = [f"{group}:group=4" for group in GROUPED]
BEST = [f"{group}:group=best" for group in GROUPED]
OUTPUTS = ["comp_time", "comm_time", "memory", "limit"]
PERCENTILES = ["epoch_time_p10", "epoch_time_p90"]
SLOPES = [
    f"elasticity_epoch_time_{name}"
    for name in ("inter_bandwidth", "inter_latency", "peak_flops", "memory_bandwidth")
]
TOGETHER = "best, placement, percentiles and a slope"

ONE = "one model: "
# Strategies beside those alone, and outputs; goals: times of the plain sweep's, or seconds.
SWEEPS: dict[str, tuple[list[str], list[str]]] = {
    "plain": (FOUR, OUTPUTS),
    "placement": ([*FOUR, PLACED], OUTPUTS),
    "best": (BEST, OUTPUTS),
    "percentiles": (FOUR, [*OUTPUTS, *PERCENTILES]),
    "a slope": (FOUR, [*OUTPUTS, *SLOPES[:1]]),
    "four slopes": (FOUR, [*OUTPUTS, *SLOPES]),
    TOGETHER: ([*BEST, PLACED], [*OUTPUTS, *PERCENTILES, *SLOPES[:1]]),
    f"{ONE}plain": (FOUR[1:], OUTPUTS),
    f"{ONE}best": (BEST[1:], OUTPUTS),
    f"{ONE}percentiles": (FOUR[1:], [*OUTPUTS, *PERCENTILES]),
    f"{ONE}a slope": (FOUR[1:], [*OUTPUTS, *SLOPES[:1]]),
}
TIMES = {"percentiles": 5.0, "four slopes": 4.0}
SECONDS = 40.0


def measure(effort: Effort) -> Report:
    """Measure each sweep, cold and warm, in turn within a round; the least of the rounds."""
    runs = max(1, effort.rounds // 2)
    taken: dict[str, list[tuple[Seconds, Seconds]]] = {name: [] for name in SWEEPS}
    with TemporaryDirectory() as folder:
        for number in range(runs):
            for name in SWEEPS:
                taken[name].append(_measure_sweep(name, Path(folder) / f"{name}-{number}"))
    rows = [row for name in SWEEPS for row in _compare(name, taken)]
    title = "CPU seconds of a sweep of eight axes, from the command to its end"
    return Report("user", f"{title}: {_count_cells():,} cells", tuple(rows))


def _measure_sweep(name: str, folder: Path) -> tuple[Seconds, Seconds]:
    """Sweep with an empty cache, and with the programs that it left there."""
    folder.mkdir()
    (folder / "spec.yaml").write_text(yaml.safe_dump(_make_spec(name)))
    words = ["sweep", str(folder / "spec.yaml"), str(folder / "store.zarr"), "--overwrite"]
    cold, warm = (run_command([*words, "--quiet"], folder / "cache") for _ in range(2))
    return cold, warm


def _make_spec(name: str) -> dict[str, Any]:
    strategies, outputs = SWEEPS[name]
    axes = ONE_MODEL if name.startswith(ONE) else AXES
    return {"axes": axes | {"strategy": [*ALONE, *strategies]}, "outputs": outputs}


def _count_cells() -> int:
    """Count the cells of models and data sets that fit."""
    grid = read_grid(_make_spec("plain"))
    cells = len(grid.fitting)
    for size in grid.shape[2:]:
        cells *= size
    return cells


def _compare(name: str, taken: dict[str, list[tuple[Seconds, Seconds]]]) -> list[Row]:
    rows = []
    for which, kind in enumerate(("cold", "warm")):
        against = f"{ONE}plain" if name.startswith(ONE) else "plain"
        cpu, plain = (min(run[which].cpu for run in taken[key]) for key in (name, against))
        wall = min(run[which].wall for run in taken[name])
        goals = _list_goals(name, kind, cpu / plain, wall)
        note = f"wall {wall:.1f} s"
        rows.append(
            Row(f"{name}, {kind}", cpu, "s", cpu / plain, f"{against}, {kind}", goals, note)
        )
    return rows


def _list_goals(name: str, kind: str, times: float, wall: float) -> tuple[Goal, ...]:
    if name == TOGETHER and kind == "cold":
        return (at_most(wall, SECONDS, "s wall"),)
    return (at_most(times, TIMES[name], ""),) if name in TIMES else ()
