"""Features: numbers that any model, machine and strategy has, including new ones.

They are sizes of layers, the machine's stated performance and how a strategy divides the network;
none is an answer, a term or a time of an oracle. Unlimited values (no staging, no input limit) are
0.

To add one: a row here, or in `sweep.samples.model_features` for a number of a network's layers;
files, card and streams follow. Test: tests/sweep/surrogates/test_features.py, it is no answer, term
or time of an oracle.
"""

from functools import lru_cache, partial
from typing import TYPE_CHECKING

import numpy as np

from paradl.grids.entries.parameters import DEGREES, PARAMETERS
from paradl.grids.entries.precision import PRECISIONS
from paradl.grids.entries.strategies import Strategy
from paradl.grids.entries.systems import System
from paradl.grids.grid import Grid
from paradl.grids.models.layers import LayerTable
from paradl.kernels.arrays import Cells
from paradl.kernels.configuration.case import Case
from paradl.kernels.configuration.places import ENDLESS, PLACES, read_parameters
from paradl.kernels.names.arrays import Floats
from paradl.kernels.names.parallelisms import LAYOUT_SETTINGS, RECOMPUTE, TRANSFORMERS
from paradl.kernels.parallelism.layout import list_degrees
from paradl.sweep.samples.model_features import MODEL, Feature, ReadFeature

if TYPE_CHECKING:
    from paradl.sweep.samples.draw import Draw
    from paradl.sweep.samples.space import Problem

# Levels of the network beyond `intra_` and `inter_`; the kernels pad networks to four levels.
OUTER = (2, 3)


def _read_level(name: str, number: int, system: System) -> float:
    """Read a number of a level; a machine with fewer levels repeats its last one."""
    value: float = getattr(system.levels[min(number, len(system.levels) - 1)], name)
    return value


LEVELS = {
    "pes": "PEs in one unit",
    "oversubscription": "bandwidth of its nodes' links over the bandwidth that leaves it",
}
SYSTEM: dict[str, ReadFeature[System]] = {
    "pes_per_node": ReadFeature("1", "PEs per node", lambda system: system.pes_per_node),
    "links_per_node": ReadFeature("1", "adapters per node", lambda system: system.links_per_node),
    "machine_pes": ReadFeature("1", "PEs of the machine", lambda system: system.most_pes),
    "item_bytes": ReadFeature(
        "B", "bytes per item", lambda system: PRECISIONS[system.precision].item
    ),
    "gradient_bytes": ReadFeature(
        "B", "bytes per gradient", lambda system: PRECISIONS[system.precision].gradient
    ),
    **{
        f"level{number}_{name}": ReadFeature(
            "1",
            f"{words}, level {number} of the network (0 is a node)",
            partial(_read_level, name, number),
        )
        for name, words in LEVELS.items()
        for number in (1, *OUTER)
    },
}
OUTER_LINKS = {
    f"level{n}_{name}": Feature(unit, f"{words}, level {n} of the network; 0: no such level")
    for n in OUTER
    for name, unit, words in (("latency", "s", "latency"), ("bandwidth", "B/s", "bandwidth"))
}
# Drawn parameters that features follow, where names differ: links of outer levels.
FOLLOWED = {name: f"inter_{name.rpartition('_')[2]}" for name in OUTER_LINKS}
# Columns of layouts besides degrees; bits of what is recomputed are columns of their own.
SETTINGS = tuple(name for name in LAYOUT_SETTINGS if name != "recompute")
STRATEGY: dict[str, Feature] = {
    "degree_data": Feature("1", "replicas; 0: chosen by the oracle (group=best)"),
    **{
        f"degree_{group}": Feature(
            "1", f"degree of {group} parallelism; 1: none, 0: chosen by the oracle"
        )
        for group in DEGREES
    },
    **{f"degree_{name}": Feature("1", f"degree of {name} parallelism") for name in TRANSFORMERS},
    **{name: Feature("1", PARAMETERS[name].meaning) for name in SETTINGS},
    **{f"recompute_{name}": Feature("1", f"whether it recomputes: {name}") for name in RECOMPUTE},
    "segments": Feature("1", "micro-batches of a pipeline; 1: none, 0: chosen by the oracle"),
    "splits_all_layers": Feature("1", "whether groups split every layer, else only some"),
}
FACTS: dict[str, Feature] = {
    "pe": Feature("1", "processing elements (PEs)"),
    "dataset_samples": Feature("1", "samples per epoch"),
    "is_profiled": Feature(
        "1", "whether layer times were measured on this kind of PE, else from the roofline"
    ),
    "is_calibrated": Feature("1", "whether measured runs calibrated this machine"),
}
INPUTS: dict[str, Feature] = {
    name: Feature(PARAMETERS[name].unit, PARAMETERS[name].meaning)
    for name in PLACES
    if name in PARAMETERS
}
FEATURES: dict[str, Feature] = {**FACTS, **INPUTS, **STRATEGY, **OUTER_LINKS, **SYSTEM, **MODEL}


def describe_slices(grid: Grid, strategy: int, draw: "Draw") -> dict[str, Floats]:
    """Return the features [slice] that differ within a problem, under one strategy."""
    case = draw.tables.points[strategy].case
    return {
        "pe": draw.pes,
        **_describe_inputs(case, draw),
        **_describe_strategy(grid.strategies[strategy], case, draw),
    }


def describe_problem(grid: Grid, problem: "Problem") -> dict[str, float]:
    """Return the features that are equal in all slices of a problem."""
    model, dataset, system = problem
    workload = grid.workload(model, dataset, system)
    assert workload is not None
    return {
        "dataset_samples": float(grid.datasets[dataset].samples),
        "is_profiled": float(workload.seconds is not None),
        "is_calibrated": float(workload.calibrated is not None),
        **{name: float(feature.read(grid.systems[system])) for name, feature in SYSTEM.items()},
        **_describe_model(grid.fitting[model, dataset]),
    }


@lru_cache(maxsize=256)  # a table hashes by identity; all machines and strategies share it
def _describe_model(table: LayerTable) -> dict[str, float]:
    return {name: float(feature.read(table)) for name, feature in MODEL.items()}


def _describe_inputs(case: Case, draw: "Draw") -> dict[str, Floats]:
    """Return all continuous parameters, and the outer levels' links, which follow `inter_`."""
    values = {
        name: draw.values[name] if name in draw.values else _take(np.asarray(value), draw)
        for name, value in read_parameters(case).items()
        if name in INPUTS
    }
    for name, followed in FOLLOWED.items():
        level, field = int(name[len("level")]), name.rpartition("_")[2]
        stated = _take(np.asarray(getattr(case.network, field))[level], draw)
        is_missing = _take(np.asarray(case.network.bandwidth)[level], draw) >= ENDLESS
        values[name] = np.where(is_missing, 0.0, draw.values.get(followed, stated))
    return {name: np.where(column >= ENDLESS, 0.0, column) for name, column in values.items()}


def _describe_strategy(strategy: Strategy, case: Case, draw: "Draw") -> dict[str, Floats]:
    """Return the degrees of a strategy; 0 where the oracle chooses one: that is an answer."""
    run, ones, zeros = case.run, np.ones(len(draw)), np.zeros(len(draw))

    def take(choice: str, leaf: Cells) -> Floats:
        return zeros if choice in strategy.choices else _take(np.asarray(leaf), draw)

    sizes = {
        name: take(name if strategy.several else "group", degree)
        for name, degree in list_degrees(strategy.parts, run).items()
    }
    columns = dict.fromkeys((*SETTINGS, "recompute"), zeros) | dict.fromkeys(TRANSFORMERS, ones)
    columns |= {"chunks": ones * strategy.chunks, "zero": ones * case.options.zero}
    columns |= {"recompute": ones * RECOMPUTE.get(strategy.recompute or "", 0)}
    if run.shards is not None:  # all of them count as none, as of layouts
        shards = np.where(np.equal(run.shards, run.replicas), 0, run.shards)
        columns["shard"] = _take(shards, draw)
    if case.of_blocks:
        columns = {
            name: _take(np.asarray(of), draw) for name, of in case.block_work.columns.items()
        }
        sizes = {"pipeline": columns["pipeline"]}
    again = columns["recompute"].astype(int)
    # If the oracle chooses a degree, it chooses the number of replicas, too.
    is_open = bool({"group", *sizes} & set(strategy.choices))
    return {
        "degree_data": zeros if is_open else _take(np.asarray(run.replicas), draw),
        **{f"degree_{way}": sizes.get(way, ones) for way in DEGREES},
        **{f"degree_{name}": columns[name] for name in TRANSFORMERS},
        **{name: columns[name] for name in SETTINGS},
        **{f"recompute_{name}": (again & bit > 0) * ones for name, bit in RECOMPUTE.items()},
        "segments": take("segments", run.segments) if strategy.cut_by_axis else ones,
        "splits_all_layers": ones * float(strategy.layers == "all"),
    }


def _take(leaf: Floats, draw: "Draw") -> Floats:
    """Return values [slice] of a table's leaf, which has one value per row or one for all."""
    values = np.asarray(leaf, float).reshape(-1)
    return values[draw.rows] if values.size > 1 else np.full(len(draw), float(values[0]))
