"""Commands that draw a cube. As in `sweep.cli.main`, heavy imports are inside them."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from sweep.cli.assignments import parse_selection
from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.shared_options import Sel, Store
from sweep.cli.spaces import describe_missing
from sweep.show.visible import tell

if TYPE_CHECKING:
    from sweep.plots.plots import Plots

Picture = Annotated[Path, typer.Option("--output", "-o", help="Such as scaling.png, .svg, .pdf.")]
PictureSize = Annotated[
    Literal["paper", "page", "slide"],
    typer.Option("--size", help="A paper's column (3.3 in), a page (6.6 in) or a slide (10 in)."),
]
ScalingQuantity = Annotated[
    Literal["time", "throughput", "efficiency"], typer.Option(help="What is drawn over p.")
]
Over = Annotated[
    str | None, typer.Option(metavar="AXIS", help="The upright axis, such as inter_bandwidth.")
]


def scaling(
    store: Store,
    output: Picture,
    sel: Sel = None,
    quantity: ScalingQuantity = "time",
    size: PictureSize = "page",
) -> None:
    """Time, throughput or efficiency over p: each strategy to where it ends, and why."""
    _draw(store, output, lambda plots: plots.scaling(quantity, parse_selection(sel), size))


def draw_map(
    store: Store,
    output: Picture,
    sel: Sel = None,
    over: Over = None,
    size: PictureSize = "page",
) -> None:
    """The fastest strategy over p and the batch, or another axis."""
    _draw(store, output, lambda plots: plots.map(over, parse_selection(sel), size))


def memory(store: Store, output: Picture, sel: Sel = None, size: PictureSize = "page") -> None:
    """Memory by part against what a PE has, of strategies or of PE counts."""
    _draw(store, output, lambda plots: plots.memory(parse_selection(sel), size))


def breakdown(store: Store, output: Picture, sel: Sel = None, size: PictureSize = "page") -> None:
    """What an iteration's time is made of over p, of one strategy."""
    _draw(store, output, lambda plots: plots.breakdown(parse_selection(sel), size))


KINDS: dict[str, Callable[..., None]] = {
    "scaling": scaling,
    "map": draw_map,
    "memory": memory,
    "breakdown": breakdown,
}


def _draw(store: str, output: Path, draw: "Callable[[Plots], Any]") -> None:
    """Draw a cube into a file, and say on stderr what the cube lacks."""
    from sweep.engine.verify import tell_damage
    from sweep.errors import NothingFeasibleError
    from sweep.plots.figures import expect_format, save_figure
    from sweep.plots.plots import Plots
    from sweep.questions.status import count_blocks

    expect_format(output)
    with tell_damage(store):
        done, blocks = count_blocks(store)
        try:
            figure = draw(Plots(store))
        except NothingFeasibleError as error:
            end(str(error), NOTHING_FEASIBLE)
    save_figure(figure, output)
    if done < blocks:
        tell(f"paradl: {describe_missing(done, blocks)}")
