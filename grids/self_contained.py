"""Self-contained: a store's spec spells out what it names, and refers to no file or catalogue."""

from collections.abc import Mapping

from grids.names import is_path
from grids.reading.errors import InputError, shorten
from grids.spec import Spec


def check_self_contained(spec: Spec) -> None:
    """InputError for a name or a file: who sends a store must not choose what is opened."""
    axes = spec.axes
    # Strategies are words of ours, and open nothing.
    references = {"model": axes.model, "dataset": axes.dataset or (), "system": axes.system}
    for key in ("calibration", "convergence"):
        if (entries := getattr(spec, key)) != ("none",):
            references[key] = entries
    for key, each in references.items():
        for reference in each:
            if isinstance(reference, str) or "file" in reference or _names_file(reference):
                raise InputError(
                    f"expected a whole definition, as sweeps write it, got {shorten(reference)}",
                    where=f"the store's spec: {key}",
                    advice="do not trust this store",
                )


def _names_file(reference: Mapping[str, object]) -> bool:
    """Whether a model's family is a file."""
    family = reference.get("family")
    return isinstance(family, Mapping) and is_path(str(family.get("name")))
