"""Commands for planning: bottlenecks, which upgrades pay, and how many PEs to buy."""

from collections.abc import Callable
from typing import Annotated

import typer

from grids.reading.errors import InputError
from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.fit import (
    GlobalBatchOption,
    SequenceOption,
    TokensOption,
    provision_layouts,
    refuse_with_sequence,
    refuse_without_sequence,
)
from sweep.cli.objectives import PriceOption, parse_price
from sweep.cli.pages import PageOption, expect_page, write_page_of
from sweep.cli.shared_options import All, Form
from sweep.cli.spaces import SpaceCommand
from sweep.cli.subjects import Rows, Subject

app = typer.Typer()


@app.command(cls=SpaceCommand)
def bottleneck(context: typer.Context, every: All = False, form: Form = "table") -> None:
    """What takes the most time in an iteration at each PE count, and what fills the memory."""
    subject: Subject = context.obj.read()
    from sweep.questions.bottleneck import list_bottlenecks
    from sweep.show.planning import show_bottlenecks

    nothing = "no such configuration exists: more PEs than the strategy can use"
    _answer_cells(subject, list_bottlenecks, show_bottlenecks, form, every, nothing)


@app.command(cls=SpaceCommand)
def sensitivity(context: typer.Context, every: All = False, form: Form = "table") -> None:
    """Which upgrades pay: exact elasticities of the epoch time in each parameter."""
    subject: Subject = context.obj.read()
    from sweep.questions.sensitivity import list_sensitivities
    from sweep.show.planning import show_sensitivities

    nothing = "nothing in this slice is feasible; why: paradl best"
    _answer_cells(subject, list_sensitivities, show_sensitivities, form, every, nothing)


def _answer_cells(
    subject: Subject,
    question: Callable[..., Rows],
    show: Callable[[Rows, Form, bool], None],
    form: Form,
    every: bool,
    nothing: str,
) -> None:
    """Print a question's rows about cells; nothing: the message if there are none."""
    rows = subject.ask(
        lambda: question(subject.source, subject.selection, subject.max_global_batch), form
    )
    show(rows, form, every)
    if not rows:
        end(nothing, NOTHING_FEASIBLE)


@app.command(cls=SpaceCommand)
def provision(
    context: typer.Context,
    deadline: Annotated[
        str | None,
        typer.Option(help="Find the fewest PEs that train within this time, such as '2 h'."),
    ] = None,
    epochs: Annotated[
        float | None,
        typer.Option(help="Epochs to train; default: those to the target of --convergence."),
    ] = None,
    holds: Annotated[
        float | None,
        typer.Option(help="Required probability of meeting the deadline, such as 0.9."),
    ] = None,
    need: Annotated[
        str | None,
        typer.Option(
            metavar="PARAMETER",
            help="Parameter to solve for: batch, memory_capacity, inter_bandwidth ...",
        ),
    ] = None,
    efficiency: Annotated[
        float | None, typer.Option(help="With --need, the parallel efficiency to reach.")
    ] = None,
    sequence: SequenceOption = None,
    global_batch: GlobalBatchOption = None,
    tokens: TokensOption = None,
    price: PriceOption = None,
    page: PageOption = None,
    every: All = False,
    form: Form = "table",
) -> None:
    """The fewest PEs for a deadline, or the machine that a goal needs.

    With --sequence and --tokens: the fewest, doubling, for a transformer at its fastest layout.
    """
    if sequence is not None:
        given = {"epochs": epochs, "holds": holds, "need": need, "efficiency": efficiency}
        refuse_with_sequence({**given, "report": page})
        provision_layouts(context.obj, sequence, global_batch, deadline, tokens, price, every, form)
        return
    of_layouts = {"global-batch": global_batch, "tokens": tokens}
    refuse_without_sequence(of_layouts)
    if (deadline is None) == (need is None):
        raise InputError(
            "expected one of --deadline and --need",
            where="--deadline",
            advice="such as --deadline '2 h' --epochs 90, or --need inter_bandwidth "
            "--efficiency 0.8, or --need batch",
        )
    if need is not None and holds is not None:
        raise InputError("belongs to --deadline", where="--holds", advice="leave it out")
    expect_page(page)
    subject: Subject = context.obj.read()
    if deadline is None:
        assert need is not None  # one of both is given
        _show_needs(subject, need, efficiency, every, form)
        write_page_of(subject, page)
        return
    from sweep.questions.provision import list_provisions as ask
    from sweep.show.planning import show_provisions

    rows = subject.ask(
        lambda: ask(
            subject.source,
            deadline,
            subject.selection,
            epochs=epochs,
            price=parse_price(price),
            max_global_batch=subject.max_global_batch,
            holds=holds,
        ),
        form,
    )
    show_provisions(rows, form, every)
    if not any(row["pe"] is not None for row in rows):
        end("no strategy meets the deadline with these PE counts", NOTHING_FEASIBLE)
    write_page_of(subject, page)


def _show_needs(
    subject: Subject, need: str, efficiency: float | None, every: bool, form: Form
) -> None:
    """Print the value of one parameter that a goal needs."""
    from sweep.questions.needs import list_needs as ask
    from sweep.show.planning import show_needs

    rows = subject.ask(
        lambda: ask(subject.source, need, subject.selection, efficiency=efficiency), form
    )
    show_needs(rows, form, every)
    if all(str(row["reason"]).startswith("never") for row in rows):
        end(f"no value of {need} will do", NOTHING_FEASIBLE)
