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


# As the suffix says it; matplotlib knows more, but none that is sharp at every size or lossless.
FORMATS = (".png", ".svg", ".pdf")


def expect_format(path: Path) -> None:
    """InputError: the suffix names no format of pictures."""
    if path.suffix.lower() not in FORMATS:  # without one, matplotlib would add one
        told = f"got {path.suffix!r}" if path.suffix else "got none"
        raise InputError(
            f"expected a suffix that names the format, {', '.join(FORMATS)}, {told}",
            where=str(path),
            advice=f"write it like {path.stem}.png",
        )


def save_figure(figure: "Figure", path: Path) -> None:
    """Write the figure; its suffix chooses the format. InputError: it cannot be written."""
    expect_format(path)
    try:
        figure.savefig(path, dpi=figure.dpi)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        raise InputError(
            f"no picture can be written: {reason}",
            where=str(path),
            advice=f"write it like {path.stem}.png",
        ) from None
