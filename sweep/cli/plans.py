"""Commands for planning: bottlenecks, which upgrades pay, and how many PEs to buy."""

from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Context, Option, Typer

from paradl.grids.reading.errors import InputError
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import NOTHING_FEASIBLE, end
from paradl.sweep.cli.report import PageOption, expect_page, write_page_of
from paradl.sweep.cli.spaces import SpaceCommand, Subject
from paradl.sweep.cli.values import parse_price, take_number, take_share

app = Typer()


@app.command(cls=SpaceCommand)
def bottleneck(context: Context, every: options.All = False, form: options.Form = "table") -> None:
    """What takes most of the time and memory at each PE count."""
    subject: Subject = context.obj.read()
    from paradl.sweep.questions.bottleneck import list_bottlenecks
    from paradl.sweep.show.planning import show_bottlenecks

    rows = subject.ask(list_bottlenecks, form)
    show_bottlenecks(rows, form, every)
    if not rows:
        end("no such configuration exists: more PEs than the strategy can use", NOTHING_FEASIBLE)


@app.command(cls=SpaceCommand)
def sensitivity(context: Context, every: options.All = False, form: options.Form = "table") -> None:
    """Which upgrades pay: elasticities in each parameter."""
    subject: Subject = context.obj.read()
    from paradl.sweep.questions.sensitivity import list_sensitivities
    from paradl.sweep.show.planning import show_sensitivities

    rows = subject.ask(list_sensitivities, form)
    show_sensitivities(rows, form, every)
    if not rows:
        end("nothing in this slice is feasible; why: paradl best", NOTHING_FEASIBLE)


@app.command(cls=SpaceCommand)
def provision(
    context: Context,
    deadline: Annotated[
        float | None,
        take_number("time", "Find the fewest PEs that train within it, such as 60d, 1h30m."),
    ] = None,
    epochs: Annotated[
        float | None, Option(help="Epochs to train; default: those to the target of --convergence.")
    ] = None,
    holds: Annotated[
        float | None, take_share("Required probability of meeting the deadline, such as 0.9.")
    ] = None,
    need: Annotated[
        str | None,
        Option(
            metavar="PARAMETER",
            help="Parameter to solve for: batch, memory_capacity, inter_bandwidth ...",
        ),
    ] = None,
    efficiency: Annotated[
        float | None, take_share("With --need, the parallel efficiency to reach.")
    ] = None,
    price: options.Prices = None,
    page: PageOption = None,
    every: options.All = False,
    form: options.Form = "table",
) -> None:
    """The fewest PEs for a deadline, or what a goal needs."""
    if (deadline is None) == (need is None):
        raise InputError(
            "expected one of --deadline and --need",
            where="--deadline",
            advice="such as --deadline '2 h' --epochs 90, or --need inter_bandwidth "
            "--efficiency 0.8, or --need batch",
        )
    if need is None:
        options.refuse_given({"efficiency": efficiency}, "belongs to --need")
    else:
        unused = {"holds": holds, "epochs": epochs, "price": price}
        options.refuse_given(unused, "belongs to --deadline")
    if need in ("batch", "memory_capacity"):
        options.refuse_given({"efficiency": efficiency}, f"--need {need} asks what fits")
    expect_page(page)
    subject: Subject = context.obj.read()
    if deadline is None:
        assert need is not None  # one of both is given
        _show_needs(subject, need, efficiency, every, form, page)
    else:
        from paradl.sweep.questions.provision import list_provisions
        from paradl.sweep.report.asked import ask_provision
        from paradl.sweep.show.planning import describe_provision
        from paradl.sweep.show.rows import show_rows
        from paradl.sweep.show.tables import print_text

        ask = partial(list_provisions, epochs=epochs, holds=holds)
        rows = subject.ask(ask, form, deadline, price=parse_price(price))
        is_met = any(row["pe"] is not None for row in rows)
        if is_met:
            asked = ask_provision(rows, deadline, epochs)
            if form == "table":
                print_text(asked.describe(rows))
            if page:
                write_page_of(subject, page, price=price, asked=asked)
        show_rows(rows, form, every, describe_provision)
        if not is_met:
            end("no strategy meets the deadline with these PE counts", NOTHING_FEASIBLE)


def _show_needs(
    subject: Subject,
    need: str,
    efficiency: float | None,
    every: bool,
    form: options.Form,
    page: Path | None,
) -> None:
    """Print the value of one parameter that a goal needs."""
    from paradl.sweep.questions.needs import list_needs
    from paradl.sweep.report.asked import ask_need
    from paradl.sweep.show.planning import describe_need
    from paradl.sweep.show.rows import show_rows

    rows = subject.ask(list_needs, form, need, efficiency=efficiency, bounded=False)
    # A reason may also say that any value will do.
    is_met = not all(str(row["reason"]).startswith("never") for row in rows)
    if is_met and page:
        write_page_of(subject, page, asked=ask_need(rows, need))
    show_rows(rows, form, every, describe_need)
    if not is_met:
        end(f"no value of {need} will do", NOTHING_FEASIBLE)
