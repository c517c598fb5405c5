"""The command about layouts that fit. As in `sweep.cli.main`, heavy imports are inside it."""

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

TokensOption = Annotated[
    float | None, typer.Option(help="Tokens to train on, such as 15e12: how long it takes.")
]
HourPriceOption = Annotated[float | None, typer.Option(help="Price of a PE-hour, with --tokens.")]


@app.command()
def fit(
    model: Model,
    pe: PEs,
    system: System = SYSTEM,
    global_batch: Annotated[
        int | None,
        typer.Option(help="Sequences of an iteration; default: a multiple of --pe from 1,024 on."),
    ] = None,
    sequence: Annotated[int | None, typer.Option(help="Tokens of a sequence.")] = None,
    precision: Annotated[
        Literal["bf16", "fp16", "fp32", "fp8", "mxfp8", "nvfp4", "zero"],
        typer.Option(help="Bytes a parameter, as Megatron has them; zero: as Rajbhandari 2020."),
    ] = "bf16",
    attention: Annotated[
        Literal["fused", "unfused"],
        typer.Option(help="Whether the kernel keeps no scores in memory (flash attention)."),
    ] = "fused",
    schedule: Annotated[
        Literal["1f1b", "gpipe", "zb1p", "zbv"],
        typer.Option(help="Of pipelines; 1f1b is interleaved where stages have several chunks."),
    ] = "1f1b",
    loss: Annotated[
        Literal["whole", "plain", "chunked", "fused"],
        typer.Option(
            help="Logits kept: all, as PyTorch's cross entropy does, an eighth at a time, or none."
        ),
    ] = "whole",
    context: Annotated[
        Literal["ring", "all_gather", "all_to_all"],
        typer.Option(help="How PEs that share a sequence exchange keys and values."),
    ] = "ring",
    recompute: Annotated[
        list[str] | None,
        typer.Option(help="Modules, such as core_attn,mlp; again for a further set of them."),
    ] = None,
    shard: Annotated[
        str | None, typer.Option(help="Ranks that ZeRO divides over, or node (HSDP); default: all.")
    ] = None,
    group: Annotated[
        int | None,
        typer.Option(help="Micro-batches in a row of a chunk; default: as many as stages."),
    ] = None,
    layout: Annotated[
        str | None,
        typer.Option(
            help="One alone, memory by part: 'tp8 pp4 dp2 mb1 zero1 recompute=core_attn'."
        ),
    ] = None,
    by: Annotated[
        Literal["division", "time"],
        typer.Option(help="Rank by how little is divided, or by the predicted time."),
    ] = "division",
    tokens: TokensOption = None,
    price: HourPriceOption = None,
    launch: Annotated[
        Literal["megatron", "torchtitan", "deepspeed", "torchrun"] | None,
        typer.Option(help="What to type into this stack, for the layout, or for the first one."),
    ] = None,
    every: All = False,
    form: Form = "table",
) -> None:
    """Which layouts of a transformer fit in memory, by part, and why others do not."""
    check_names({"model": model, "system": system}, several=False)
    from sweep.questions.fit import fit as ask
    from sweep.questions.fit import read_shard
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
    if space.model is None:
        raise InputError("layouts are those of a model", where="--model", advice="give one")
    if not (space.pe or "").isdecimal():
        raise InputError("layouts take one number of PEs", where="--pe", advice="such as 1024")
    given = [name for name, value in vars(space).items() if value not in (None, False, [])]
    for name in given:
        if name not in ("model", "system", "pe", "quiet"):
            option = f"--{name.replace('_', '-')}"
            raise InputError("layouts do not have it", where=option, advice="leave it out")
    prices = parse_price(price)
    if not isinstance(prices, float | None):
        raise InputError("layouts take one price", where="--price", advice="write it like 2.5")
    fit(
        model=space.model,
        pe=int(space.pe or 0),
        system=space.system or SYSTEM,
        global_batch=global_batch,
        sequence=sequence,
        by="time",
        tokens=tokens,
        price=prices,
        every=every,
        form=form,
    )
