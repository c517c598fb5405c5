"""Figures: made and saved the same way for every picture; they need matplotlib."""

from pathlib import Path
from typing import TYPE_CHECKING

from grids.reading.errors import InputError
from sweep.errors import RunError

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def make_figure(width: float, height: float, dots: int = 150) -> "Figure":
    """An empty figure of that size [inch], and `dots` an inch. RunError: no matplotlib."""
    try:
        # Figure, not pyplot: it needs no display, and nothing of it outlives the call.
        from matplotlib.figure import Figure
    except ImportError:
        raise RunError(
            "pictures need matplotlib; install paradl with its extra: pip install '.[plot]'"
        ) from None
    return Figure(figsize=(width, height), dpi=dots)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write the figure; its suffix chooses the format. InputError: it cannot be written."""
    if not path.suffix:  # matplotlib would add one, and write another file
        raise InputError(
            "expected a suffix that names the format", where=str(path), advice="such as .png"
        )
    try:
        figure.savefig(path, dpi=figure.dpi)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"no picture can be written: {reason}",
            where=str(path),
            advice=f"write it like {path.stem}.png",
        ) from None
