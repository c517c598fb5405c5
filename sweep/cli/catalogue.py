"""Commands that list the catalogue. As in `sweep.cli.main`, heavy imports are inside them."""

from typing import Any

from sweep.cli.shared_options import Form


def models(form: Form = "table") -> None:
    """Network architectures of the catalogue."""
    _show_list("models", form)


def datasets(form: Form = "table") -> None:
    """Data sets of the catalogue."""
    _show_list("datasets", form)


def systems(form: Form = "table") -> None:
    """Machines of the catalogue."""
    _show_list("systems", form)


def strategies(form: Form = "table") -> None:
    """The ten strategies."""
    _show_list("strategies", form)


LISTINGS = (models, datasets, systems, strategies)


def _show_list(kind: str, form: Any) -> None:
    """Print the entries of a kind, as `list_models` ... give them."""
    from sweep.questions import catalogue
    from sweep.show.entries import show_entries

    show_entries(getattr(catalogue, f"list_{kind}")(), form)
