"""Models that take the samples of none of a spec's data sets, said before anything runs."""

from collections.abc import Callable, Iterator, Mapping, Sequence


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
