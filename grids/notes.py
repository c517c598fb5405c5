"""Notes on a design space: what is odd or not used, said before anything runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from grids.convergence.entry import Convergence
from grids.divisible import list_whole
from grids.entries.datasets import Dataset
from grids.entries.strategies import Strategy
from grids.entries.systems import System
from grids.library import Model
from grids.models.layers import LayerTable
from grids.spec import Spec
from grids.unused import list_unused, list_unused_choices


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
        *(text for each in (*models, *laws.values()) for text in each.warnings),
        *list_whole(models, fitting, strategies),
        *list_unused(models, datasets, systems, laws, spec),
        *list_unused_choices(strategies, spec),
    ]


def list_misfits(
    labels: Mapping[str, Sequence[str]], find_misfit: Callable[[int, int], str | None]
) -> Iterator[str]:
    """Why each data set is incompatible with a model that none of them fits.

    find_misfit: why the samples of a position of a data set do not fit that of a model.
    """
    for model, name in enumerate(labels["model"]):
        reasons = {dataset: find_misfit(model, at) for at, dataset in enumerate(labels["dataset"])}
        if all(reason is not None for reason in reasons.values()):
            for dataset, reason in reasons.items():
                yield f"{name} x {dataset}: incompatible: {reason}"
