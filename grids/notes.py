"""Notes on a design space, before anything runs: oddities, unused keys, layers left unsplit."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from grids.convergence.entry import Convergence
from grids.entries.datasets import Dataset
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.library import Model
from grids.models.layers import LayerTable
from grids.spec import Spec
from grids.unused_keys import list_unused, list_unused_choices
from grids.whole_layers import list_unsplit


def list_notes(
    spec: Spec,
    models: Sequence[Model],
    datasets: Sequence[Dataset],
    systems: Sequence[System],
    strategies: Sequence[Strategy],
    laws: Mapping[Any, Convergence],
    fitting: Mapping[tuple[int, int], LayerTable],
) -> list[str]:
    """Notes on what a spec names, a line each; fitting: layers of pairs by position."""
    return [
        *(text for entry in (*models, *laws.values()) for text in entry.warnings),
        *list_unsplit(models, fitting, strategies),
        *list_unused(models, datasets, systems, laws, spec),
        *list_unused_choices(strategies, spec),
    ]


def list_misfits(
    labels: Mapping[str, Sequence[str]], find_misfit: Callable[[int, int], str | None]
) -> Iterator[str]:
    """Notes on models that take the samples of none of the data sets.

    find_misfit: the reason why a data set does not fit a model, by their positions.
    """
    for model, name in enumerate(labels["model"]):
        reasons = {dataset: find_misfit(model, at) for at, dataset in enumerate(labels["dataset"])}
        if all(reason is not None for reason in reasons.values()):
            for dataset, reason in reasons.items():
                yield f"{name} does not take the samples of {dataset}: {reason}"
