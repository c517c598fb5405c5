"""The command about layouts that fit, and other commands' answers about layouts (--sequence)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from typer import Context, Option, Typer

from paradl.grids.reading.errors import InputError, format_count
from paradl.grids.reading.units import parse_count
from paradl.sweep.cli import options
from paradl.sweep.cli.commands import NOTHING_FEASIBLE, end, take_options
from paradl.sweep.cli.report import expect_page, write_page_of_layouts
from paradl.sweep.cli.spaces import SpaceOptions
from paradl.sweep.cli.values import take_count
from paradl.sweep.show.visible import tell

if TYPE_CHECKING:
    from paradl.sweep.answers.types.fitting import FitAnswer

app = Typer()

# Not ABCI, the default for strategies, whose PEs have 16 GB of memory.
SYSTEM = "dgx-h100"


@dataclass(frozen=True)
class FitOptions:
    """The arguments of `sweep.questions.fit.fit`, and which of its rows to show."""

    model: options.Model
    pe: options.PEs
    system: options.System = SYSTEM
    global_batch: Annotated[
        int | None,
        take_count("Sequences per iteration; default: a multiple of --pe, at least 1,024."),
    ] = None
    sequence: Annotated[int | None, take_count("Tokens per sequence; 8k is 8192.")] = None
    precision: Annotated[
        Literal["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4", "zero"] | None,
        Option(
            help="Bytes per parameter, as in Megatron; zero: as in Rajbhandari 2020; default: the "
            "system's precision if it is fp8, mxfp8 or nvfp4, else bf16."
        ),
    ] = None
    attention: Annotated[
        Literal["fused", "unfused"],
        Option(help="fused: a flash kernel, which keeps no scores in memory."),
    ] = "fused"
    schedule: Annotated[
        Literal["1f1b", "gpipe", "zb1p", "zbv"],
        Option(help="Pipeline schedule; 1f1b is interleaved where stages have chunks."),
    ] = "1f1b"
    loss: Annotated[
        Literal["whole", "plain", "chunked", "fused"] | None,
        Option(
            help="Logits in memory: all, as in PyTorch (plain), an eighth at a time, or none; "
            "default: as the system's software."
        ),
    ] = None
    context: Annotated[
        Literal["ring", "all_gather", "all_to_all"],
        Option(help="How the PEs that share a sequence exchange keys and values."),
    ] = "ring"
    recompute: Annotated[
        list[str] | None,
        Option(help="Modules to recompute, such as core_attn,mlp; repeat to try several sets."),
    ] = None
    shard: Annotated[
        str | None, Option(help="Ranks that ZeRO shards over, or node (HSDP); default: all.")
    ] = None
    group: Annotated[
        int | None,
        take_count("Consecutive micro-batches per chunk; default: the number of stages."),
    ] = None
    layout: Annotated[
        str | None,
        Option(help="Explain one layout, such as 'tp8 pp4 dp2 mb1 zero1 recompute=core_attn'."),
    ] = None
    by: Annotated[
        Literal["division", "time"],
        Option(help="Rank by how little the model is divided, or by predicted time."),
    ] = "division"
    tokens: options.Tokens = None
    price: Annotated[float | None, Option(help="Price of a PE-hour, with --tokens.")] = None
    launch: Annotated[
        Literal["megatron", "torchtitan", "deepspeed", "torchrun"] | None,
        Option(help="Print launch lines for this framework, of --layout or the first layout."),
    ] = None
    calibration: Annotated[
        str | None, Option(help="Calibration by runs of layouts, a name or a file, with --by time.")
    ] = None
    headroom: options.Headroom = None


@app.command(cls=take_options(FitOptions))
def fit(context: Context, every: options.All = False, form: options.Form = "table") -> None:
    """List the layouts of a transformer that fit in memory, and say why others do not."""
    settings = {**vars(context.obj)}
    # In layouts and answers, `sequence` is sequence parallelism.
    settings["length"] = settings.pop("sequence")
    _list_layouts(settings, every, form)


def rank_layouts(
    space: SpaceOptions,
    settings: dict[str, Any],
    page: Path | None,
    every: bool,
    form: options.Form,
) -> None:
    """Print the layouts of a transformer that fit, the fastest first, and write their page."""
    expect_page(page)
    given = _read_subject(space, settings, "pe", "calibration")
    # Layouts are enumerated for one number of PEs; limits and provision take several.
    if space.pe is None:
        raise InputError("layouts take one number of PEs", where="--pe", advice="such as 1024")
    given |= {"pe": parse_count(space.pe, "--pe"), "by": "time"}
    answer = _list_layouts(given, every, form)
    if page is not None:
        write_page_of_layouts(answer, page, given["model"], given["system"], space.calibration)


def _list_layouts(settings: dict[str, Any], every: bool, form: options.Form) -> "FitAnswer":
    """Print the answer of `fit`, and return it. Exits if nothing fits."""
    options.check_names(settings, several=False)
    shard = settings.get("shard")
    if shard not in (None, "node"):
        settings = {**settings, "shard": parse_count(shard, "--shard")}
    # Words are read before JAX is imported, which takes a second.
    from paradl.sweep.cases.layout_words import parse_layout, parse_recompute

    if settings.get("layout") is not None:
        parse_layout(settings["layout"], settings["pe"])
    for modules in settings.get("recompute") or ():
        parse_recompute(modules)
    from paradl.sweep.questions.fit import MOST_LISTED
    from paradl.sweep.questions.fit import fit as ask
    from paradl.sweep.show.fit import show_fit

    settings = {**settings, "most": None if every else MOST_LISTED}
    answer = ask(**settings)
    if settings.get("global_batch") is not None:
        _check_batch(answer, partial(ask, **{**settings, "global_batch": None, "most": 1}))
    show_fit(answer, form, every)
    if not answer["feasible"]:
        what = "it does not fit" if settings.get("layout") else "no layout fits"
        end(f"nothing feasible: {what}", NOTHING_FEASIBLE)
    return answer


def _check_batch(answer: "FitAnswer", ask_usual: Callable[[], "FitAnswer"]) -> None:
    """Warn of a global batch that allows no data parallelism. InputError: no layout divides it.

    ask_usual: the answer for the default batch, which any number of replicas divides.
    """
    batch, pes = answer["global_batch"], answer["pe"]
    what = f"{format_count(batch, 'sequence')} on {format_count(pes, 'PE')}"
    if answer["smallest"] is None and (usual := ask_usual())["smallest"]:
        raise InputError(
            f"{what}: the replicas of no layout divide them",
            where="--global-batch",
            advice=f"such as {usual['global_batch']:,}",
        )
    if gcd(batch, pes) == 1 < min(batch, pes):
        tell(f"paradl: warning: {what}: only layouts with one replica divide them")


def scale_layouts(
    question: Literal["limits", "pareto", "provision"],
    space: SpaceOptions,
    settings: dict[str, Any],
    every: bool,
    form: options.Form,
) -> None:
    """Print the fastest layouts of several numbers of PEs. Exits if none is what is asked for."""
    is_front = question == "pareto"
    given = _read_subject(space, settings, *(("pe", "calibration") if is_front else ()))
    if question == "provision":
        for name in ("deadline", "tokens"):
            if given[name] is None:
                advice = "such as '60 d', 15e12"
                raise InputError("layouts need it", where=f"--{name}", advice=advice)
    from paradl.sweep.cells.design_space import list_counts
    from paradl.sweep.questions.layout_scaling import QUESTIONS
    from paradl.sweep.show.fit import describe_fastest
    from paradl.sweep.show.rows import show_rows

    if is_front:
        given["pe"] = list_counts("pe", space.pe)
    rows = QUESTIONS[question](**given)
    show_rows(rows, form, every, describe_fastest)
    # Rows end with the first number of PEs that meets the deadline.
    if question == "provision" and not rows[-1]["meets"]:
        end("no layout meets the deadline on these PEs", NOTHING_FEASIBLE)
    if all(row["layout"] is None for row in rows):
        end(f"no layout fits on {'these PEs' if is_front else 'this system'}", NOTHING_FEASIBLE)


def asks_about_layouts(
    sequence: int | None, of_layouts: Mapping[str, object], of_strategies: Mapping[str, object]
) -> bool:
    """Return whether --sequence is given. InputError: options of the other kind of question are."""
    if sequence is not None:
        options.refuse_given(of_strategies, "cannot be combined with --sequence", "leave it out")
        return True
    options.refuse_given(of_layouts, "is an option of layouts", "give --sequence, too")
    return False


def _read_subject(space: SpaceOptions, settings: dict[str, Any], *more: str) -> dict[str, Any]:
    """Return the settings of a question about layouts, with its model, system and one price.

    InputError: no model, several prices, other options of a design space than `more`.
    """
    if space.model is None:
        raise InputError("layouts are those of a model", where="--model", advice="give one")
    given = {name: value for name, value in vars(space).items() if value not in (None, False, [])}
    # `quiet` silences progress, whatever the question.
    allowed = {"model", "system", "quiet", *more}
    others = {name: value for name, value in given.items() if name not in allowed}
    options.refuse_given(others, "cannot be combined with --sequence", "leave it out")
    if "price" in settings:
        price = options.parse_price(settings["price"])
        if not isinstance(price, float | None):
            raise InputError("layouts take one price", where="--price", advice="write it like 2.5")
        settings = {**settings, "price": price}
    subject = {"model": space.model, "system": space.system or SYSTEM, **settings}
    subject |= {"calibration": space.calibration} if "calibration" in more else {}
    options.check_names(subject, several=False)
    return subject
