"""The command about placements. As in `sweep.cli.main`, heavy imports are inside it."""

import sys
import time
from pathlib import Path
from typing import Annotated, Literal

import typer

from grids.reading.errors import InputError, shorten
from sweep.cli.commands import INTERRUPTED, NOTHING_FEASIBLE, end
from sweep.cli.names import check_names
from sweep.cli.option_messages import speak_of_options
from sweep.cli.shared_options import Dataset, Form, System
from sweep.engine.progress import PERIOD
from sweep.show.visible import tell

What = Annotated[
    str,
    typer.Argument(
        metavar="MODEL|GRAPH",
        help="A catalogue model or graph, or a file of one: GRAPH.yaml, .json, PipeDream's .txt.",
    ),
]
Devices = Annotated[int, typer.Option(help="Devices of one node.")]
StepBatch = Annotated[
    int | None, typer.Option("--batch", help="Samples of a step; a graph has its own.")
]
MicroBatches = Annotated[
    str | None,
    typer.Option(
        metavar="S|B,B[,B]",
        help="The number of micro-batches, or the samples of each; they overlap as in GPipe.",
    ),
]
Optimizer = Annotated[
    Literal["sgd", "adam", "none"], typer.Option(help="The optimizer whose states take memory.")
]
TimeLimit = Annotated[
    float, typer.Option(help="Seconds to search; then the best so far is printed.")
]
Plot = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Draw it to a file, such as placement.png.")
]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress.")]


def place(
    what: What,
    devices: Devices,
    system: System = "abci",
    batch: StepBatch = None,
    dataset: Dataset = None,
    optimizer: Optimizer = "sgd",
    micro_batches: MicroBatches = None,
    time_limit: TimeLimit = 60.0,
    plot: Plot = None,
    quiet: Quiet = False,
    form: Form = "table",
) -> None:
    """Place a network's operators on devices so that a step is shortest, with a proof."""
    check_names({"system": system, "dataset": dataset}, several=False)
    from sweep.questions.timed_graph import expect_graph

    expect_graph(what)  # before the solver is imported
    from sweep.questions.place import place as ask
    from sweep.show.place import show_placement

    with speak_of_options():
        answer = ask(
            what,
            devices,
            system=system,
            batch=batch,
            dataset=dataset,
            optimizer=optimizer,
            micro_batches=None if micro_batches is None else parse_micro_batches(micro_batches),
            time_limit=time_limit,
            tell=_ignore if quiet else _Progress(time_limit),
        )
    if plot is not None and answer["feasible"]:
        from sweep.plots.figures import save_figure
        from sweep.plots.placement import draw_placement

        save_figure(draw_placement(answer), plot)
    show_placement(answer, form)
    if not answer["feasible"]:
        end(_explain_memory(answer["smallest_devices"]), NOTHING_FEASIBLE)
    if answer["interrupted"]:
        end("interrupted: this is the best so far", INTERRUPTED)


def parse_micro_batches(text: str) -> int | list[int]:
    """How many there are, or the samples of each of several."""
    try:
        sizes = [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(
            f"expected whole numbers, got {shorten(text)}",
            where="--micro-batches",
            advice="write 4, or the samples of each: 8,8,4,4",
        ) from None
    return sizes if len(sizes) > 1 else sizes[0]


def _explain_memory(smallest: int | None) -> str:
    """The number of devices that would do where memory does not."""
    more = "how many would do is not known" if smallest is None else f"{smallest} devices would do"
    return f"nothing feasible: no placement fits the devices' memory; {more}"


def _ignore(best: float | None, bound: float) -> None:
    """No progress."""


class _Progress:
    """Lines on stderr: seconds so far, the best step and how near it is proven to be."""

    def __init__(self, limit: float) -> None:
        self._begin, self._limit, self._last = time.monotonic(), limit, -PERIOD

    def __call__(self, best: float | None, bound: float) -> None:
        seconds = time.monotonic() - self._begin
        # A line a second is enough for anybody; of a file, one every ten.
        if seconds - self._last < (1 if sys.stderr.isatty() else PERIOD) or best is None:
            return
        self._last = seconds
        gap = max(0.0, 1 - bound / best)
        line = f"{seconds:.0f} of {self._limit:g} s: a step of {best:.4g} s, gap {gap:.1%}"
        tell(f"paradl: {line}")
        sys.stderr.flush()
