"""The command `python -m benchmarks`: measure and print."""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated

import typer

from benchmarks import (
    commands,
    convergence,
    frozen,
    house,
    layouts,
    memory,
    priors,
    scoreboard,
    sweeps,
)
from benchmarks.report import FULL, QUICK, Effort, Report, markdown
from paradl.sweep.engine.resources import keep_programs

MEASUREMENTS: dict[str, Callable[[Effort], Report]] = {
    "first": commands.measure,
    "user": commands.measure_sweeps,
    "disk": sweeps.measure_disk,
    "search": sweeps.measure_search,
    "memory": memory.measure,
    "priors": priors.measure,
    "convergence": convergence.measure,
    "layouts": layouts.measure,
    "scoreboard": scoreboard.measure,
    "frozen": frozen.measure,
    "house": house.measure,
}
# What users wait for, from the first answer to a billion cells.
GROUPS = {"speed": ("first", "user", "disk", "search")}


def main(
    names: Annotated[
        list[str] | None,
        typer.Argument(help=f"What to measure: {', '.join([*GROUPS, *MEASUREMENTS])}"),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Minutes shorter, and noisier.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, in SI units.")] = False,
) -> None:
    """Measure how fast paradl is on this machine, as ratios within one run."""
    chosen = _chosen(names or [])
    keep_programs()
    effort = QUICK if quick else FULL
    reports = []
    for name in chosen:
        print(f"measuring {name} ...", file=sys.stderr)
        reports.append(MEASUREMENTS[name](effort))
    text = "\n".join(map(markdown, reports))
    print(json.dumps([*map(asdict, reports)], indent=2) if as_json else text)


def _chosen(names: list[str]) -> list[str]:
    wanted = {name for word in names for name in GROUPS.get(word, (word,))}
    unknown = sorted(wanted - set(MEASUREMENTS))
    if unknown:
        known = ", ".join([*GROUPS, *MEASUREMENTS])
        raise typer.BadParameter(f"expected any of {known}, got {unknown[0]!r}")
    return [name for name in MEASUREMENTS if not names or name in wanted]


# Spawned processes import this module, too.
if __name__ == "__main__":
    typer.run(main)
