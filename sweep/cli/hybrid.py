"""The command about hybrids. As in `sweep.cli.main`, heavy imports are inside it."""

from pathlib import Path
from typing import Annotated, Any

import typer

from grids.reading.errors import InputError, shorten
from sweep.cli.assignments import parse_settings
from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.names import check_names
from sweep.cli.option_messages import speak_of_options
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
from sweep.show.visible import tell

Counts = Annotated[
    str, typer.Option("--pe", metavar="N[,N]", help="Up to so many PEs, or these counts.")
]
ReplicaBatch = Annotated[int, typer.Option("--batch", help="Samples per replica.")]
Hybrids = Annotated[
    list[str] | None,
    typer.Option(
        "--strategy",
        help="Such as data+spatial:group=2; may be repeated. Default: all kinds, in pairs.",
    ),
]
Speedups = Annotated[
    list[str] | None,
    typer.Option(
        "--speedup",
        metavar="M=X",
        help="An iteration's in groups of M, in place of the oracle's; may be repeated.",
    ),
]
Efficiency = Annotated[
    float | None, typer.Option(help="T_1 / T_N across replicas, in place of the oracle's.")
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it, too: hybrid.png.")]


def hybrid(
    model: Model,
    batch: ReplicaBatch,
    pe: Counts,
    strategy: Hybrids = None,
    speedup: Speedups = None,
    scaling_efficiency: Efficiency = None,
    convergence: Convergence = "auto",
    target: Target = None,
    dataset: Dataset = None,
    system: System = "abci",
    settings: Set = None,
    oracle: Oracle = "machine",
    calibration: Calibration = "auto",
    plot: Plot = None,
    form: Form = "table",
) -> None:
    """When hybrid beats data parallelism end to end: time to accuracy."""
    for label in strategy or ():
        check_names({"strategy": label}, several=False)
    if not speedup or scaling_efficiency is None:  # else epochs alone are looked up, of any model
        check_names({"model": model, "dataset": dataset, "system": system}, several=False)

    # Behind what is wrong with names: scipy and JAX take seconds to import.
    from sweep.questions.hybrid.question import hybrid as ask
    from sweep.show.hybrid import show_hybrid

    with speak_of_options():
        answer = ask(
            model,
            batch,
            parse_counts(pe),
            strategies=strategy or (),
            speedups=parse_speedups(speedup),
            scaling_efficiency=scaling_efficiency,
            convergence=convergence,
            target=target,
            dataset=dataset,
            system=system,
            parameters=parse_settings(settings, "--set"),
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
        end(_explain_failure(answer["rows"]), NOTHING_FEASIBLE)


def _explain_failure(rows: list[dict[str, Any]]) -> str:
    """Why nothing can be compared: the limits of all rows."""
    limits = dict.fromkeys(limit for row in rows for limit in row["limit"])
    reason = ", ".join(limits) or "no batch converges"
    return f"no hybrid, or no data parallelism, can train with any of these counts: {reason}"


def parse_counts(text: str) -> int | list[int]:
    """One PE count, up to which to go, or the counts of a list."""
    parts = [part.strip() for part in text.split(",")]
    try:
        counts = [int(part) for part in parts]
    except ValueError:
        raise InputError(
            f"expected whole numbers, got {shorten(text)}",
            where="--pe",
            advice="write 256, or 96,128",
        ) from None
    return counts if len(counts) > 1 else counts[0]


def parse_speedups(items: list[str] | None) -> dict[int, float]:
    """SU^M by M."""
    try:
        return {
            int(group): float(value) for group, value in parse_settings(items, "--speedup").items()
        }
    except ValueError as error:
        if isinstance(error, InputError):
            raise InputError(str(error), advice="write it like 2=1.32") from None
        raise InputError(
            f"expected numbers, got {', '.join(map(shorten, items or []))}",
            where="--speedup",
            advice="write it like 2=1.32",
        ) from None
