"""Commands that list the catalogue. As in `sweep.cli.main`, heavy imports are inside them."""

from typing import Any

from sweep.cli.options import Form


def models(form: Form = "table") -> None:
    """Network architectures of the catalogue."""
    _list("models", form)


def datasets(form: Form = "table") -> None:
    """Data sets of the catalogue."""
    _list("datasets", form)


def systems(form: Form = "table") -> None:
    """Machines of the catalogue."""
    _list("systems", form)


def strategies(form: Form = "table") -> None:
    """The ten strategies."""
    _list("strategies", form)


LISTINGS = (models, datasets, systems, strategies)


def _list(kind: str, form: Any) -> None:
    from sweep.questions import catalogue
    from sweep.show.explanations import show_entries

    show_entries(getattr(catalogue, kind)(), form)
