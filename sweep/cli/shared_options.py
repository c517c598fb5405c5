"""Arguments and options that several commands share, one type for each."""

from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Literal

import typer

from grids.reading.errors import InputError
from sweep.cube.object_store import locate_store

Completer = Callable[[str], list[str]]


def complete_entries(kind: Literal["model", "dataset", "system"]) -> Completer:
    """Complete the names of catalogue entries."""

    def complete(incomplete: str) -> list[str]:
        from grids.entries.names import list_names

        return _complete_last(incomplete, list_names(kind))

    return complete


def complete_strategies(incomplete: str) -> list[str]:
    """Complete the strategies of Table III."""
    from grids.entries.strategy_names import TABLE_III

    return _complete_last(incomplete, TABLE_III)


def _complete_last(incomplete: str, names: Iterable[str]) -> list[str]:
    """Complete the last name of a list such as `abci,dgx`."""
    # Shells replace the whole word, so the names before the last comma must be repeated.
    before, comma, last = incomplete.rpartition(",")
    return [f"{before}{comma}{name}" for name in names if name.startswith(last)]


def expect_there(path: Path) -> Path:
    """Return the path. InputError, before slow imports: nothing is there."""
    if not path.exists():
        raise InputError("no such file or folder", where=str(path), advice="check the path")
    return path


def locate_if_given(store: str | None) -> str | None:
    """Locate a store, if one is given."""
    return None if store is None else locate_store(store)


Model = Annotated[
    str,
    typer.Option(
        help="Network: a catalogue name or a file (.yaml, .net_sc ...).",
        autocompletion=complete_entries("model"),
    ),
]
Strategy = Annotated[
    str,
    typer.Option(help="Strategy, such as data+filter:group=8.", autocompletion=complete_strategies),
]
PEs = Annotated[int, typer.Option("--pe", help="Number of PEs.")]
Batch = Annotated[int, typer.Option(help="Samples per replica (weak) or per mini-batch (strong).")]
Dataset = Annotated[
    str | None,
    typer.Option(
        help="Data set: a catalogue name or a file.", autocompletion=complete_entries("dataset")
    ),
]
System = Annotated[
    str,
    typer.Option(
        help="Machine: a catalogue name or a file, such as dgx-h100:precision=tf32.",
        autocompletion=complete_entries("system"),
    ),
]
Layers = Annotated[str | None, typer.Option(help="A .lc file that says which layers are split.")]
Set = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="Fix an oracle parameter; may be repeated."),
]
Scaling = Annotated[
    Literal["weak", "strong"],
    typer.Option(help="--batch is samples per replica (weak) or in total."),
]
Collectives = Annotated[
    Literal["auto", "ring", "tree", "two-level", "best"],
    typer.Option(
        help="Algorithm; auto is the fastest on a machine, and Table III's ring on paper."
    ),
]
AllReduce = Annotated[
    Literal["ring", "hierarchical"],
    typer.Option(help="With --oracle paper: reduce weights in one ring, or in groups first."),
]
AllReduceOrNone = Annotated[
    Literal["ring", "hierarchical"] | None,
    typer.Option(help="With --oracle paper: reduce weights in one ring, or in groups first."),
]
Conventions = Annotated[
    Literal["table", "authors"],
    typer.Option(
        help="With --oracle paper: sums and bounds of Table III, or of the authors' code."
    ),
]
Iterations = Annotated[
    Literal["exact", "ceil"],
    typer.Option(help="Iterations per epoch: D/B, or rounded up as data loaders do."),
]
Optimizer = Annotated[
    Literal["sgd", "adam", "none"],
    typer.Option(help="Optimizer whose weight update is counted."),
]
Oracle = Annotated[
    Literal["paper", "machine"],
    typer.Option(help="ParaDL's Table III verbatim, or a model of the machine as it is."),
]
Recompute = Annotated[
    Literal["none", "full"],
    typer.Option(help="Rerun the forward pass during the backward pass, to keep less in memory."),
]
Times = Annotated[
    Literal["measured", "roofline"],
    typer.Option(help="Measured compute times where known, or the roofline for all layers."),
]
Calibration = Annotated[
    str,
    typer.Option(
        help="Fit to measured runs: a name, a file, none, or auto for the shipped one, if any."
    ),
]
Convergence = Annotated[
    str,
    typer.Option(help="Epochs to a target: a CSV or YAML file, none, or auto for the catalogue's."),
]
Target = Annotated[
    str | None, typer.Option(help="Target such as top1>=0.759, where epochs to several are known.")
]
MaxGlobalBatch = Annotated[
    int | None, typer.Option(help="Largest global batch assumed to converge.")
]
# Located while options are parsed, so that a mistake is reported before slow imports.
Store = Annotated[
    str, typer.Argument(help="A cube: a folder or an object-store URL.", callback=locate_store)
]
StoreOrNone = Annotated[
    str | None,
    typer.Argument(
        help="A cube; without one, --model and other options describe a design space.",
        callback=locate_if_given,
    ),
]
SampleData = Annotated[
    Path,
    typer.Argument(help="Data set from 'paradl sample'.", callback=expect_there),
]
Selection = Annotated[
    list[str] | None,
    typer.Option("--sel", metavar="AXIS=VALUE[,VALUE]", help="Slice the cube; may be repeated."),
]
Nearest = Annotated[
    bool, typer.Option("--nearest", help="With --sel, take the nearest values of the store's axes.")
]
Form = Annotated[
    Literal["table", "json", "csv"],
    typer.Option("--format", help="Format of the answer; --json is short for --format json."),
]
All = Annotated[bool, typer.Option("--all", help="Show every row, not just a screenful.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress and no notes.")]
Workers = Annotated[
    int, typer.Option(min=0, help="Local worker processes; 0 computes in this process.")
]


def print_version(wanted: bool) -> None:
    """Print the version and exit, if `--version` is given."""
    if wanted:
        print(f"paradl {version('paradl')}")
        raise typer.Exit


Version = Annotated[
    bool,
    typer.Option(
        "--version", callback=print_version, is_eager=True, help="Print the version and exit."
    ),
]
