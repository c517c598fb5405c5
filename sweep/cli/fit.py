"""The command about layouts that fit. As in `sweep.cli.main`, heavy imports are inside it."""

from collections.abc import Mapping
from typing import Annotated, Literal

import typer

from grids.reading.errors import InputError
from sweep.cli.commands import NOTHING_FEASIBLE, end
from sweep.cli.objectives import parse_price
from sweep.cli.shared_options import All, Form, Model, PEs, System
from sweep.cli.spaces import SpaceOptions
from sweep.cli.values import check_names

app = typer.Typer()

SYSTEM = "dgx-h100"

SequenceOption = Annotated[
    int | None, typer.Option(help="Tokens per sequence: ask about layouts of a transformer.")
]
GlobalBatchOption = Annotated[
    int | None, typer.Option(help="Sequences per iteration, with --sequence.")
]
TokensOption = Annotated[
    float | None, typer.Option(help="Tokens to train on, such as 15e12: adds days and PE-hours.")
]
HourPriceOption = Annotated[float | None, typer.Option(help="Price of a PE-hour, with --tokens.")]


@app.command()
def fit(
    model: Model,
    pe: PEs,
    system: System = SYSTEM,
    global_batch: Annotated[
        int | None,
        typer.Option(help="Sequences per iteration; default: a multiple of --pe, at least 1,024."),
    ] = None,
    sequence: Annotated[int | None, typer.Option(help="Tokens per sequence.")] = None,
    precision: Annotated[
        Literal["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4", "zero"] | None,
        typer.Option(
            help="Bytes per parameter, as in Megatron; zero: as in Rajbhandari 2020; default: the "
            "system's precision if it is fp8, mxfp8 or nvfp4, else bf16."
        ),
    ] = None,
    attention: Annotated[
        Literal["fused", "unfused"],
        typer.Option(help="fused: a flash kernel, which keeps no scores in memory."),
    ] = "fused",
    schedule: Annotated[
        Literal["1f1b", "gpipe", "zb1p", "zbv"],
        typer.Option(help="Pipeline schedule; 1f1b is interleaved where stages have chunks."),
    ] = "1f1b",
    loss: Annotated[
        Literal["whole", "plain", "chunked", "fused"],
        typer.Option(
            help="Logits in memory: all, as in PyTorch (plain), an eighth at a time, or none."
        ),
    ] = "whole",
    context: Annotated[
        Literal["ring", "all_gather", "all_to_all"],
        typer.Option(help="How the PEs that share a sequence exchange keys and values."),
    ] = "ring",
    recompute: Annotated[
        list[str] | None,
        typer.Option(
            help="Modules to recompute, such as core_attn,mlp; repeat to try several sets."
        ),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="Ranks that ZeRO shards over, or node (HSDP); default: all.")
    ] = None,
    group: Annotated[
        int | None,
        typer.Option(help="Consecutive micro-batches per chunk; default: the number of stages."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="Explain one layout, such as 'tp8 pp4 dp2 mb1 zero1 recompute=core_attn'."
        ),
    ] = None,
    by: Annotated[
        Literal["division", "time"],
        typer.Option(help="Rank by how little the model is divided, or by predicted time."),
    ] = "division",
    tokens: TokensOption = None,
    price: HourPriceOption = None,
    launch: Annotated[
        Literal["megatron", "torchtitan", "deepspeed", "torchrun"] | None,
        typer.Option(
            help="Print launch lines for this framework, of --layout or the first layout."
        ),
    ] = None,
    calibration: Annotated[
        str | None,
        typer.Option(help="Calibration by runs of layouts, a name or a file, with --by time."),
    ] = None,
    every: All = False,
    form: Form = "table",
) -> None:
    """List the layouts of a transformer that fit in memory, and say why others do not."""
    check_names({"model": model, "system": system, "calibration": calibration}, several=False)
    from sweep.questions.fit import MOST_LISTED, read_shard
    from sweep.questions.fit import fit as ask
    from sweep.show.fit import show_fit

    answer = ask(
        model,
        pe,
        system=system,
        global_batch=global_batch,
        length=sequence,
        precision=precision,
        attention=attention,
        schedule=schedule,
        loss=loss,
        context=context,
        recompute=recompute,
        shard=read_shard(shard),
        group=group,
        layout=layout,
        by=by,
        tokens=tokens,
        price=price,
        launch=launch,
        most=None if every else MOST_LISTED,
        calibration=calibration,
    )
    show_fit(answer, form, every)
    if not answer["feasible"]:
        what = "it does not fit" if layout else "no layout fits"
        end(f"nothing feasible: {what}", NOTHING_FEASIBLE)


def rank_layouts(
    space: SpaceOptions,
    sequence: int,
    global_batch: int | None,
    tokens: float | None,
    price: list[str] | None,
    every: bool,
    form: Form,
) -> None:
    """Print the layouts of a transformer that fit, the fastest first."""
    model, system = _read_subject(space, "pe", "calibration")
    if not (space.pe or "").isdecimal():
        raise InputError("layouts take one number of PEs", where="--pe", advice="such as 1024")
    fit(
        model=model,
        pe=int(space.pe or 0),
        system=system,
        global_batch=global_batch,
        sequence=sequence,
        by="time",
        tokens=tokens,
        price=_read_price(price),
        calibration=space.calibration,
        every=every,
        form=form,
    )


def provision_layouts(
    space: SpaceOptions,
    sequence: int,
    global_batch: int | None,
    deadline: str | None,
    tokens: float | None,
    price: list[str] | None,
    every: bool,
    form: Form,
) -> None:
    """Print the fastest layouts of 1, 2, 4 ... PEs, until one meets the deadline."""
    model, system = _read_subject(space)
    if deadline is None or tokens is None:
        missing = "--deadline" if deadline is None else "--tokens"
        raise InputError("layouts need it", where=missing, advice="such as '60 d', 15e12")
    check_names({"model": model, "system": system}, several=False)
    from sweep.questions.layout_scaling import list_layout_provisions
    from sweep.show.fit import show_layout_provisions

    rows = list_layout_provisions(
        model,
        deadline,
        tokens,
        system=system,
        global_batch=global_batch,
        length=sequence,
        price=_read_price(price),
    )
    show_layout_provisions(rows, form, every)
    if not rows[-1]["meets"]:
        end("no layout meets the deadline on these PEs", NOTHING_FEASIBLE)


def limit_layouts(
    space: SpaceOptions,
    sequence: int,
    global_batch: int | None,
    efficiency: float,
    every: bool,
    form: Form,
) -> None:
    """Print the fastest layouts of 1, 2, 4 ... PEs, and what they wait for."""
    model, system = _read_subject(space)
    check_names({"model": model, "system": system}, several=False)
    from sweep.questions.layout_scaling import list_layout_limits
    from sweep.show.fit import show_layout_limits

    rows = list_layout_limits(
        model, efficiency, system=system, global_batch=global_batch, length=sequence
    )
    show_layout_limits(rows, form, every)
    if all(row["layout"] is None for row in rows):
        end("no layout fits on this system", NOTHING_FEASIBLE)


def refuse_with_sequence(options: Mapping[str, object]) -> None:
    """InputError: one of these options is given, which are none of a question about layouts."""
    _refuse_given(options, "cannot be combined with --sequence", "leave it out")


def refuse_without_sequence(options: Mapping[str, object]) -> None:
    """InputError: one of these options is given, which only questions about layouts have."""
    _refuse_given(options, "is an option of layouts", "give --sequence, too")


def _refuse_given(options: Mapping[str, object], why: str, advice: str) -> None:
    for name, value in options.items():
        if value is not None:
            raise InputError(why, where=f"--{name}", advice=advice)


def _read_subject(space: SpaceOptions, *more: str) -> tuple[str, str]:
    """A model and a system; InputError: no model, other options of a design space but `more`."""
    if space.model is None:
        raise InputError("layouts are those of a model", where="--model", advice="give one")
    given = [name for name, value in vars(space).items() if value not in (None, False, [])]
    options = {"parameters": "set", "selection": "sel"}
    refuse_with_sequence(
        {
            options.get(name, name.replace("_", "-")): name
            for name in given
            if name not in ("model", "system", "quiet", *more)
        }
    )
    return space.model, space.system or SYSTEM


def _read_price(texts: list[str] | None) -> float | None:
    """The price of a PE-hour; InputError: several."""
    price = parse_price(texts)
    if not isinstance(price, float | None):
        raise InputError("layouts take one price", where="--price", advice="write it like 2.5")
    return price
