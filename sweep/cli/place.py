"""The command `place`."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from sweep.cli.commands import INTERRUPTED, NOTHING_FEASIBLE, end
from sweep.cli.shared_options import Dataset, Form, System
from sweep.cli.values import check_names, parse_counts
from sweep.engine.progress import report_state

app = typer.Typer()


@app.command()
def place(
    what: Annotated[
        str,
        typer.Argument(
            metavar="MODEL|GRAPH",
            help="A model or graph: a catalogue name, or a file (GRAPH.yaml, .json, PipeDream's "
            ".txt).",
        ),
    ],
    devices: Annotated[int, typer.Option(help="Number of devices, in one node.")],
    system: System = "abci",
    batch: Annotated[
        int | None, typer.Option(help="Samples per step; a graph states its own.")
    ] = None,
    dataset: Dataset = None,
    optimizer: Annotated[
        Literal["sgd", "adam", "none"],
        typer.Option(help="Optimizer whose state takes memory."),
    ] = "sgd",
    micro_batches: Annotated[
        str | None,
        typer.Option(
            metavar="S|B,B[,B]",
            help="Number of micro-batches, or the samples of each; they overlap as in GPipe.",
        ),
    ] = None,
    time_limit: Annotated[
        float, typer.Option(help="Seconds after which the best placement so far is printed.")
    ] = 60.0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also draw it into a file, such as placement.png."),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")] = False,
    form: Form = "table",
) -> None:
    """Place a network's operators on devices for the shortest step, with a bound on its length."""
    check_names({"system": system, "dataset": dataset}, several=False)
    from sweep.questions.place.timed_graph import expect_graph

    expect_graph(what)  # importing the solver takes a second
    from sweep.questions.place.question import place as ask
    from sweep.show.place import show_placement

    sizes = None
    if micro_batches is not None:
        advice = "write 4, or the samples of each: 8,8,4,4"
        sizes = parse_counts(micro_batches, "--micro-batches", advice)
    with report_state("searching", silent=quiet) as report:

        def report_gap(best: float | None, bound: float) -> None:
            if best is not None:
                report(f"a step of {best:.4g} s, gap {max(0.0, 1 - bound / best):.1%}")

        answer = ask(
            what,
            devices,
            system=system,
            batch=batch,
            dataset=dataset,
            optimizer=optimizer,
            micro_batches=sizes,
            time_limit=time_limit,
            tell=report_gap,
        )
    if plot is not None and answer["feasible"]:
        from sweep.plots.figures import save_figure
        from sweep.plots.placement import draw_placement

        save_figure(draw_placement(answer), plot)
    show_placement(answer, form)
    if not answer["feasible"]:
        count = answer["smallest_devices"]
        enough = "unknown how many would" if count is None else f"{count} devices would"
        end(f"nothing feasible: the devices lack memory; {enough} be enough", NOTHING_FEASIBLE)
    if answer["interrupted"]:
        end("interrupted: this is the best so far", INTERRUPTED)
