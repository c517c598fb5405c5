"""The command about placements. As in `sweep.cli.main`, heavy imports are inside it."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from sweep.cli.commands import INTERRUPTED, NOTHING_FEASIBLE, end
from sweep.cli.shared_options import Dataset, Form, System
from sweep.cli.values import check_names, parse_counts
from sweep.engine.progress import PERIOD
from sweep.show.visible import tell

app = typer.Typer()


@app.command()
def place(
    what: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|GRAPH",
            help="A catalogue model or graph, or a file of one: GRAPH.yaml, .json, PipeDream's "
            ".txt.",
        ),
    ],
    devices: Annotated[int, typer.Option(help="Devices of one node.")],
    system: System = "abci",
    batch: Annotated[
        int | None, typer.Option(help="Samples of a step; a graph has its own.")
    ] = None,
    dataset: Dataset = None,
    optimizer: Annotated[
        Literal["sgd", "adam", "none"],
        typer.Option(help="The optimizer whose states take memory."),
    ] = "sgd",
    micro_batches: Annotated[
        str | None,
        typer.Option(
            metavar="S|B,B[,B]",
            help="The number of micro-batches, or the samples of each; they overlap as in GPipe.",
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds to search; then the best so far is printed.")
    ] = 60.0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw it to a file, such as placement.png."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    form: Form = "table",
) -> None:
    """Place a network's operators on devices so that a step is shortest, with a proof."""
    check_names({"system": system, "dataset": dataset}, several=False)
    from sweep.questions.place.timed_graph import expect_graph

    expect_graph(what)  # before the solver is imported
    from sweep.questions.place.question import place as ask
    from sweep.show.place import show_placement

    sizes = None
    if micro_batches is not None:
        advice = "write 4, or the samples of each: 8,8,4,4"
        sizes = parse_counts(micro_batches, "--micro-batches", advice)
    answer = ask(
        what,
        devices,
        system=system,
        batch=batch,
        dataset=dataset,
        optimizer=optimizer,
        micro_batches=sizes,
        time_limit=time_limit,
        tell=_ignore if quiet else _Progress(time_limit),
    )
    if plot is not None and answer["feasible"]:
        from sweep.plots.figures import save_figure
        from sweep.plots.placement import draw_placement

        save_figure(draw_placement(answer), plot)
    show_placement(answer, form)
    if not answer["feasible"]:
        count = answer["smallest_devices"]
        more = "how many would do is not known" if count is None else f"{count} devices would do"
        end(f"nothing feasible: no placement fits the devices' memory; {more}", NOTHING_FEASIBLE)
    if answer["interrupted"]:
        end("interrupted: this is the best so far", INTERRUPTED)


def _ignore(best: float | None, bound: float) -> None:
    """No progress."""


class _Progress:
    """Lines on stderr: seconds so far, the best step and how near it is proven to be."""

    def __init__(self, limit: float) -> None:
        self._begin, self._limit, self._last = time.monotonic(), limit, -PERIOD

    def __call__(self, best: float | None, bound: float) -> None:
        seconds = time.monotonic() - self._begin
        # The solver reports often: a terminal gets a line every second, a file one every ten.
        if seconds - self._last < (1 if sys.stderr.isatty() else PERIOD) or best is None:
            return
        self._last = seconds
        gap = max(0.0, 1 - bound / best)
        tell(f"paradl: {seconds:.0f} of {self._limit:g} s: a step of {best:.4g} s, gap {gap:.1%}")
        sys.stderr.flush()
