"""The command `python -m benchmarks`: measure, print, and on request record."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from benchmarks import (
    ablation,
    broadcast,
    codecs,
    convergence,
    elasticities,
    endtoend,
    first,
    fuzz,
    gains,
    grouped,
    house,
    kernel,
    kill,
    labels,
    layouts,
    memory,
    oracles,
    priors,
    profile,
    programs,
    scalar,
    scoreboard,
    search,
    startup,
    training,
    user,
    versions,
    workers,
)
from benchmarks.effort import FULL, QUICK, Effort
from benchmarks.machine import Machine
from benchmarks.record import record_reports
from benchmarks.report import Report, markdown
from sweep.engine.compile_cache import keep_programs

RESULTS = Path(__file__).parent / "RESULTS.md"

MEASUREMENTS: dict[str, Callable[[Effort], Report]] = {
    "startup": startup.measure,
    "first": first.measure,
    "user": user.measure,
    "scalar": scalar.measure,
    "numpy": broadcast.measure,
    "kernel": kernel.measure,
    "gains": gains.measure,
    "oracles": oracles.measure,
    "profile": profile.measure,
    "disk": endtoend.measure,
    "codecs": codecs.measure,
    "workers": workers.measure,
    "search": search.measure,
    "versions": versions.measure,
    "memory": memory.measure,
    "kill": kill.measure,
    "fuzz": fuzz.measure,
    "priors": priors.measure,
    "grouped": grouped.measure,
    "ablation": ablation.measure,
    "convergence": convergence.measure,
    "training": training.measure,
    "labels": labels.measure,
    "layouts": layouts.measure,
    "scoreboard": scoreboard.measure,
    "programs": programs.measure,
    "elasticities": elasticities.measure,
    "house": house.measure,
}


def main(
    names: Annotated[
        list[str] | None, typer.Argument(help=f"What to measure: {', '.join(MEASUREMENTS)}")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes less, and noisier.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="SI units.")] = False,
    seed: Annotated[int, typer.Option(help="Of fuzz: which files are made.")] = 1,
    cases: Annotated[int | None, typer.Option(help="Of fuzz: how many files are made.")] = None,
    record: Annotated[
        bool, typer.Option("--record", help=f"Replace the rows in {RESULTS.name}.")
    ] = False,
) -> None:
    """How fast paradl is here, as ratios within one run."""
    chosen = _chosen(names or [])
    keep_programs()
    machine = Machine.here()
    effort = replace(QUICK if quick else FULL, seed=seed)
    effort = effort if cases is None else replace(effort, cases=cases)
    reports = []
    for name in chosen:
        print(f"measuring {name} ...", file=sys.stderr)
        reports.append(MEASUREMENTS[name](effort))
    text = "\n".join([machine.markdown(), *map(markdown, reports)])
    result = {"machine": asdict(machine), "reports": list(map(asdict, reports))}
    print(json.dumps(result, indent=2) if as_json else text)
    if record:
        record_reports(RESULTS, machine, reports, list(MEASUREMENTS))


def _chosen(names: list[str]) -> list[str]:
    unknown = sorted(set(names) - set(MEASUREMENTS))
    if unknown:
        known = ", ".join(MEASUREMENTS)
        raise typer.BadParameter(f"expected any of {known}, got {unknown[0]!r}")
    return [name for name in MEASUREMENTS if not names or name in names]


# Dask's workers import this module, too.
if __name__ == "__main__":
    typer.run(main)
