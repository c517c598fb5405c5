"""The catalogue, with the main figures of its entries."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any

from grids.entries.datasets import Dataset
from grids.entries.parameters import PARAMETERS
from grids.entries.precision import PrecisionName
from grids.entries.strategies import LIMIT, MEANING, parse_strategy
from grids.entries.systems import System
from grids.library import Model, find
from grids.models.architecture import Architecture
from grids.names import list_names
from grids.reading.errors import InputError, ShapeError
from kernels.names.parallelisms import WRITTEN, explain_conflict

Row = dict[str, Any]
HERE = Path()


def list_models(reference: str | None = None) -> list[Row]:
    """Networks, one or all of the catalogue's, with parameters and multiply-accumulates.

    InputError: a network of the user's says no customary data set, or does not fit it.
    """
    references = list_names("model") if reference is None else (reference,)
    return [_describe_model(name) for name in references]


def _describe_model(reference: str) -> Row:
    """The figures of a network at its customary sample, or at that of the authors' file."""
    model = find("model", reference, HERE)
    dataset = model.own_dataset or _find_customary(model, reference)
    try:
        table = model.table(dataset)
    except ShapeError as error:
        raise InputError(str(error), where=reference) from None
    return {
        "model": model.name,
        "title": getattr(model, "title", ""),
        "dataset": dataset.name,
        "parameters": table.parameters,
        "macs": table.macs,
        "layers": len(table),
        "source": "; ".join(model.source),
    }


def _find_customary(model: Model, reference: str) -> Dataset:
    """The data set for which a network's size is usually quoted."""
    customary = model.customary if isinstance(model, Architecture) else None
    if customary is None:
        raise InputError(
            "no data set to count it for",
            where=reference,
            advice="write one into the file, such as 'customary: imagenet'",
        )
    return find("dataset", customary, HERE)


def list_datasets(reference: str | None = None) -> list[Row]:
    """Data sets, one or all of the catalogue's: samples per epoch, and one sample's shape."""
    references = list_names("dataset") if reference is None else (reference,)
    datasets = [find("dataset", name, HERE) for name in references]
    return [
        {
            "dataset": each.name,
            "samples": each.samples,
            "shape": "x".join(map(str, each.shape)),
            "targets": each.targets,
            "source": "; ".join(each.source),
        }
        for each in datasets
    ]


def find_system(reference: str) -> System:
    """A machine by its name or file, with settings or without."""
    return find("system", reference, HERE)


def list_systems(reference: str | None = None) -> list[Row]:
    """Machines, one or all of the catalogue's: a PE, and the levels of the network."""
    references = list_names("system") if reference is None else (reference,)
    systems = [find_system(each) for each in references]
    return [
        {
            "system": each.name,
            "pe": each.pe.name,
            "peak_flops": each.pe.peak_flops,
            "tensor_peaks": each.pe.list_tensor_peaks(),
            "memory": each.pe.memory_capacity,
            "memory_bandwidth": each.pe.memory_bandwidth,
            "pes_per_node": each.pes_per_node,
            "links_per_node": each.links_per_node,
            "levels": [level.model_dump() for level in each.levels],
            "source": "; ".join(each.source),
        }
        for each in systems
    ]


def list_strategies(name: str | None = None) -> list[Row]:
    """The strategies, what each divides, and its limit; pairs that divide a replica together.

    limit: of a pair that cannot be combined the reason. name: that strategy alone, or its parts.
    """
    single = [
        {"strategy": each, "meaning": meaning, "limit": LIMIT[each]}
        for each, meaning in MEANING.items()
    ]
    rows = [*single, *(_describe_pair(*pair) for pair in combinations(WRITTEN, 2))]
    if name is None:
        return rows
    strategy = parse_strategy(name)
    whole = [row for row in rows if row["strategy"] == strategy.base]
    return whole or [row for row in rows if row["strategy"] in strategy.parts]


def _describe_pair(first: str, second: str) -> Row:
    """Two parallelisms inside a replica, with data parallelism across or without."""
    both, conflict = f"{first}+{second}", explain_conflict((first, second))
    example = f"such as data+{both}:{first}=2,{second}=2"
    return {
        "strategy": both,
        "meaning": "cannot be combined" if conflict else example,
        "limit": conflict or "each as by itself; with the machine oracle",
    }


def list_parameters(name: str | None = None) -> list[Row]:
    """Oracle parameters: unit, meaning, oracle, and their value and spread before any measurement.

    value: one number, or one for each precision; None where the system or the strategy says.
    name: that parameter alone.
    """
    if name is not None and name not in PARAMETERS:
        raise InputError.unknown("parameter", name, PARAMETERS)
    return [
        {
            "parameter": each.name,
            "unit": each.unit,
            "oracle": each.oracle or "both",
            "value": each.default if each.prior is None else _join_equal(each.prior.median),
            "spread": None if each.prior is None else _join_equal(each.prior.spread),
            "meaning": each.meaning,
            "source": "" if each.prior is None else each.prior.source,
        }
        for each in PARAMETERS.values()
        if name in (None, each.name)
    ]


def _join_equal(values: Mapping[PrecisionName, float]) -> float | dict[str, float]:
    """One value where all precisions have the same."""
    first, *others = values.values()
    return dict(values.items()) if any(each != first for each in others) else first
