"""Arguments and options of several commands, a type for each, and the parsing of their values.

An option of a type that ends in `| None` is None where it is not given: stores and specs have
values of their own, so the help states the default. Typer ignores options inside a union.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Self

from typer import Argument, Option

from paradl.grids.entries.names import check_name, list_names, split_labels
from paradl.grids.entries.strategy_words import TABLE_III
from paradl.grids.reading.errors import InputError, add_place, shorten
from paradl.kernels.options import KeptStates, Offload
from paradl.sweep.cli.values import take_count, take_number, take_output, take_picture, take_share
from paradl.sweep.cube.object_store import locate_store
from paradl.sweep.launching.names import FRAMEWORKS

if TYPE_CHECKING:
    from paradl.kernels.names.statistics import Objective
    from paradl.sweep.answers.objectives import Goal

Kind = Literal["model", "dataset", "system", "calibration"]
KINDS: tuple[Kind, ...] = ("model", "dataset", "system", "calibration")
AXES = ("model", "dataset", "system", "strategy", "pe", "batch")
# The command line spells them with dashes, answers with underscores.
TIMES: "dict[str, Objective]" = {"epoch-time": "epoch_time", "train-time": "train_time"}
OBJECTIVES: "dict[str, Goal]" = {
    **TIMES,
    "pe-hours": "pe_hours",
    "cost": "cost",
    "memory": "memory",
}


def complete_names(kind: Kind | Literal["strategy"]) -> Callable[[str], list[str]]:
    """Complete the last name of a list such as `abci,dgx`: of the catalogue, or of Table III."""

    def complete(incomplete: str) -> list[str]:
        names = TABLE_III if kind == "strategy" else list_names(kind)
        # Shells replace the whole word, so the names before the last comma must be repeated.
        before, comma, last = incomplete.rpartition(",")
        return [f"{before}{comma}{name}" for name in names if name.startswith(last)]

    return complete


def expect_there(path: Path) -> Path:
    """Return the path. InputError, before slow imports: nothing is there."""
    if not path.exists():
        raise InputError("no such file or folder", where=str(path), advice="check the path")
    return path


def _name_entry(kind: Kind | Literal["strategy"], words: str) -> Any:
    """Make an option whose values are names, completed by shells."""
    return Option(help=words, autocompletion=complete_names(kind))


# One configuration: values that it needs, which a launch script may state.
NETWORK = "Network: a name or a file (.yaml, config.json)."
Model = Annotated[str, _name_entry("model", NETWORK)]
ModelOrNone = Annotated[str | None, _name_entry("model", NETWORK)]
Dataset = Annotated[str | None, _name_entry("dataset", "Data set: a catalogue name or a file.")]
System = Annotated[
    str | None,
    _name_entry("system", "Machine: a catalogue name or a file, such as dgx-h100:precision=tf32."),
]
Strategy = Annotated[str | None, _name_entry("strategy", "Strategy, such as data+filter:group=8.")]
PEs = Annotated[int | None, take_count("Number of PEs.", "--pe")]
Batch = Annotated[int | None, take_count("Samples per replica.")]

# A design space: the axes of a spec.
Models = Annotated[
    str | None, _name_entry("model", "Networks: names or files, required without a store.")
]
Datasets = Annotated[str | None, _name_entry("dataset", "Data sets: names or files.")]
Systems = Annotated[
    str | None, _name_entry("system", "Machines: names or files; without a store one is needed.")
]
Strategies = Annotated[
    str | None, _name_entry("strategy", "Strategies: data,data+filter:group=8; default: all.")
]
PECounts = Annotated[str | None, Option(help="PE counts: 64,128 or 1..1024 or pow2:1..1024.")]
Batches = Annotated[str | None, Option(help="Samples per replica: 16,32; default: the best.")]

# Keys of a spec.
Set = Annotated[
    list[str] | None, Option("--set", metavar="NAME=VALUE", help="An oracle parameter; repeatable.")
]
Oracle = Annotated[
    Literal["paper", "machine"] | None,
    Option(help="Table III verbatim, or a model of the machine as it is (default)."),
]
Collectives = Annotated[
    Literal["auto", "ring", "tree", "two-level", "best"] | None,
    Option(help="Algorithm; auto (default): the fastest, and of --oracle paper the ring."),
]
AllReduce = Annotated[
    Literal["ring", "hierarchical"] | None,
    Option(help="With --oracle paper: reduce weights in one ring, or in groups first."),
]
Iterations = Annotated[
    Literal["exact", "ceil"] | None,
    Option(help="Iterations per epoch: D/B (default), or rounded up as data loaders do."),
]
Times = Annotated[
    Literal["measured", "roofline"] | None,
    Option(help="Measured compute times where known (default), or the roofline for all."),
]
Calibration = Annotated[str | None, Option(help="Fit to runs: a name, file, none, auto (default).")]
Convergence = Annotated[
    str | None, Option(help="Epochs to a target: a CSV or YAML file, none, or auto (catalogue's).")
]
Target = Annotated[str | None, Option(help="Such as top1>=0.759, where several are known.")]

Launch = Annotated[
    str | None,
    Option(
        metavar="SCRIPT",
        help="Take the run from a launch script or configuration; explain: or write for a "
        f"framework: {', '.join(FRAMEWORKS)}.",
    ),
]

# Files and stores. Located while options are parsed, so that a mistake is reported before slow
# imports.
Store = Annotated[str, Argument(help="A cube: a folder or an s3:// URL.", callback=locate_store)]
StoreOrNone = Annotated[
    str | None,
    Argument(
        help="A cube; without one, --model and other options describe a design space.",
        callback=lambda store: None if store is None else locate_store(store),
    ),
]
SampleData = Annotated[Path, Argument(help="Data set from 'paradl sample'.", callback=expect_there)]
Selection = Annotated[
    list[str] | None,
    Option("--sel", metavar="AXIS=VALUE[,VALUE]", help="Slice the cube; repeatable."),
]
Nearest = Annotated[bool, Option("--nearest", help="With --sel: take the nearest values.")]
# No default: what is written is edited by hand, and must not be overwritten unawares.
YamlOutput = Annotated[
    Path,
    take_output((".yaml", ".yml"), "--output", "-o", metavar="FILE.yaml", help="File to write."),
]
Plot = Annotated[Path | None, take_picture(help="Also draw it into a file, such as picture.png.")]
Size = Annotated[
    Literal["paper", "page", "slide"],
    Option("--size", help="Width: a paper's column (3.3 in), page (6.6 in) or slide (10 in)."),
]
Force = Annotated[bool, Option("--force", help="Replace an existing output.")]

# The objective of a ranking.
AnObjective = Annotated[
    Literal["epoch-time", "train-time", "pe-hours", "cost", "memory"],
    Option("--objective", help="What to minimise; cost needs --price; memory: of a PE."),
]
ATime = Annotated[
    Literal["epoch-time", "train-time"],
    Option("--objective", help="Time to minimise: of an epoch, or to the target accuracy."),
]
Prices = Annotated[
    list[str] | None,
    Option("--price", metavar="[SYSTEM=]X", help="Price of a PE-hour; repeat for several systems."),
]

# Words of planners.
Sequence = Annotated[str | None, Option(help="Tokens per sequence of a text, such as 8k.")]

# How an answer is printed, and how it is computed.
Form = Annotated[
    Literal["table", "json", "csv"],
    Option("--format", help="Format of the answer; --json is short for --format json."),
]
All = Annotated[bool, Option("--all", help="Show every row, not just a screenful.")]
Quiet = Annotated[bool, Option("--quiet", "-q", help="Print no progress and no notes.")]
Workers = Annotated[int, Option(min=0, help="Local worker processes; 0 computes in this process.")]
Seed = Annotated[int, Option(help="Random seed; the same seed gives the same answer.")]


# Names of options that are keys of a spec; a command has some of them.
SETTINGS = (
    *("oracle", "conventions", "optimizer", "recompute", "calibration"),
    *("convergence", "target", "collectives", "allreduce", "iterations", "times"),
    *("attention", "context", "loss", "states", "offload"),
)


# Keywords only, so that commands may add required options.
@dataclass(frozen=True, kw_only=True)
class SettingOptions:
    """Options that are keys of a spec, or parameters of the oracle; None: not given."""

    global_batch: Annotated[
        str | None, Option(help="Samples per iteration, such as 2048, in place of --batch.")
    ] = None
    sequence: Sequence = None
    tokens: Annotated[
        float | None,
        take_number("amount", "Tokens of the whole training, such as 15T, in place of --dataset."),
    ] = None
    precision: Annotated[str | None, Option(help="Precision of every system.")] = None
    headroom: Annotated[
        float | None, take_share("Share of each PE's memory to keep free, such as 10%.", most=0.999)
    ] = None
    parameters: Set = None
    max_global_batch: Annotated[int | None, take_count("Largest one assumed to converge.")] = None
    oracle: Oracle = None
    conventions: Annotated[
        Literal["table", "authors"] | None,
        Option(
            help="With --oracle paper: sums and bounds of Table III (default), or the authors'."
        ),
    ] = None
    optimizer: Annotated[
        Literal["sgd", "adam", "none"] | None,
        Option(help="Optimizer whose weight update is counted (default sgd; of layouts Adam)."),
    ] = None
    recompute: Annotated[
        Literal["none", "full"] | None,
        Option(help="Rerun the forward pass during the backward pass, to keep less in memory."),
    ] = None
    attention: Annotated[
        Literal["fused", "unfused"] | None,
        Option(help="Of blocks: fused (default) keeps no scores in memory."),
    ] = None
    context: Annotated[
        Literal["ring", "all_gather", "all_to_all"] | None,
        Option(help="How PEs that share a sequence exchange keys and values."),
    ] = None
    loss: Annotated[
        Literal["auto", "whole", "plain", "chunked", "fused"] | None,
        Option(help="Logits that blocks' loss keeps: all (whole, plain), an eighth, none."),
    ] = None
    states: Annotated[
        KeptStates | None,
        Option(help="States of blocks in fewer bytes: weights, moments, both; or the optimizer's."),
    ] = None
    offload: Annotated[
        Offload | None,
        Option(help="What of blocks hosts keep: the optimizer's states, activations, or both."),
    ] = None
    calibration: Calibration = None
    convergence: Convergence = None
    target: Target = None
    launch: Launch = None

    def read_launch(self, others: str = "") -> "tuple[Self, list[str]]":
        """Return these options with what a launch script states, and notes on it.

        Options that are given come first. others: strategies to add to that of the script.
        InputError: no script, or it lacks something.
        """
        if self.launch is None:
            return self, []
        from paradl.sweep.launching.reading import read_launch

        script = read_launch(self.launch)
        found = script.find_options(vars(self))
        notes = script.list_notes(found)
        if vars(self)["strategy"] is None:
            found["strategy"] += others
        return replace(self, **found), notes

    def list_settings(self) -> dict[str, object]:
        """Return the keys of a spec that are given."""
        return list_given(self, *(name for name in SETTINGS if hasattr(self, name)))

    def list_shorthands(self) -> dict[str, Any]:
        """Return the words of planners that are given."""
        return list_given(self, "global_batch", "sequence", "tokens", "precision")

    def read_parameters(self) -> dict[str, Any]:
        """Return the parameters of the oracle that are given. InputError: a pair that is none."""
        parameters: dict[str, Any] = dict(parse_settings(self.parameters, "--set"))
        given = list_given(self, "max_global_batch", "headroom")
        for name in parameters.keys() & given:
            raise InputError(f"{name} is given twice", where=f"--set {name}", advice="keep one")
        return parameters | given


def check_names(given: Mapping[str, Any], *, several: bool) -> None:
    """Refuse unknown names of models, data sets, systems, calibrations and strategies.

    given: by option, of which these are looked at. several: whether commas separate names.
    """
    # Late: they import pydantic, which `--help` does not need.
    from paradl.grids.entries.layout_words import respell
    from paradl.grids.entries.strategies import parse_strategy

    def split(option: str) -> list[str]:
        text = given.get(option)
        if not isinstance(text, str):  # None, or the sizes of a launch script
            return []
        return split_labels(text) if several else [text]

    for kind in KINDS:
        for name in split(kind):
            # Words of a spec, and no entries of the catalogue.
            if kind == "calibration" and name in ("auto", "none"):
                continue
            with add_place(f"--{kind}"):
                check_name(kind, name)
    if not several and given.get("strategy") and len(split_labels(given["strategy"])) > 1:
        words = respell(given["strategy"])
        labels = split_labels(given["strategy"])
        advice = "ask about each alone"
        if {*labels} <= {*TABLE_III}:
            advice += f"; several parallelisms are joined by +, as in {shorten('+'.join(labels))}"
        what = f"expected one, got {shorten(given['strategy'])}"
        raise InputError(what, where="--strategy", advice=f"write {words!r}" if words else advice)
    for label in split("strategy"):
        parse_strategy(label, "--strategy")


def list_given(options: object, *names: str) -> dict[str, Any]:
    """Return those of these options, fields of a dataclass, that are given, by name."""
    values = {name: getattr(options, name) for name in names}
    # Typer makes an empty list of an option that may be repeated and is not given.
    return {name: value for name, value in values.items() if value not in (None, [])}


def refuse_given(given: Mapping[str, object], why: str) -> None:
    """Raise InputError if one of these options has a value, since it would have no effect."""
    for name, value in given.items():
        if value is not None and value is not False:  # 0 is a value
            raise InputError(why, where=f"--{name}", advice="leave it out")


def parse_selection(items: list[str] | None) -> dict[str, list[str]]:
    """Return the values of each axis; repeating an option adds values."""
    values: dict[str, list[str]] = {}
    for axis, value in _split_pairs(items, "--sel"):
        values.setdefault(axis, []).append(value)
    return values


def parse_settings(items: list[str] | None, option: str, advice: str = "") -> dict[str, str]:
    """Return the value of each name. InputError, with the advice: a repeated name, or no pair."""
    pairs = _split_pairs(items, option, advice)
    values = dict(pairs)
    if len(values) < len(pairs):
        raise InputError("expected each name once", where=option, advice="keep one value")
    return values


def parse_counts(text: str, option: str) -> int | list[int]:
    """Parse one whole number, or several, ascending: separated by commas, or as pow2:1..64."""
    from paradl.grids.axes import expand_axis  # late: they import numpy
    from paradl.grids.entries.parameters import PARAMETERS
    from paradl.grids.shorthands import split_values

    with add_place(option):
        values = expand_axis(split_values(text), PARAMETERS["pe"]).values
    counts = [int(count) for count in values]
    # A single number has a meaning of its own: powers of two up to it.
    return counts if len(counts) > 1 else counts[0]


def _split_pairs(items: list[str] | None, option: str, advice: str = "") -> list[tuple[str, str]]:
    pairs = []
    # Only the first equals sign separates: strategy=data+filter:group=8.
    for item in items or []:
        name, equals, value = (part.strip() for part in item.partition("="))
        if not equals or not name or not value:
            raise InputError(
                f"expected name=value, got {shorten(item)}", where=option, advice=advice
            )
        pairs.append((name, value))
    return pairs
