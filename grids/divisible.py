"""What no group can split of a network, said before anything runs: layers of sequences."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from grids.entries.strategies import Strategy
from grids.library import Model
from grids.models.kinds import KINDS
from grids.models.layers import LayerTable
from grids.reading.errors import InputError, shorten

BY_WEIGHTS = ("filter", "channel")
POSITIONS = "positions wait for each other, or read each other"


def expect_divisible(strategies: Iterable[Strategy], table: LayerTable) -> None:
    """InputError: a strategy is told to split all layers, and one of them cannot be."""
    all_split = [each for each in strategies if each.layers == "all"]
    by_weights = (each for each in all_split if each.group_strategy in BY_WEIGHTS)
    layers = zip(table.names, table.kinds, strict=True)
    for strategy, (name, kind) in product(by_weights, layers):
        if KINDS[kind].whole:
            raise InputError(
                f"layer {shorten(name)} cannot be split: {KINDS[kind].whole}",
                where=f"strategy {strategy.label}",
                advice="leave 'split=all' away: the strategy splits what it can",
            )


def list_whole(
    models: Sequence[Model],
    tables: Mapping[tuple[int, int], LayerTable],
    strategies: Iterable[Strategy],
) -> list[str]:
    """What strategies leave whole of models, which have a table with each of their data sets."""
    texts = (
        text
        for ((model, _), table), strategy in product(tables.items(), strategies)
        for text in _tell_whole(models[model].name, table, strategy)
    )
    return [*dict.fromkeys(texts)]


def _tell_whole(model: str, table: LayerTable, strategy: Strategy) -> Iterator[str]:
    """What the strategy leaves whole of a model with sequences, and why; elsewhere nothing."""
    whole = {kind: KINDS[kind].whole for kind in table.kinds if KINDS[kind].whole}
    if not whole:
        return
    if strategy.group_strategy == "spatial":
        yield f"{model}: {strategy.label} runs sequence layers unsplit: {POSITIONS}"
    elif strategy.group_strategy in BY_WEIGHTS:
        yield f"{model}: {strategy.label} leaves whole " + "; ".join(_group_reasons(whole))


def _group_reasons(whole: Mapping[str, str]) -> Iterator[str]:
    """Kinds whose reason is the same together, with the reason."""
    for reason in dict.fromkeys(whole.values()):
        yield f"{', '.join(kind for kind, each in whole.items() if each == reason)} ({reason})"
