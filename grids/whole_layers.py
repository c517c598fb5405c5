"""Layers of sequences that groups cannot split: notes and refusals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from grids.entries.strategies import Strategy
from grids.library import Model
from grids.models.kinds import KINDS
from grids.models.layers import LayerTable
from grids.reading.errors import InputError, shorten

POSITIONS = "positions depend on each other"


def expect_divisible(strategies: Iterable[Strategy], table: LayerTable) -> None:
    """Raise InputError if a strategy should split all layers, but one cannot be split."""
    all_split = [strategy for strategy in strategies if strategy.layers == "all"]
    by_weights = (strategy for strategy in all_split if strategy.splits("weights"))
    layers = zip(table.names, table.kinds, strict=True)
    for strategy, (name, kind) in product(by_weights, layers):
        if KINDS[kind].whole:
            raise InputError(
                f"layer {shorten(name)} cannot be split: {KINDS[kind].whole}",
                where=f"strategy {strategy.label}",
                advice="leave out 'split=all', to split only the layers that can be split",
            )


def list_unsplit(
    models: Sequence[Model],
    tables: Mapping[tuple[int, int], LayerTable],
    strategies: Iterable[Strategy],
) -> list[str]:
    """Return notes on layers that strategies do not split.

    tables: layer tables by positions of model and data set.
    """
    labels: dict[tuple[str, str], list[str]] = {}
    for ((model, _), table), strategy in product(tables.items(), strategies):
        for text in _describe_unsplit(table, strategy):
            labels.setdefault((models[model].name, text), []).append(strategy.label)
    return [
        f"{model}: {', '.join(dict.fromkeys(names))} does not split {text}"
        for (model, text), names in labels.items()
    ]


def _describe_unsplit(table: LayerTable, strategy: Strategy) -> Iterator[str]:
    """Yield which sequence layers a strategy leaves whole, and why; nothing for other models."""
    whole = {kind: KINDS[kind].whole for kind in table.kinds if KINDS[kind].whole}
    if not whole:
        return
    if strategy.splits("rows"):
        yield f"layers of sequences: {POSITIONS}"
    if strategy.splits("weights"):
        yield f"{'; '.join(_group_reasons(whole))}: every PE runs them all"


def _group_reasons(whole: Mapping[str, str]) -> Iterator[str]:
    """Yield reasons with the kinds that share them."""
    for reason in dict.fromkeys(whole.values()):
        yield f"{', '.join(kind for kind, other in whole.items() if other == reason)} ({reason})"
