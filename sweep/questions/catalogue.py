"""List the entries of the catalogue with their main figures."""

from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import cast

from paradl.grids.entries.names import Kind, list_names
from paradl.grids.entries.parameters import PARAMETERS
from paradl.grids.entries.strategies import parse_strategy
from paradl.grids.entries.strategy_words import LIMIT, MEANING
from paradl.grids.entries.systems import System
from paradl.grids.library import EXAMPLES, find
from paradl.grids.models.transformers import cut_text
from paradl.grids.reading.errors import InputError, ShapeError
from paradl.kernels.names.parallelisms import NAMED, WRITTEN, explain_conflict
from paradl.sweep.answers.mapping import tabulate
from paradl.sweep.answers.types.catalogue import (
    DatasetRow,
    LevelRow,
    ModelRow,
    ParameterRow,
    StrategyRow,
    SystemRow,
)

HERE = Path()


def _list_references(kind: Kind, reference: str | None) -> tuple[str, ...]:
    return list_names(kind) if reference is None else (reference,)


def list_models(reference: str | None = None) -> list[ModelRow]:
    """List one network, or all of the catalogue, with parameters and multiply-accumulates.

    InputError: a user's network does not fit its customary data set.

    >>> import paradl
    >>> model = paradl.models("llama2_7b").iloc[0]
    >>> round(model["parameters"] / 1e9, 2), model["layers"]
    (6.74, 548)
    """
    return [_describe_model(name) for name in _list_references("model", reference)]


def _describe_model(reference: str) -> ModelRow:
    """Figures of a network for its customary data set."""
    model = find("model", reference, HERE)
    # Sizes of layers follow from the samples.
    # A network of the user's own may state no data set: the row names the usual one.
    customary = model.customary or EXAMPLES[model.rank]
    dataset = cut_text(model, find("dataset", customary, HERE))
    try:
        table = model.table(dataset)
    except ShapeError as error:
        raise InputError(str(error), where=reference) from None
    return {
        "model": model.name,
        "title": model.title,
        "dataset": dataset.name,
        "parameters": table.parameters,
        "macs": table.macs,
        "layers": len(table),
        "source": "; ".join(model.source),
    }


def list_datasets(reference: str | None = None) -> list[DatasetRow]:
    """List one data set, or all of the catalogue: samples per epoch and shape of a sample.

    >>> import paradl
    >>> paradl.datasets("imagenet").loc[0, ["samples", "shape"]].to_list()
    [1281167, '3x224x224']
    """
    datasets = [find("dataset", name, HERE) for name in _list_references("dataset", reference)]
    return [
        {
            "dataset": dataset.name,
            "samples": dataset.samples,
            "shape": "x".join(map(str, dataset.shape)),
            "targets": dataset.targets,
            "source": "; ".join(dataset.source),
        }
        for dataset in datasets
    ]


def find_system(reference: str) -> System:
    """Find a machine by its name or file, with or without settings."""
    return find("system", reference, HERE)


def list_systems(reference: str | None = None) -> list[SystemRow]:
    """List one machine, or all of the catalogue: its PE and the levels of its network.

    >>> import paradl
    >>> paradl.systems("dgx-h100").loc[0, ["pe", "pes_per_node"]].to_list()
    ['H100 SXM5 80 GB', 8]
    """
    return [
        {
            "system": system.name,
            "pe": system.pe.name,
            "peak_flops": system.pe.peak_flops,
            "tensor_peaks": system.pe.list_tensor_peaks(),
            "memory": system.pe.memory_capacity,
            "memory_bandwidth": system.pe.memory_bandwidth,
            "watts": system.pe.watts,
            "pes_per_node": system.pes_per_node,
            "links_per_node": system.links_per_node,
            "levels": [cast(LevelRow, level.model_dump()) for level in system.levels],
            "source": "; ".join(system.source),
        }
        for system in map(find_system, _list_references("system", reference))
    ]


def list_strategies(name: str | None = None) -> list[StrategyRow]:
    """List strategies and pairs that divide a replica: what they divide, and their limit.

    limit: for a pair that cannot be combined, the reason. name: list only that strategy, or its
    parts.

    >>> import paradl
    >>> rows = paradl.strategies().set_index("strategy")
    >>> rows.loc["filter+channel", "limit"]
    'a layer divided both ways is not modelled'
    """
    single: list[StrategyRow] = [
        {"strategy": base, "meaning": meaning, "limit": LIMIT[base]}
        for base, meaning in MEANING.items()
    ]
    named: list[StrategyRow] = [
        {"strategy": label, "meaning": _describe_named(text), "limit": "as its parts"}
        for label, text in NAMED.items()
    ]
    rows = [*single, *named, *(_describe_pair(*pair) for pair in combinations(WRITTEN, 2))]
    if name is None:
        return rows
    strategy = parse_strategy(name)
    if name in NAMED:
        return [row for row in named if row["strategy"] == name]
    whole = [row for row in rows if row["strategy"] == strategy.base]
    # Larger products have no row: their parts say what they divide.
    return whole or [row for row in rows if row["strategy"] in strategy.parts]


def _describe_named(text: str) -> str:
    """The parts of a common strategy, and the settings that are not `best`."""
    base, _, settings = text.partition(":")
    stated = [setting for setting in settings.split(",") if not setting.endswith("=best")]
    return f"transformers: {base}, {', '.join(stated)}"


def _describe_pair(first: str, second: str) -> StrategyRow:
    """Row of two parallelisms inside a replica."""
    both, conflict = f"{first}+{second}", explain_conflict((first, second))
    example = f"such as data+{both}:{first}=2,{second}=2"
    return {
        "strategy": both,
        "meaning": "cannot be combined" if conflict else example,
        "limit": conflict or "the limits of both; needs the machine oracle",
    }


def list_parameters(name: str | None = None) -> list[ParameterRow]:
    """List oracle parameters: unit, meaning, oracle, owner, value and spread before measurements.

    owner: what states it. value: one number, or one per precision; None if the system or the
    strategy states it. name: list only that parameter.

    >>> import paradl
    >>> paradl.parameters("inter_bandwidth").loc[0, ["unit", "meaning"]].to_list()
    ['B/s', 'bandwidth of every level beyond a node']
    """
    if name is not None and name not in PARAMETERS:
        raise InputError.unknown("parameter", name, PARAMETERS)
    return [
        {
            "parameter": row.name,
            "unit": row.unit,
            "oracle": row.oracle or "both",
            "owner": row.owner,
            "value": row.default if row.prior is None else _join_equal(row.prior.median),
            "spread": None if row.prior is None else _join_equal(row.prior.spread),
            "meaning": row.meaning,
            "source": "" if row.prior is None else row.prior.source,
        }
        for row in PARAMETERS.values()
        if name in (None, row.name)
    ]


def _join_equal(values: Mapping[str, float]) -> float | dict[str, float]:
    """Return one value if all precisions have the same."""
    first, *others = values.values()
    return dict(values) if any(value != first for value in others) else first


models = tabulate("models", list_models)
datasets = tabulate("datasets", list_datasets)
systems = tabulate("systems", list_systems)
strategies = tabulate("strategies", list_strategies)
parameters = tabulate("parameters", list_parameters)
