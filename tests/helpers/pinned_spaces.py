"""Design spaces whose numbers are all pinned (tests/test_pins.py), and their digests.

Together they have every strategy, both oracles, odd PE counts, fixed and chosen groups and
segments, weak and strong scaling, precisions, software, recomputation, accumulation, machine
parameters as axes, percentiles and elasticities. Numbers are in single precision, as in a store:
the last bits of double precision differ from one compiler to the next.

    python tests/helpers/pinned_spaces.py    # pins the present numbers, after intended changes
"""

import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import zarr
from numpy.typing import NDArray

from paradl.grids.grid import read_grid
from paradl.sweep.cells.memory_cube import compute_cells
from paradl.sweep.engine.run import run

STRATEGIES = [
    "serial",
    "data",
    *("spatial", "pipeline", "filter", "channel"),
    *("data+spatial", "data+pipeline", "data+filter", "data+channel"),
    *("data+spatial:group=6", "data+spatial:split=h", "spatial:split=all"),
    *("data+pipeline:group=3,segments=7", "data+pipeline:group=best,segments=best"),
    *("data+filter:group=6", "data+filter:group=best", "data+channel:group=5"),
]
PLACED = ["placement", "data+placement", "data+placement:group=2"]
SEVERAL = [
    "data+spatial+pipeline:spatial=4,pipeline=3,segments=5",
    *("data+filter+pipeline", "data+channel+pipeline:channel=5", "spatial+pipeline:spatial=6"),
    *("data+spatial+filter:spatial=2", "spatial+channel:spatial=2"),
    *("data+spatial+filter+pipeline:spatial=2", "spatial+filter+pipeline:spatial=best,filter=2"),
    "data+spatial+pipeline:spatial=best,pipeline=best,segments=best",
]
PINS = Path(__file__).parents[1] / "data" / "pins.json"
# Powers of two, odd numbers, primes, and counts beyond a node, a rack and the machine.
PES = [1, 2, 3, 4, 6, 8, 12, 15, 16, 30, 64, 210, 1024, 5000]
MODELS: dict[str, Any] = {
    "model": ["alexnet", "cosmoflow", "gnmt"],
    "dataset": ["imagenet-226", "cosmoflow-128", "wmt16-en-de"],
}
TERMS = [
    *("forward_backward", "pipeline_bubble", "weight_update", "pass_overhead", "launch_wait"),
    *("split_overhead", "gradient_packing", "input_wait", "gradient_exchange"),
    *("layer_collectives", "halo_exchange", "split_gather", "sample_scatter", "point_to_point"),
    *("log_files", "straggler_wait", "hidden_communication"),
]
ANSWERS = ["comp_time", "comm_time", "memory", "limit", "replicas", "group_size", "segment_count"]
OUTPUTS = [*ANSWERS, *TERMS]


def _space(oracle: str, axes: dict[str, Any], **spec: Any) -> dict[str, Any]:
    """Make a spec of the three models under all strategies; `axes` and others replace parts."""
    every: dict[str, Any] = {**MODELS, "strategy": STRATEGIES, "pe": PES, "batch": [1, 7, 64]}
    return {"oracle": oracle, "outputs": OUTPUTS, "axes": {**every, **axes}, **spec}


SPACES: dict[str, dict[str, Any]] = {
    "paper": _space(
        "paper",
        {
            "system": ["abci", "dgx-h100:precision=amp"],
            "segments": [1, 5, 16],
            "accumulate": [1, 3],
            "inter_bandwidth": ["1 GB/s", "12.5 GB/s"],
            "inter_latency": ["2 us", "40 us"],
        },
    ),
    "paper, as its authors counted": _space(
        "paper",
        {"system": "abci", "gamma": [0.3, 1], "phi": [1, 2.5], "delta": [2, 4], "segments": [3, 8]},
        **{"conventions": "authors", "allreduce": "hierarchical", "iterations": "ceil"},
        **{"collectives": "best", "optimizer": "none"},
    ),
    "paper, a mini-batch divided": _space(
        "paper",
        {"system": "dgx1-v100", "batch": [32, 500], "intra_bandwidth": ["20 GB/s", "200 GB/s"]},
        **{"scaling": "strong", "collectives": "tree", "optimizer": "adam", "times": "roofline"},
    ),
    "machine": _space(
        "machine",
        {
            "system": ["abci", "dgx-a100:precision=amp"],
            "strategy": [*STRATEGIES, *PLACED],
            "segments": [2, 5],
            "accumulate": [1, 3],
            "inter_bandwidth": ["1 GB/s", "12.5 GB/s"],
            "inter_latency": ["2 us", "40 us"],
        },
        calibration="none",
    ),
    "machine, several in a replica": _space(
        "machine",
        {
            "system": ["abci", "dgx-h100:precision=bf16"],
            "strategy": SEVERAL,
            "filter": [1, 4],
            "pipeline": [1, 7],
            "batch": [7, 64],
        },
        calibration="none",
        parameters={"accumulate": 3},
    ),
    "machine, calibrated": _space(
        "machine",
        {"system": "abci:software=plain", "peak_flops": ["7 TFLOP/s", "15.7 TFLOP/s"]},
        **{"scaling": "strong", "iterations": "ceil"},
    ),
    "machine, layers run again": _space(
        "machine",
        {"system": "dgx-h100:precision=bf16", "overlap": [0, 0.7], "bucket": ["1 MB", "25 MB"]},
        **{"recompute": "full", "collectives": "ring", "optimizer": "adam"},
        parameters={"input_rate": 20000, "max_global_batch": 8192},
    ),
    "machine, intervals": _space(
        "machine",
        {
            "system": "dgx1-v100:precision=amp",
            "strategy": ["data", "spatial", "data+pipeline", "data+filter:group=best"],
            "pe": [1, 3, 16, 210],
            "batch": 7,
        },
        outputs=["comp_time_p10", "comm_time_p50", "epoch_time_p90"],
    ),
    "machine, elasticities": _space(
        "machine",
        {
            "model": "alexnet",
            "dataset": "imagenet-226",
            "system": "abci",
            # Each strategy's slopes are a program of 2.5 s of CPU: this one has the terms of both.
            "strategy": "data+filter",
            "pe": [1, 3, 16, 210],
        },
        outputs=["elasticity_epoch_time_inter_bandwidth", "elasticity_memory_batch"],
    ),
}

# Swept into stores: cells and summaries.
SWEPT: dict[str, dict[str, Any]] = {
    oracle: {
        "oracle": oracle,
        "axes": {
            "model": ["alexnet", "cosmoflow"],
            "dataset": ["imagenet-226", "cosmoflow-128"],
            "system": "abci",
            "strategy": ["data+filter", "data+spatial", "data+pipeline:group=best"],
            "pe": PES,
            "batch": [1, 7, 64],
            "inter_bandwidth": ["1 GB/s", "12.5 GB/s"],
        },
    }
    for oracle in ("paper", "machine")
}


def digest_store(name: str, url: str) -> dict[str, str]:
    """Return the SHA-256 of every array of a swept store, with summaries but without marks."""
    run(SWEPT[name], url)
    digests = {}
    for path, array in sorted(zarr.open_group(url, mode="r").members(max_depth=None)):
        if isinstance(array, zarr.Array) and not path.startswith("progress"):
            values = np.asarray(array[:])
            if values.dtype.kind in "fiu":
                digests[path] = _hash(values)
    return digests


def digest(name: str) -> dict[str, str]:
    """Return the SHA-256 of each strategy's numbers in a space, as stored."""
    cells = compute_cells(read_grid(SPACES[name]))
    labels, variables = cells["strategy"].values.tolist(), sorted(cells.data_vars, key=str)
    # Of each strategy at once: xarray selects in all variables, whichever is read.
    chosen = {label: cells.sel(strategy=label) for label in labels}
    return {
        label: _hash(*(numbers[name].values for name in variables))
        for label, numbers in chosen.items()
    }


def _hash(*arrays: NDArray[Any]) -> str:
    """Return the digest of arrays' bits, with one NaN and one zero."""
    digester = hashlib.sha256()
    for array in arrays:
        values = array
        if values.dtype.kind == "f":
            values = np.where(np.isnan(values), np.array(np.nan, values.dtype), values)
            values = values + np.array(0, values.dtype)  # -0.0 becomes 0.0
        digester.update(np.ascontiguousarray(values).tobytes())
    return digester.hexdigest()[:24]


def pin_all() -> None:
    """Write the present digests of all spaces to the file that the tests read."""
    pins = {name: digest(name) for name in SPACES}
    with tempfile.TemporaryDirectory() as folder:
        pins |= {f"swept: {name}": digest_store(name, f"{folder}/{name}") for name in SWEPT}
    PINS.write_text(json.dumps(pins, indent=1) + "\n")


if __name__ == "__main__":
    pin_all()
