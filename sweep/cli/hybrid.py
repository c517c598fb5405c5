"""Commands of Pal et al. (IEEE Micro 2019): hybrid or data parallelism, placement of operators."""

from dataclasses import dataclass
from typing import Annotated, Literal

from typer import Argument, Context, Option, Typer

from paradl.grids.reading.errors import format_count
from paradl.grids.reading.units import parse_count, parse_quantity
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import INTERRUPTED, NOTHING_FEASIBLE, end, take_options
from paradl.sweep.cli.values import take_count, take_share
from paradl.sweep.engine.progress import report_state
from paradl.sweep.text.visible import tell

app = Typer()


@dataclass(frozen=True)
class HybridOptions:
    """The arguments of `sweep.questions.hybrid.question.hybrid`, as texts."""

    model: options.Model
    batch: Annotated[int, take_count("Samples per replica.")]
    pe: Annotated[str, Option(metavar="N[,N]", help="Largest PE count, or several counts.")]
    strategies: Annotated[
        list[str] | None,
        Option("--strategy", help="Such as data+spatial:group=2; repeatable; default: all."),
    ] = None
    speedups: Annotated[
        list[str] | None,
        Option("--speedup", metavar="M=X", help="Speed-up in groups of M; repeatable."),
    ] = None
    scaling_efficiency: Annotated[
        float | None, take_share("T_1 / T_N across replicas, overriding the oracle.")
    ] = None
    convergence: options.Convergence = "auto"
    target: options.Target = None
    dataset: options.Dataset = None
    system: options.System = None
    parameters: options.Set = None
    oracle: options.Oracle = None
    calibration: options.Calibration = None
    quiet: options.Quiet = False

    def check_names(self) -> None:
        """Refuse unknown names, of those that are looked up."""
        for label in self.strategies or ():
            options.check_names({"strategy": label}, several=False)
        # With both given, the oracle is not needed, and the model may be any that has epochs.
        if not self.speedups or self.scaling_efficiency is None:
            options.check_names(vars(self), several=False)


@app.command(cls=take_options(HybridOptions))
def hybrid(
    context: Context,
    plot: options.Plot = None,
    size: options.Size = "page",
    form: options.Form = "table",
) -> None:
    """When hybrids reach a target before data parallelism."""
    given: HybridOptions = context.obj
    given.check_names()

    # scipy and JAX take seconds to import; a wrong name is reported before.
    from paradl.sweep.questions.hybrid.question import hybrid as ask
    from paradl.sweep.text.hybrid import show_hybrid

    # Those that are not given take the question's own defaults.
    names = ("scaling_efficiency", "convergence", "target", "dataset", "system")
    answer = ask(
        given.model,
        given.batch,
        options.parse_counts(given.pe, "--pe"),
        strategies=given.strategies or (),
        speedups=_parse_speedups(given.speedups),
        parameters=options.parse_settings(given.parameters, "--set"),
        settings=options.list_given(given, "oracle", "calibration"),
        **options.list_given(given, *names),
    )
    for warning in answer["warnings"]:
        tell(f"paradl: warning: {warning}")
    # None if the hybrids, or data parallelism, can train on none of the PE counts.
    trained = answer["gain"]["gain"] is not None
    if plot is not None and trained:
        from paradl.sweep.plots.figures import save_figure
        from paradl.sweep.plots.hybrid import draw_hybrid

        save_figure(draw_hybrid(answer, size), plot)
    show_hybrid(answer.to_dict(), form)
    if not trained:
        end("no hybrid, or no data parallelism, can train on these PE counts", NOTHING_FEASIBLE)


def _parse_speedups(items: list[str] | None) -> dict[int, float]:
    """Return SU^M, the speed-up of an iteration in a group of M PEs, by M."""
    where = "--speedup"
    pairs = options.parse_settings(items, where, "write it like 2=1.32")
    return {
        parse_count(group, where): parse_quantity(value, "1", where, "1.32")
        for group, value in pairs.items()
    }


@dataclass(frozen=True)
class PlaceOptions:
    """The arguments of `sweep.questions.place.question.place`."""

    what: Annotated[
        str, Argument(metavar="MODEL|GRAPH", help="A name or file (.yaml, .json, PipeDream's).")
    ]
    devices: Annotated[int, take_count("Number of devices, in one node.")]
    system: options.System = None
    batch: Annotated[int | None, take_count("Samples per step; a graph states its own.")] = None
    dataset: options.Dataset = None
    optimizer: Annotated[
        Literal["sgd", "adam", "none"], Option(help="Optimizer whose state takes memory.")
    ] = "sgd"
    micro_batches: Annotated[int, take_count("Micro-batches, which overlap as in GPipe.")] = 1
    effort: Annotated[
        float, Option(help="How much to search: about a second of an idle core per unit.")
    ] = 60.0


@app.command(cls=take_options(PlaceOptions, is_patient=False))
def place(
    context: Context,
    plot: options.Plot = None,
    size: options.Size = "page",
    quiet: options.Quiet = False,
    form: options.Form = "table",
) -> None:
    """Place operators on devices for the shortest step, with a bound."""
    given = vars(context.obj)
    options.check_names(given, several=False)
    from paradl.sweep.questions.place.timed_graph import expect_graph

    expect_graph(given["what"])  # importing the solver takes a second
    from paradl.sweep.questions.place.question import place as ask
    from paradl.sweep.text.hybrid import show_placement

    with report_state("searching", silent=quiet) as report:

        def report_gap(best: float | None, bound: float) -> None:
            if best is not None:  # None until a placement fits
                report(f"a step of {best:.4g} s, gap {max(0.0, 1 - bound / best):.1%}")

        answer = ask(**given, tell=report_gap)
    if plot is not None and answer["feasible"]:
        from paradl.sweep.plots.figures import save_figure
        from paradl.sweep.plots.hybrid import draw_placement

        save_figure(draw_placement(answer, size), plot)
    show_placement(answer.to_dict(), form)
    if not answer["feasible"]:
        count = answer["smallest_devices"]
        enough = (
            "unknown how many would" if count is None else f"{format_count(count, 'device')} would"
        )
        end(f"nothing feasible: the devices lack memory; {enough} be enough", NOTHING_FEASIBLE)
    if answer["interrupted"]:
        end("interrupted: this is the best so far", INTERRUPTED)
