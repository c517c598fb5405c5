"""Judge predictions of published runs: folders of CSVs in, a page on stdout.

`python -m benchmarks.scoreboard FOLDER...`: files in the columns of `layouts.csv` are runs, those
in the columns of `benchmarks.others` predictions of other tools. docs/scoreboard.md is what it
prints for grids/catalogue/measured and benchmarks. `python -m benchmarks scoreboard` sums up.
"""

import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from benchmarks import frozen, others, reproduce, sums
from benchmarks.decisions import TIE, fit_rival_spread, group_rivals, list_duels, pair_software
from benchmarks.forecasts import (
    FIXED_MFU,
    Forecast,
    forecast_runs,
    is_dense,
    list_logs,
    measure_coverage,
)
from benchmarks.layout_runs import REQUIRED, Run, read_runs
from benchmarks.layouts import measure_accuracy, select_timed
from benchmarks.report import Effort, Report, Row, at_least, at_most, tabulate
from paradl.grids.entries.transformer_rates import FITTED, RIVAL_SPREAD
from paradl.grids.reading.csvfile import read_rows
from paradl.grids.reading.errors import InputError
from paradl.sweep.cli.commands import BAD_INPUT, end, find_page

COLUMNS = (
    *("key", "set", "software", "source", "network", "system", "pes", "precision", "layout"),
    *("sequences", "tokens", "measured_s", "predicted_s", "low_s", "high_s"),
    *("constant_mfu_s", "six_p_s", "left_out", "command"),
)


class Material(NamedTuple):
    """What is judged: runs, predictions of other tools, and versions that are frozen, if any.

    ignored: files of other columns.
    """

    runs: list[Run]
    predictions: list[others.Prediction]
    frozen: frozen.Frozen | None
    ignored: list[Path]


def read_material(paths: Sequence[Path]) -> Material:
    """Read CSV files, or all those of folders, by their columns. InputError: a mistake."""
    material = Material([], [], None, [])
    for file in (file for path in paths for file in list_files(path)):
        _, names = next(read_rows(file), ("", []))
        if {"tool", "seconds"} <= {*names}:
            material.predictions.extend(others.read_predictions(file))
        elif f"predicted_{frozen.VERSIONS[0]}_s" in names:
            material = material._replace(frozen=frozen.read_frozen(file))
        elif {"network", "iteration_s", "stack"} & {*names}:
            material.runs.extend(read_runs(file))
        else:
            material.ignored.append(file)
    if not any(run.seconds for run in material.runs):
        raise InputError(
            "no run with a time (iteration_s)",
            where=", ".join(map(str, paths)),
            advice=f"name a folder of CSV files with the columns {', '.join(REQUIRED)}",
        )
    return material


def list_files(path: Path) -> list[Path]:
    """The CSV files of a folder, or the file itself."""
    if not path.exists():
        raise InputError("no such folder or file", where=str(path), advice="check the path")
    return sorted(path.glob("*.csv")) if path.is_dir() else [path]


HEAD = """# Scoreboard: published runs of transformers

<!-- python -m {command} -->

Seconds per iteration of published runs beside predictions. A run that the rates of transformers
were fitted to is predicted by a fit without its software, every other run by the shipped rates.
*Accuracy* is the mean of one less the relative error, at least 0
([accuracy.md](accuracy.md#what-accuracy-means)); *interval holds* is the share of times within the
80 % interval; *median of ratios* is that of predicted over measured times.

Two baselines that anyone can reproduce: *constant MFU*, the median MFU of fitted runs on the same
device, by other software where the run was fitted itself (on any device where there are none);
*6 P*, six FLOPs per parameter that a token uses (C = 6 P x tokens, Hoffmann et al. 2022) at
{fixed:.0f} % of the peak.
"""

DECIDED = """
## Which of two layouts is faster

A group is what one source published of one network, machine, number of PEs, batch, precision and
software. Repeated runs count once, with their median. *Faster named* is the share of pairs in which
the faster layout is predicted to be, of pairs whose times differ by more than {tie:.0f} %; *regret*
the time lost by the layout that is ranked first: its measured time over the least, less 1, as a
mean over groups; *scatter* the standard deviation of ln(predicted / measured) within groups.
"""

RELIABLE = """
`best` states how probable it is that its first layout is faster than the next. Stated for all
pairs, ties too, with the shipped spread of one layout beside another, {shipped:g}:
"""

CALIBRATED = """
The spread under which these outcomes are the most probable is {pairs:.3f} if each pair counts the
same, and {groups:.3f} if each group does.
"""

OTHERS = """
## Other tools on the same runs

What other tools predict; each row of predictions states the tool's version and its command.
*paradl*, *constant MFU* and *6 P* are accuracies on the same runs.
"""

FROZEN = """
## Unseen when predicted

Predictions of two versions ({versions}) for runs that no fit had seen then,
beside baselines from the runs that were fitted then. They are kept in `benchmarks/frozen.csv` and
do not change when rates are fitted again.
"""

ROWS = """
Every run with its prediction, and with the command that prints it (none for gradients in 16 bits):
[rows.csv]({link}). Run commands in the folder of that file. Intervals that they print are those of
the shipped rates, which are narrower than those of a fit without the software.
"""


def write_page(
    material: Material, forecasts: Sequence[Forecast], command: str, folder: Path | None
) -> str:
    """The page: a summary, decisions, other tools, frozen predictions, parts of runs, fits."""
    populations = sums.list_populations(forecasts)
    summary = [sums.sum_up(name, rows) for name, rows in populations.items()]
    sections = [
        HEAD.format(command=command, fixed=100 * FIXED_MFU),
        tabulate([sums.HEAD, *summary]),
    ]
    if folder:
        sections.append(ROWS.format(link=f"{folder.as_posix().removeprefix('docs/')}/rows.csv"))
    sections += write_decisions(forecasts)
    compared = [*others.compare(material.predictions, forecasts)]
    if compared:
        sections += [OTHERS, tabulate([others.HEAD, *compared])]
    if material.frozen:
        versions = " and ".join(frozen.VERSIONS)
        sections += [FROZEN.format(versions=versions), frozen.write_tables(material.frozen)]
    for name, rows in populations.items():
        lines = [*sums.list_parts(rows)]
        sections += [f"\n## Parts of {name}\n", tabulate([sums.HEAD, *lines])] if lines else []
    fits = {row.left_out: row.values for row in forecasts if row.left_out}
    values = [[stack, *(f"{fits[stack][name]:.6g}" for name in FITTED)] for stack in sorted(fits)]
    if values:
        sections += ["\n## Fits without each software\n", tabulate([["without", *FITTED], *values])]
    return "\n".join(sections) + "\n"


def write_decisions(forecasts: Sequence[Forecast]) -> list[str]:
    """Sections on decisions; none without two layouts of one run."""
    groups, pairs = group_rivals(forecasts), pair_software(forecasts)
    if not groups and not pairs:
        return []
    decided = [
        [title, *sums.describe_decisions(made)] for title, made in sums.list_decisions(forecasts)
    ]
    sections = [DECIDED.format(tie=100 * TIE), tabulate([sums.DECIDED, *decided])]
    sections += ["\nThe groups with the largest regret:\n"]
    sections += [tabulate([sums.WORST, *sums.list_worst([*groups, *pairs])])]
    duels = [*list_duels(groups)]
    if duels:
        lines = sums.list_reliability(duels, RIVAL_SPREAD)
        spreads = {
            "pairs": fit_rival_spread(duels),
            "groups": fit_rival_spread(duels, by_group=True),
        }
        sections += [RELIABLE.format(shipped=RIVAL_SPREAD), tabulate([sums.RELIABLE, *lines])]
        sections += [CALIBRATED.format(**spreads)]
    return sections


def write_rows(forecasts: Iterable[Forecast], folder: Path) -> None:
    """Write every run with its command, and the files that commands name, to a folder."""
    commands = {row: reproduce.write_command(row) for row in forecasts}
    reproduce.write_files([row.run for row, command in commands.items() if command], folder)
    with (folder / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(describe(row, command) for row, command in commands.items())


def describe(row: Forecast, command: str) -> list[str]:
    """A line of COLUMNS."""
    run = row.run
    seconds = run.seconds, row.seconds, *row.interval, row.constant, row.rule
    return [
        *(run.key, run.collection, run.stack, run.source, run.model, run.system.name),
        *(str(int(run.layout.pes[0])), run.precision, sums.describe_layout(run)),
        *(str(run.training.batch), str(run.training.length)),
        *(f"{value:.6g}" for value in seconds),
        *(row.left_out, command),
    ]


def measure(effort: Effort) -> Report:
    """Accuracy and coverage with whole stacks left out, of baselines, and decisions by source."""
    fitted = select_timed()
    forecasts = forecast_runs(fitted, fitted)
    dense = [row for row in forecasts if is_dense(row.run)]
    accuracy, inside = measure_accuracy(list_logs(dense)), measure_coverage(dense)
    rows = [
        Row("stacks left out", accuracy, "", goals=(at_least(accuracy, 0.9),)),
        Row(
            *("stacks left out: 80 % intervals hold", inside, ""),
            goals=(at_least(inside, 0.75), at_most(inside, 0.88, "")),
        ),
    ]
    for name, what in (("constant", "median MFU of the device"), ("rule", "6 P at 40 % MFU")):
        rows.append(Row(what, measure_accuracy(list_logs(dense, name)), ""))
    rows += list_decided(forecasts)
    return Report("scoreboard", "published runs of transformers, unseen", tuple(rows))


def list_decided(forecasts: Sequence[Forecast]) -> Iterator[Row]:
    """Yield decisions: the share of faster layouts that is named, and regret."""
    for title, made in sums.list_decisions(forecasts):
        words = zip(sums.DECIDED[1:], sums.describe_decisions(made), strict=True)
        note = "; ".join(f"{what} {value}" for what, value in words)
        is_goal = title == "all"
        goals = (at_least(made.named, 0.75),) if is_goal else ()
        yield Row(f"faster layout named, {title}", made.named, "", goals=goals, note=note)
        if is_goal:
            yield Row("mean regret", made.regret, "", goals=(at_most(made.regret, 0.02, ""),))
    duels = [*list_duels(group_rivals(forecasts))]
    for name, by_group in (("pairs", False), ("groups", True)):
        spread = fit_rival_spread(duels, by_group=by_group)
        yield Row(
            f"calibrated spread of rivals, {name} alike", spread, "", note=f"shipped {RIVAL_SPREAD}"
        )


def main(
    paths: Annotated[list[Path], typer.Argument(help="Folders of CSV files, or such files.")],
    rows: Annotated[
        Path | None, typer.Option(help="Write every run and its command to this folder.")
    ] = None,
) -> None:
    """Print how well published runs are predicted."""
    words = ["benchmarks.scoreboard", *map(str, paths), *(["--rows", str(rows)] if rows else [])]
    try:
        material = read_material(paths)
        forecasts = forecast_runs(material.runs, select_timed())
        if rows:
            write_rows(forecasts, rows)
        print(write_page(material, forecasts, " ".join(words), rows), end="")
        for file in material.ignored:
            print(f"not read: {file} has no columns of runs or predictions", file=sys.stderr)
    except InputError as error:
        end(str(error), BAD_INPUT, find_page(error))
    except OSError as error:
        end(f"{error.filename}: {error.strerror}", BAD_INPUT)


if __name__ == "__main__":
    typer.run(main)
