"""Fit: which layouts of a transformer fit in memory, by part, before anything is launched."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Literal

import numpy as np

from paradl.grids.entries.calibration import CalibrationFile
from paradl.grids.entries.datasets import LENGTH
from paradl.grids.entries.precision import RECIPES
from paradl.grids.entries.software import Loss
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import OF_PRECISION, find_peaks, find_usual_recipe
from paradl.grids.inputs.blocks import keep_logits
from paradl.grids.inputs.machine import Machine
from paradl.grids.library import find, look_up_calibrations
from paradl.grids.models.transformers import read_transformer
from paradl.grids.reading.errors import InputError, add_place, format_count, shorten
from paradl.grids.reading.units import parse_count, parse_quantity
from paradl.kernels.names.recipes import Recipe
from paradl.kernels.parallelism.alignment import count_ranks_in_node
from paradl.kernels.parallelism.layout import explain_broken
from paradl.kernels.search.candidates import LayoutProduct, make_space
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.schedules import INTERLEAVES, PLAIN
from paradl.kernels.work.transformer import Training, Transformer
from paradl.sweep.answers.types.fitting import FitAnswer
from paradl.sweep.cases.layout_words import parse_layout, parse_recompute
from paradl.sweep.explanation.block_memory import explain_memory
from paradl.sweep.explanation.launch_lines import write_launch
from paradl.sweep.explanation.launch_run import LayoutRun
from paradl.sweep.questions.fit_candidates import Candidates, LayoutTimes, Target

LEAST_BATCH = 1024  # sequences: about what GPT-3 and Llama 2 were trained with
MOST_LISTED = 1000  # layouts of an answer: a search keeps no more
MOST_BATCH, MOST_LENGTH = 2**20, 2**24


def fit(
    model: str,
    pe: int | str,
    *,
    system: str = "dgx-h100",
    global_batch: int | str | None = None,
    length: int | str | None = None,
    precision: str | None = None,
    attention: Literal["fused", "unfused"] = "fused",
    loss: Loss | None = None,
    schedule: str = INTERLEAVES,
    context: Literal["ring", "all_gather", "all_to_all"] = "ring",
    recompute: Sequence[str] | None = None,
    shard: int | Literal["node"] | None = None,
    group: int | None = None,
    layout: str | None = None,
    by: Literal["division", "time"] = "division",
    tokens: float | str | None = None,
    price: float | None = None,
    launch: str | None = None,
    most: int | None = MOST_LISTED,
    calibration: str | None = None,
    front: bool = False,
    headroom: float | str | None = None,
) -> FitAnswer:
    """Layouts of a transformer on `pe` PEs that fit in memory, at their largest micro-batch.

    global_batch: sequences per iteration; None: the least multiple of `pe` from 1,024 on. length:
    tokens per sequence; None: 2,048, or the longest that the model was trained for, if shorter.
    precision: name of a recipe of bytes per parameter; None: the system's precision if it is
    narrow, else bf16 where it has it. attention: unfused keeps scores in memory. loss: plain is
    PyTorch's cross_entropy, with 14 bytes per logit; chunked has an eighth of the logits at a time,
    fused none; whole keeps them in fp32 alone, as Megatron-LM does; None: as the software does.
    schedule: of pipelines; 1f1b may have several interleaved chunks per stage. group: consecutive
    micro-batches per chunk; None: the number of stages. context: how the PEs that share a sequence
    exchange keys and values. recompute: sets of modules, each joined by commas; None: none, blocks,
    and core_attn where scores are kept. shard: ranks that ZeRO divides over; None: all. layout: the
    only candidate; its memory is explained. by: the quantity that ranks layouts; time: predicted
    seconds per iteration, with each layout at its fastest micro-batch. tokens, price, calibration:
    need times; tokens to train on, the price of a PE-hour, and a fit to runs; None: auto. launch: a
    framework to write launch lines for, of the first layout that fits. most: layouts to list; None:
    all. front: list only layouts that no other beats in both time and memory. headroom: share of
    each PE's memory to keep free, as a number or a text such as 10%; None: 0. InputError: bad
    input, or a network without blocks.

    >>> import paradl
    >>> first = paradl.fit("llama2_70b", 64, system="dgx-h100", length=4096)["layouts"][0]
    >>> first["layout"], round(first["memory"] / 1e9, 1)
    ('tp1 pp1 dp64 mb8 zero3 recompute=blocks', 80.5)
    """
    machine, network = find("system", system, Path()), find("model", model, Path())
    # The samples for which the network's size is usually quoted.
    samples = getattr(network, "customary", None)
    net = read_transformer(network, find("dataset", samples, Path()) if samples else None)
    pe = _expect_count("pe", pe, machine.most_pes)
    # A multiple of the PEs, so that any number of replicas divides it.
    batch = pe * -(-LEAST_BATCH // pe) if global_batch is None else global_batch
    batch = _expect_count("global_batch", batch, MOST_BATCH)
    precision = precision or find_usual_recipe(machine)
    recipe = _find_recipe(machine, precision)
    loss = loss or machine.software_facts.layouts.loss
    training = Training(
        batch,
        _find_length(net, length),
        recipe,
        _expect_one("schedule", schedule, PLAIN),
        context,
        fused_attention=attention == "fused",
        reserved=Machine(machine).reserved,
    )
    training = keep_logits(training, loss)
    if layout is None:
        space = _make_space(net, pe, training, recompute, _read_group(group, schedule))
        space = _shard(space, shard, machine)
    else:
        if (recompute, shard, group) != (None, None, None):
            # Words of the layout say the same, and might disagree.
            raise InputError("recompute, shard and group stand in it", where="layout")
        space = LayoutProduct.from_list(parse_layout(layout, pe))
        _expect_divisible(net, space.layouts, training)
    target = _read_target(by, tokens, price)
    if calibration is not None and by != "time":
        raise InputError("a calibration moves times", where="calibration", advice="add --by time")
    times = None
    if by == "time":
        # A calibration is of one precision.
        usual = "auto" if precision == OF_PRECISION.get(machine.precision) else None
        file = _find_calibration(calibration or usual, machine)
        fitted = file.layouts if file else None
        rates = Machine(machine, file).move_priors(fitted), precision, target
        times = LayoutTimes(net, training, *rates, fitted)
    share = 0.0 if headroom is None else _read_headroom(headroom)
    answer = Candidates(net, space, training, machine, times, most, front=front, headroom=share)
    found: FitAnswer = {
        "model": network.name,
        "system": machine.name,
        "pe": pe,
        "global_batch": batch,
        "length": training.length,
        "precision": precision,
        "attention": attention,
        "loss": loss,
        "schedule": schedule,
        "context_by": context,
        "parameters": net.parameters,
        "capacity": machine.pe.memory_capacity,
        "headroom": share,
        "times": times.describe_basis() if times else None,
        **answer.describe(),  # type: ignore[typeddict-item]
        "parts": explain_memory(net, space.layouts, training) if layout else [],
        "changes": answer.list_changes() if layout else [],
        "launch": [],
    }
    if launch and found["layouts"]:
        run = LayoutRun(net, found["layouts"][0], training, precision, machine)
        found["launch"] = write_launch(launch, run)
    return found


def _find_calibration(calibration: str | None, machine: System) -> CalibrationFile | None:
    """Look up a calibration, named as in specs; None for none.

    InputError: it belongs to another machine, or a named file has no run of a layout.
    """
    if calibration is None:
        return None
    with add_place("calibration"):
        found = look_up_calibrations((calibration,), "machine", (machine,), Path())
    file = found.get(machine.name)
    # A file that is named is meant to be used; auto takes what there is.
    if not (file and file.layouts) and calibration not in ("auto", "none"):
        raise InputError(
            f"{shorten(calibration)} was fitted to no run of a layout",
            where="calibration",
            advice="leave it out",
        )
    return file


def _read_target(by: str, tokens: float | str | None, price: float | None) -> Target:
    """Read tokens and price. InputError: not positive, or not asked with times."""
    tokens = None if tokens is None else parse_quantity(tokens, "amount", "tokens")
    given = {
        name: value for name, value in (("tokens", tokens), ("price", price)) if value is not None
    }
    for name, value in given.items():
        if by != "time":
            raise InputError("only times have it", where=name, advice="rank by time")
        if not 0 < value < inf:
            raise InputError(f"expected a positive number, got {value:g}", where=name)
    if price is not None and tokens is None:
        raise InputError("a price needs tokens to train on", where="price", advice="give tokens")
    return Target(tokens, price)


def _read_headroom(value: float | str) -> float:
    """Read a share of the memory. InputError: it is below 0, or all of it."""
    share = parse_quantity(value, "1", "headroom", example="10%")
    if not 0 <= share < 1:
        raise InputError(
            f"expected 0 to below 1, got {shorten(value)}",
            where="headroom",
            advice="write it like 0.1 or 10%",
        )
    return share


def _expect_count(name: str, value: int | str, most: int) -> int:
    """Return the count. InputError: it is none, or out of bounds."""
    count = parse_count(value, name)
    if not 1 <= count <= most:
        raise InputError(f"expected 1 to {most:,}, got {shorten(value)}", where=name)
    return count


def _expect_one(name: str, value: str, known: Iterable[str]) -> str:
    """Return the value. InputError: it is not among the known ones."""
    if value not in known:
        raise InputError.unknown(name, value, known)
    return value


def _find_recipe(machine: System, precision: str) -> Recipe:
    """Bytes per parameter in a precision. InputError: unknown, or PEs have no peak for it."""
    recipe = RECIPES[_expect_one("precision", precision, RECIPES)]
    find_peaks(machine, precision)  # refuses a missing peak
    return recipe


def _find_length(net: Transformer, length: int | str | None) -> int:
    """Tokens of a sequence; of images, as many as there are patches."""
    if not net.length:
        default = min(LENGTH, net.longest or LENGTH)
        return _expect_count("sequence", default if length is None else length, MOST_LENGTH)
    if length is not None and parse_count(length, "sequence") != net.length:
        raise InputError(f"expected {net.length}, as images have, got {length}", where="sequence")
    return net.length


def _make_space(
    net: Transformer, pe: int, training: Training, recompute: Sequence[str] | None, group: int
) -> LayoutProduct:
    """The candidates, without duplicates."""
    # Fused attention keeps no scores that it would help to compute again.
    usual = ("none", *(() if training.fused_attention else ("core_attn",)), "blocks")
    lists = {
        **({} if training.schedule == INTERLEAVES else {"chunks": (1,)}),
        "recompute": sorted({parse_recompute(text) for text in recompute or usual}),
        "group": (group,),
    }
    return make_space(net, pe, training.batch, lists)


def _read_group(group: int | None, schedule: str) -> int:
    """Read consecutive micro-batches per chunk; 0: as many as stages. InputError: no chunks."""
    if group is not None and schedule != INTERLEAVES:
        raise InputError(
            f"{schedule} has no chunks",
            where="group",
            advice=f"take {INTERLEAVES}, or leave it out",
        )
    return 0 if group is None else _expect_count("group", group, MOST_BATCH)


def _shard(
    space: LayoutProduct, ranks: int | Literal["node"] | None, machine: System
) -> LayoutProduct:
    """The layouts with ZeRO over `ranks` ranks, or over those of a node (HSDP)."""
    if ranks is None:
        return space
    layouts = space.layouts
    if ranks == "node":
        whole = layouts.data * layouts.context
        in_node = count_ranks_in_node(whole, layouts.tensor, machine.pes_per_node)
        return replace(space, layouts=layouts.shard_over(in_node))
    pes = int(layouts.pes.max())
    if pes % _expect_count("shard", ranks, MOST_BATCH):
        raise InputError(
            f"{ranks:,} ranks divide the replicas of no layout on {format_count(pes, 'PE')}",
            where="shard",
            advice="take a divisor, or node",
        )
    return replace(space, layouts=layouts.shard_over(np.array(ranks)))


def _expect_divisible(net: Transformer, layouts: Layouts, training: Training) -> None:
    """Raise InputError for a layout whose degrees do not divide the network or the batch."""
    if not net.experts and np.any(layouts.expert_tensor > 0):
        raise InputError("etp: the network has no experts", where="layout", advice="leave etp out")
    if broken := explain_broken(net, layouts, training):
        raise InputError("; ".join(broken), where="layout", advice=next(iter(broken.values())))
