"""Find the size from which compiling a question pays, compared with numpy.

One configuration, 1024 and 32,768 PE counts at once, by the machine oracle with intervals.
"""

from functools import partial
from time import perf_counter

import jax

from benchmarks.effort import Effort
from benchmarks.report import Report, Row
from benchmarks.timing import Action, interleaved
from kernels.blocks.outputs import select_outputs
from kernels.configuration.case import Case
from kernels.namespace import use_numpy
from sweep.engine.run import read_grid

NAMES = ("comp_time", "comm_time", "memory", "limit", "epoch_time_p10", "epoch_time_p90")
PES = (1, 1024, 32_768)


def measure(effort: Effort) -> Report:
    """Measure a call in numpy and compiled, and how many calls pay for compiling."""
    rows: list[Row] = []
    for strategy in ("data", "data+filter:group=4"):
        for pes in PES:
            rows += _measure_case(
                f"{strategy}, {pes:,} PE counts", _make_case(strategy, pes), effort
            )
    return Report("programs", "a call, compiled and in numpy", tuple(rows))


def _make_case(strategy: str, pes: int) -> Case:
    axes = {
        "model": "resnet50",
        "dataset": "imagenet",
        "system": "abci",
        "strategy": strategy,
        "pe": {"range": [1, pes]} if pes > 1 else 64,
        "batch": 32,
    }
    case = read_grid({"axes": axes}).ask_intervals().case((0, 0, 0, 0))
    assert isinstance(case, Case)  # ImageNet fits
    return case


def _measure_case(what: str, case: Case, effort: Effort) -> list[Row]:
    start = perf_counter()
    program = jax.jit(partial(select_outputs, names=NAMES)).lower(case).compile()
    compiling = perf_counter() - start
    actions: dict[str, Action] = {
        "numpy": partial(_run_numpy, case),
        "compiled": lambda: jax.block_until_ready(program(case)),
    }
    timings = interleaved(actions, effort.rounds)
    numpy, compiled = timings["numpy"].median, timings["compiled"].median
    return [
        Row(f"{what}: compiling", compiling, "s"),
        Row(f"{what}: a call, compiled", compiled, "s"),
        Row(
            f"{what}: a call in numpy",
            numpy,
            "s",
            compiling / max(numpy - compiled, 1e-9),
            "calls until compiling pays",
        ),
    ]


def _run_numpy(case: Case) -> object:
    with use_numpy():
        return select_outputs(case, NAMES)
