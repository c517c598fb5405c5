"""Commands for machine learning: samples of a design space, and surrogates trained on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from typer import Argument, Context, Option, Typer

from paradl.grids.reading.errors import format_count
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import MISSED, PatientCommand, end, make_group, take_options
from paradl.sweep.cli.values import take_count, take_number
from paradl.sweep.cube.object_store import expect_parent
from paradl.sweep.engine.progress import report_state
from paradl.sweep.text.visible import tell

app = Typer()

Splits = Annotated[
    list[str] | None, Option("--split", help="A split: random, model, scale ...; may be repeated.")
]


@app.command()
def sample(
    source: Annotated[str, Argument(help="A design space with ranges (YAML), or a cube.")],
    out: Annotated[Path, Argument(help="Folder to create for the data set.")],
    rows: Annotated[int, take_number("amount", "Number of rows, such as 1e6.")],
    gradient: Annotated[
        list[str] | None, Option(help="Another input to differentiate by, beside ranges and batch.")
    ] = None,
    no_gradients: Annotated[bool, Option("--no-gradients", help="Leave out gradients.")] = False,
    seed: options.Seed = 0,
    splits: Splits = None,
    leave_out: Annotated[
        list[str] | None, Option(help="Rows to leave out: undefined, infeasible, kinks.")
    ] = None,
    force: options.Force = False,
    workers: options.Workers = 0,
    quiet: options.Quiet = False,
) -> None:
    """Sample a design space for machine learning."""
    expect_parent(str(out))
    from paradl.sweep.samples.sample import sample as draw

    done = 0
    with report_state("drawing rows", silent=quiet) as report:

        def advance(made: int) -> None:
            nonlocal done
            done += made
            report(f"{done:,} of {format_count(rows, 'row')}")

        written = draw(
            *(source, out, rows),
            seed=seed,
            # None: no gradients; an empty tuple: only those in ranges and the batch.
            gradients=None if no_gradients else gradient or (),
            splits=splits or (),
            leave_out=leave_out or (),
            force=force,
            workers=workers,
            advance=advance,
        )
    if quiet:
        return
    for note in written.notes:
        tell(f"paradl: {note}")
    for name, why in written.missing.items():
        tell(f"paradl: no split {name!r}: {why}")
    if written.constants:
        tell(f"paradl: constant in all rows: {', '.join(written.constants)}")
    tell(f"done: {format_count(written.rows, 'row')} in {out}")


surrogates = make_group("Networks trained on samples, and how far to trust them.")

File = Annotated[Path, Argument(help="Of 'paradl surrogate train'.", callback=options.expect_there)]


@dataclass(frozen=True)
class TrainOptions:
    """The arguments of `sweep.surrogates.train.train_surrogate`."""

    data: options.SampleData
    path: Annotated[Path, Option("--output", "-o", help="File to write.")]
    splits: Annotated[
        list[str] | None,
        Option(
            "--split",
            help="Split whose training rows to use; may be repeated. [default: random, model]",
        ),
    ] = None
    gradients: Annotated[bool, Option("--gradients", help="Also train on gradients.")] = False
    members: Annotated[int, take_count("Number of networks; their spread is the uncertainty.")] = 1
    epochs: Annotated[int, take_number("amount", "Maximum passes of a network over the rows.")] = 20
    width: Annotated[int, take_count("Units per hidden layer.")] = 128
    seed: options.Seed = 0
    force: options.Force = False


@surrogates.command(cls=take_options(TrainOptions, is_patient=False))
def train(context: Context, quiet: options.Quiet = False) -> None:
    """Train a surrogate on a data set."""
    given: TrainOptions = context.obj
    expect_parent(str(given.path))
    from paradl.sweep.surrogates.train import train_surrogate

    with report_state("training", silent=quiet) as show:

        def report(member: int, epoch: int, of: int, error: float) -> None:
            head = f"member {member + 1} of {given.members}: " if given.members > 1 else ""
            show(f"{head}round {epoch} of {of}, error {error:.4f}")

        trained = train_surrogate(**vars(given), report=report)
    if quiet:
        return
    if trained.dropped:
        tell(f"paradl: constant features left out: {', '.join(trained.dropped)}")
    size = f"{trained.bytes / 1e6:.2g} MB"
    tell(f"done: trained on {format_count(trained.rows, 'row')}, {size} in {trained.path}")


@surrogates.command()
def evaluate(
    surrogate: File,
    data: options.SampleData,
    splits: Splits = None,
    no_baselines: Annotated[bool, Option("--no-baselines", help="Leave out baselines.")] = False,
    quiet: options.Quiet = False,
    form: options.Form = "table",
) -> None:
    """Score a surrogate, and the strategies it would choose, on each split's held-out rows."""
    from paradl.sweep.surrogates.evaluate import evaluate_surrogate
    from paradl.sweep.text.tables import show

    with report_state("evaluating", silent=quiet) as report:
        rows = evaluate_surrogate(
            surrogate,
            data,
            splits=splits or (),
            baselines=not no_baselines,
            report=lambda name, method: report(f"{name}: {method}"),
        )
    show(rows, form)


@surrogates.command(cls=PatientCommand)
def predict(
    surrogate: File,
    rows: Annotated[
        Path, Argument(help="Rows: Parquet, CSV, or a data set.", callback=options.expect_there)
    ],
    form: options.Form = "table",
) -> None:
    """Predict rows of features with a surrogate, and flag rows outside its training range."""
    from paradl.sweep.surrogates.surrogate import predict_surrogate
    from paradl.sweep.text.tables import show

    answers = predict_surrogate(surrogate, rows)
    show(answers, form)
    # Lines go straight on beyond their range, which was not tested.
    if outside := int((answers["outside"] != "").sum()):
        rows_of = f"{outside:,} of {format_count(len(answers), 'row')}"
        tell(f"paradl: {rows_of} lie outside the training range; 'outside' names their features")


@surrogates.command(cls=PatientCommand)
def check(data: options.SampleData, form: options.Form = "table") -> None:
    """Check that no test row of a data set's splits is among its training rows."""
    from paradl.sweep.samples.leakage import check_leakage
    from paradl.sweep.text.tables import show

    rows = check_leakage(data)
    show(rows, form)
    # A split that leaks tests what was learnt by heart: scripts have to stop.
    leaks = [row["split"] for row in rows if row["leaks"]]
    if leaks:
        end(f"leaks: {', '.join(leaks)}", MISSED)
