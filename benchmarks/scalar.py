"""The engine against a plain Python loop over cells.

That is tests/helpers/reference.py, which knows no arrays.
"""

import sys
from dataclasses import dataclass
from importlib.util import module_from_spec, spec_from_file_location
from itertools import product
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import spaces
from benchmarks.effort import Effort
from benchmarks.kernel import Block, block_cells
from benchmarks.report import Report, Row
from benchmarks.timing import Action, interleaved
from grids.inputs.case import Workload

REFERENCE = Path(__file__).parents[1] / "tests" / "helpers" / "reference.py"
TOLERANCE = 1e-5

PER_LAYER = ("x", "y", "w", "bias", "flops", "channels", "filters")
TRIPLES = ("extents_x", "extents_y", "kernel")


@dataclass(frozen=True)
class ScalarRate:
    """Cells a second of the loop, of the engine, and their ratio."""

    loop: float
    engine: float
    speedup: float


def measure(effort: Effort) -> Report:
    """The strategies that take the loop least and most."""
    rows: list[Row] = []
    for name in ("data", "data+filter"):
        result = scalar_rate(name, effort)
        rows += [
            Row(f"{name}: scalar loop", result.loop, "cells/s"),
            Row(f"{name}: engine", result.engine, "cells/s", result.speedup, "the loop"),
        ]
    return Report("scalar", "a Python loop over cells, on one core", tuple(rows))


def scalar_rate(strategy: str, effort: Effort) -> ScalarRate:
    """The loop takes some cells of a block, the engine all of them; their answers agree."""
    grid = spaces.space((strategy,), 1024, 4096)
    work = grid.workload(0, 0, 0)
    assert work is not None  # the space's model and dataset fit
    engine_block = Block(grid, 0)
    block = engine_block.arrays()
    pes = range(4, 1025, 4)
    asked = list(product(pes, range(1, 1 + effort.scalar_cells // len(pes))))
    loop = Loop.over(work, strategy, grid.spec.parameters["gamma"])
    for p, b in asked[:: len(pes)]:
        result = loop.predict(p, b)
        for name in ("comp_time", "comm_time", "memory"):
            np.testing.assert_allclose(block[name][p - 1, b - 1], result[name], rtol=TOLERANCE)
    actions: dict[str, Action] = {
        "loop": lambda: [loop.predict(p, b) for p, b in asked],
        "engine": engine_block,
    }
    timings = interleaved(actions, effort.rounds)
    per_cell = len(asked) / block_cells(grid)
    engine, scalar = timings["engine"], timings["loop"]
    return ScalarRate(
        loop=len(asked) / scalar.median,
        engine=block_cells(grid) / engine.median,
        speedup=engine.rate_against(scalar) / per_cell,
    )


@dataclass(frozen=True)
class Loop:
    """The scalar oracle with one workload and strategy; `reference` is its module."""

    reference: ModuleType
    layers: list[Any]
    machine: Any
    setting: dict[str, object]

    @classmethod
    def over(cls, work: Workload, strategy: str, gamma: float) -> "Loop":
        """Take a workload over into the loop's own terms."""
        reference = load_reference()
        setting = {"strategy": strategy, "samples": work.samples, "gamma": gamma}
        return cls(reference, _layers(reference, work), _machine(reference, work), setting)

    def predict(self, p: int, b: int) -> dict[str, Any]:
        """One cell."""
        setup = self.reference.Setup(p=p, batch=b, **self.setting)
        answer: dict[str, Any] = self.reference.predict(self.layers, self.machine, setup)
        return answer


def load_reference() -> ModuleType:
    """Tests are no package: their module is loaded from its file."""
    spec = spec_from_file_location("reference", REFERENCE)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their own module up
    spec.loader.exec_module(module)
    return module


def _layers(reference: ModuleType, work: Workload) -> list[Any]:
    table, seconds = work.table, work.seconds
    return [
        reference.Layer(
            name=table.names[n],
            kind=table.kinds[n],
            seconds=None if seconds is None else float(seconds[n]),
            **{name: float(getattr(table, name)[n]) for name in PER_LAYER},
            **{name: tuple(map(int, getattr(table, name)[n])) for name in TRIPLES},
        )
        for n in range(len(table))
    ]


def _machine(reference: ModuleType, work: Workload) -> Any:
    system = work.system
    return reference.Machine(
        peak_flops=system.pe.peak_flops,
        efficiency=system.pe.efficiency,
        memory_capacity=system.pe.memory_capacity,
        memory_bandwidth=system.pe.memory_bandwidth,
        pes_per_node=system.pes_per_node,
        links_per_node=system.links_per_node,
        levels=[(each.pes, each.latency, each.bandwidth) for each in system.levels],
    )
