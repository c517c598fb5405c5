"""The command `hybrid`."""

from pathlib import Path
from typing import Annotated

import typer

from grids.reading.errors import InputError, shorten
from sweep.cli.commands import NOTHING_FEASIBLE, PatientCommand, end
from sweep.cli.shared_options import (
    Calibration,
    Convergence,
    Dataset,
    Form,
    Model,
    Oracle,
    Set,
    System,
    Target,
)
from sweep.cli.values import check_names, parse_counts, parse_settings
from sweep.show.visible import tell

app = typer.Typer()


@app.command(cls=PatientCommand)
def hybrid(
    model: Model,
    batch: Annotated[int, typer.Option(help="Samples per replica.")],
    pe: Annotated[str, typer.Option(metavar="N[,N]", help="Largest PE count, or several counts.")],
    strategies: Annotated[
        list[str] | None,
        typer.Option(
            "--strategy",
            help="A hybrid such as data+spatial:group=2; may be repeated. Default: all, in pairs.",
        ),
    ] = None,
    speedups: Annotated[
        list[str] | None,
        typer.Option(
            "--speedup",
            metavar="M=X",
            help="Speed-up of an iteration in groups of M, overriding the oracle; may be repeated.",
        ),
    ] = None,
    scaling_efficiency: Annotated[
        float | None, typer.Option(help="T_1 / T_N across replicas, overriding the oracle.")
    ] = None,
    convergence: Convergence = "auto",
    target: Target = None,
    dataset: Dataset = None,
    system: System = "abci",
    parameters: Set = None,
    oracle: Oracle = "machine",
    calibration: Calibration = "auto",
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also draw it into a file: hybrid.png.")
    ] = None,
    form: Form = "table",
) -> None:
    """When hybrid parallelism beats data parallelism in time to accuracy."""
    for label in strategies or ():
        check_names({"strategy": label}, several=False)
    # With both given, the oracle is not needed, and the model may be any that has epochs.
    if not speedups or scaling_efficiency is None:
        check_names({"model": model, "dataset": dataset, "system": system}, several=False)

    # scipy and JAX take seconds to import; a wrong name is reported before.
    from sweep.questions.hybrid.question import hybrid as ask
    from sweep.show.hybrid import show_hybrid

    answer = ask(
        model,
        batch,
        parse_counts(pe, "--pe", "write 256, or 96,128"),
        strategies=strategies or (),
        speedups=_parse_speedups(speedups),
        scaling_efficiency=scaling_efficiency,
        convergence=convergence,
        target=target,
        dataset=dataset,
        system=system,
        parameters=parse_settings(parameters, "--set"),
        settings={"oracle": oracle, "calibration": calibration},
    )
    for warning in answer["warnings"]:
        tell(f"paradl: warning: {warning}")
    trained = answer["gain"]["gain"] is not None
    if plot is not None and trained:
        from sweep.plots.figures import save_figure
        from sweep.plots.hybrid import draw_hybrid

        save_figure(draw_hybrid(answer), plot)
    show_hybrid(answer, form)
    if not trained:
        limits = dict.fromkeys(limit for row in answer["rows"] for limit in row["limit"])
        reason = ", ".join(limits) or "no batch converges"
        end(
            f"no hybrid, or no data parallelism, can train on any of these PE counts: {reason}",
            NOTHING_FEASIBLE,
        )


def _parse_speedups(items: list[str] | None) -> dict[int, float]:
    """Return SU^M, the speed-up of an iteration in a group of M PEs, by M."""
    advice = "write it like 2=1.32"
    pairs = parse_settings(items, "--speedup", advice)
    try:
        return {int(group): float(value) for group, value in pairs.items()}
    except ValueError:
        raise InputError(
            f"expected numbers, got {', '.join(map(shorten, items or []))}",
            where="--speedup",
            advice=advice,
        ) from None
