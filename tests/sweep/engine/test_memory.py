"""What is promised, and what real sweeps take."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from paradl.grids.grid import Grid
from paradl.grids.outputs import MAIN_OUTPUTS
from paradl.sweep.cube.plan import plan_cube
from paradl.sweep.engine.resources import estimate_memory
from paradl.sweep.engine.run import read_grid

SPEC = {
    "model": "resnet50",
    "dataset": "imagenet",
    "system": ["abci", "dgx-h100"],
    "strategy": ["data", "spatial"],
    "pe": {"range": [1, 1024]},
    "batch": {"range": [1, 64]},
}
WIDE = {"inter_bandwidth": {"geomspace": ["1 GB/s", "1 TB/s", 32]}}

# Sweeps where so many cores are pretended, and tells its peak.
CODE = """
import os, re, sys
cores = set(range(int(sys.argv.pop(1))))
os.sched_getaffinity = lambda process: cores
sys.argv[0] = "paradl"
from paradl.sweep.cli.main import main
try:
    main()
finally:
    print(re.search(r"VmHWM:.*", open("/proc/self/status").read())[0])
"""


def promised(grid: Grid) -> tuple[int, int]:
    """Bytes of a process without blocks, and of each block."""
    memory = estimate_memory(grid, plan_cube(grid))
    return memory.process, memory.block


def peak(spec: Path, cores: int) -> tuple[float, float]:
    """Bytes that the plan says and that the sweep took, by a process with nothing compiled yet."""
    ran = subprocess.run(
        [sys.executable, "-c", CODE, str(cores), "sweep", str(spec), f"{spec.parent}/cube.zarr"],
        capture_output=True,
        text=True,
        env=os.environ | {"XDG_CACHE_HOME": str(spec.parent), "NPROC": str(cores)},
        timeout=100,
        check=True,
    )
    said = re.search(r"memory  ([\d.]+) ([MG])B at most", ran.stderr)
    taken = re.search(r"VmHWM:\s+(\d+) kB", ran.stdout)
    assert said
    assert taken
    return float(said[1]) * {"M": 1e6, "G": 1e9}[said[2]], 1024 * float(taken[1])


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux tells the peak")
def test_a_sweep_takes_no_more_than_its_plan_says(tmp_path):
    """With as many threads as 16 cores have; both of its blocks are in hand with one core, too."""
    spec = tmp_path / "spec.yaml"
    spec.write_text(yaml.safe_dump({"oracle": "paper", "axes": SPEC | WIDE}))
    said, taken = peak(spec, 16)
    assert taken < said < 1.7 * taken


def test_blocks_take_what_their_variables_do():
    """So terms that are asked for besides take more, and a search next to nothing."""
    spec = {"oracle": "paper", "axes": SPEC | WIDE}
    process, block = promised(read_grid(spec))
    more_process, more_block = promised(read_grid(spec | {"outputs": ["comp_time", "replicas"]}))
    assert more_process < process
    assert more_block < block
    assert promised(read_grid(spec).drop_outputs())[1] < block / 5


def test_lines_that_are_short_have_large_summaries():
    short, usual = (
        promised(read_grid({"oracle": "paper", "axes": SPEC | WIDE | axes}).drop_outputs())
        for axes in ({"pe": [64, 128], "batch": {"range": [1, 4096]}}, {})
    )
    assert short[0] > usual[0]
    assert short[1] > 10 * usual[1]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"strategy": ["pipeline", "spatial"]}, 0),
        ({"strategy": ["data", "data+spatial:group=best"]}, 1),
        ({"strategy": ["data", "pipeline:segments=best"]}, 1),
        ({"dataset": ["imagenet", "imagenet-226"]}, 0),
    ],
)
def test_what_takes_more(change, part):
    usual = promised(read_grid({"oracle": "paper", "axes": SPEC}))
    assert promised(read_grid({"oracle": "paper", "axes": SPEC | change}))[part] > usual[part]


def test_percentiles_take_more_of_both():
    usual = promised(read_grid({"axes": SPEC}))
    unsure = promised(read_grid({"axes": SPEC, "outputs": [*MAIN_OUTPUTS, "epoch_time_p90"]}))
    assert all(more > less for more, less in zip(unsure, usual, strict=True))


@pytest.mark.parametrize("oracle", ["paper", "machine"])
def test_elasticities_take_more_of_both(oracle):
    spec = {"oracle": oracle, "axes": SPEC}
    name = "elasticity_epoch_time_inter_bandwidth"
    usual = promised(read_grid(spec))
    sloped = promised(read_grid(spec | {"outputs": [*MAIN_OUTPUTS, name]}))
    assert all(more > less for more, less in zip(sloped, usual, strict=True))


def test_rows_are_as_many_as_they_are():
    """And not all combinations of their groups and segments: the sweep takes 1.4 GB in all."""
    layout = {"product": {"group": {"range": [1, 100]}, "segments": {"range": [1, 1001]}}}
    axes = {"strategy": "data+pipeline", "pe": 64, "batch": 1024, "layout": layout}
    process, block = promised(read_grid({"axes": SPEC | axes | {"system": "abci"}}).drop_outputs())
    assert 1.3e9 < process + 3 * block < 2e9
