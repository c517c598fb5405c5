"""Layers of sequences that groups cannot split: notes before anything runs, and refusals."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from grids.entries.strategies import Strategy
from grids.library import Model
from grids.models.kinds import KINDS
from grids.models.layers import LayerTable
from grids.reading.errors import InputError, shorten

POSITIONS = "positions wait for each other, or read each other"


def expect_divisible(strategies: Iterable[Strategy], table: LayerTable) -> None:
    """InputError where a strategy is to split all layers, and one of them cannot be split."""
    all_split = [strategy for strategy in strategies if strategy.layers == "all"]
    by_weights = (strategy for strategy in all_split if strategy.splits("weights"))
    layers = zip(table.names, table.kinds, strict=True)
    for strategy, (name, kind) in product(by_weights, layers):
        if KINDS[kind].whole:
            raise InputError(
                f"layer {shorten(name)} cannot be split: {KINDS[kind].whole}",
                where=f"strategy {strategy.label}",
                advice="leave 'split=all' out: the strategy then splits the layers that it can",
            )


def list_unsplit(
    models: Sequence[Model],
    tables: Mapping[tuple[int, int], LayerTable],
    strategies: Iterable[Strategy],
) -> list[str]:
    """Notes on the layers that strategies do not split.

    tables: the layers by the positions of a model and a data set.
    """
    texts = (
        text
        for ((model, _), table), strategy in product(tables.items(), strategies)
        for text in _describe_unsplit(models[model].name, table, strategy)
    )
    return [*dict.fromkeys(texts)]


def _describe_unsplit(model: str, table: LayerTable, strategy: Strategy) -> Iterator[str]:
    """The layers of sequences that the strategy does not split, and why; for other models none."""
    whole = {kind: KINDS[kind].whole for kind in table.kinds if KINDS[kind].whole}
    if not whole:
        return
    if strategy.splits("rows"):
        yield f"{model}: {strategy.label} does not split layers of sequences: {POSITIONS}"
    if strategy.splits("weights"):
        reasons = "; ".join(_group_reasons(whole))
        yield f"{model}: {strategy.label} does not split {reasons}: every PE runs them whole"


def _group_reasons(whole: Mapping[str, str]) -> Iterator[str]:
    """Kinds with their reason, those of the same reason together."""
    for reason in dict.fromkeys(whole.values()):
        yield f"{', '.join(kind for kind, other in whole.items() if other == reason)} ({reason})"
