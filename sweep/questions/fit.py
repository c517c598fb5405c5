"""Fit: which layouts of a transformer fit in memory, by part, before anything is launched."""

from collections.abc import Iterable
from dataclasses import fields
from functools import cached_property
from math import gcd
from pathlib import Path
from typing import Literal

import numpy as np

from grids.entries.datasets import LENGTH
from grids.entries.parameters import PARAMETERS
from grids.entries.systems import System
from grids.library import find
from grids.models.transformers import read_transformer
from grids.reading.errors import InputError, shorten
from kernels.layouts.enumerate import (
    enumerate_layouts,
    find_marks,
    find_reasons,
    find_repeated,
    list_divisors,
)
from kernels.layouts.memory import measure_memory
from kernels.layouts.schedules import INTERLEAVES, PLAIN
from kernels.layouts.transformer import (
    RECIPES,
    RECOMPUTE,
    Column,
    Layouts,
    Training,
    Transformer,
)
from sweep.answers.types.fitting import FitAnswer, LayoutRow, LoserRow

LEAST_BATCH = 1024  # sequences: about what GPT-3 and Llama 2 were trained with
MOST_BATCH, MOST_LENGTH = 2**20, 2**24
CHUNKS = (1, 2, 4)
# What a micro-batch, ... may be instead, for a layout that does not fit.
CHANGES = {
    "micro": "a smaller micro-batch",
    "recompute": "more recomputation",
    "zero": "a higher ZeRO stage",
    "sequence": "sequence parallelism",
    "chunks": "fewer chunks",
}


def fit(
    model: str,
    pe: int,
    *,
    system: str = "dgx-h100",
    global_batch: int | None = None,
    length: int | None = None,
    precision: str = "bf16",
    attention: Literal["fused", "unfused"] = "fused",
    schedule: str = INTERLEAVES,
) -> FitAnswer:
    """Which layouts of a transformer on so many PEs fit, at their largest micro-batch.

    global_batch: sequences of an iteration; None: the least multiple of `pe` from 1,024 on.
    length: tokens of a sequence; None: 2,048, or all that the model knows, if fewer. precision: a
    recipe of bytes a parameter. attention: unfused keeps scores in memory. schedule: of pipelines;
    1f1b may have several chunks a stage, which are interleaved.
    InputError: bad input, a network that is no decoder.
    """
    machine, network = find("system", system, Path()), find("model", model, Path())
    net = read_transformer(network)
    _expect_count("pe", pe, machine.most_pes)
    batch = pe * -(-LEAST_BATCH // pe) if global_batch is None else global_batch
    length = min(LENGTH, net.longest or LENGTH) if length is None else length
    _expect_count("global_batch", batch, MOST_BATCH)
    _expect_count("sequence", length, MOST_LENGTH)
    if precision not in RECIPES:
        raise InputError.unknown("precision", precision, RECIPES)
    if schedule not in PLAIN:
        raise InputError.unknown("schedule", schedule, PLAIN)
    training = Training(
        batch,
        length,
        precision,
        schedule,
        fused_attention=attention == "fused",
        reserved=_find_reserved(machine),
    )
    candidates = list_candidates(net, pe, training)
    return {
        "model": network.name,
        "system": machine.name,
        "pe": pe,
        "global_batch": batch,
        "length": length,
        "precision": precision,
        "attention": attention,
        "schedule": schedule,
        "parameters": net.parameters,
        "capacity": machine.pe.memory_capacity,
        **_Answer(net, candidates, training, machine).describe(),  # type: ignore[typeddict-item]
    }


def _expect_count(name: str, value: int, most: int) -> None:
    """InputError: a count out of bounds."""
    if not 1 <= value <= most:
        raise InputError(f"expected 1 to {most:,}, got {shorten(value)}", where=name)


def _find_reserved(machine: System) -> float:
    """Memory of a PE that no tensor has [B], as the machine oracle has it."""
    prior = PARAMETERS["reserved"].prior
    assert prior
    return prior.median[machine.precision]


def list_candidates(net: Transformer, pe: int, training: Training) -> Layouts:
    """The layouts that are looked at: none is another one again."""
    # Fused attention keeps no scores that it would help to compute again.
    modules = () if training.fused_attention else ("core_attn",)
    layouts = enumerate_layouts(
        pe,
        expert=[each for each in list_divisors(gcd(pe, *net.experts))] if net.experts else (1,),
        chunks=CHUNKS if training.schedule == INTERLEAVES else (1,),
        micro=[1 << bit for bit in range(training.batch.bit_length())],
        recompute=[0, *(RECOMPUTE[name] for name in (*modules, "blocks"))],
        zero=range(4),
    )
    # Nobody asks for a larger micro-batch than a replica's part of the batch, nor for more parts of
    # experts than there are ranks.
    sensible = layouts.micro * layouts.data <= training.batch
    sensible &= layouts.shards % layouts.expert == 0
    return layouts.select(sensible & ~find_repeated(layouts))


class _Answer:
    """The candidates, what forbids each, and the memory of those that divide."""

    def __init__(
        self, net: Transformer, layouts: Layouts, training: Training, machine: System
    ) -> None:
        self._net, self._layouts, self._training = net, layouts, training
        self._reasons = find_reasons(net, layouts, training)
        self._marks = find_marks(net, layouts, training, machine.pes_per_node)
        self._capacity = machine.pe.memory_capacity
        self._divides = np.flatnonzero(sum(self._reasons.values()) == 0)
        self._parts, self._stages = measure_memory(net, layouts.select(self._divides), training)
        self._memory: Column = np.full(len(layouts), np.nan)
        self._memory[self._divides] = sum(self._parts.values())
        self._reasons["memory"] = self._memory > self._capacity
        self._fits = self._memory <= self._capacity

    def describe(self) -> dict[str, object]:
        """The fields of the answer that follow from candidates."""
        rows = self._order(self._find_largest(np.flatnonzero(self._fits)))
        smallest = self._divides[np.argsort(self._memory[self._divides], kind="stable")[:1]]
        return {
            "candidates": len(self._layouts),
            "fitting": int(self._fits.sum()),
            "feasible": bool(self._fits.any()),
            "smallest": next((self._describe_row(row) for row in smallest), None),
            "layouts": [self._describe_row(row) for row in rows],
            "losers": self._list_losers(),
        }

    def _find_largest(self, rows: Column) -> Column:
        """Of rows that differ in their micro-batch alone the largest one.

        One with fewer remarks goes ahead: larger micro-batches may starve a pipeline.
        """
        ordered = rows[np.lexsort((-self._layouts.micro[rows], self._count_marks(rows)))]
        _, first = np.unique(self._number("micro")[ordered], return_index=True)
        return ordered[first]

    @cached_property
    def _places(self) -> dict[str, Column]:
        """The place of each layout's value among those of its column."""
        return {
            each.name: np.unique(getattr(self._layouts, each.name), return_inverse=True)[1]
            for each in fields(Layouts)
        }

    def _number(self, left_out: str) -> Column:
        """A number for each layout, the same where all but one column are."""
        columns = [column for name, column in self._places.items() if name != left_out]
        sizes = [int(column.max(initial=0)) + 1 for column in columns]
        return np.ravel_multi_index(tuple(columns), tuple(sizes))

    def _order(self, rows: Column) -> Column:
        """The rows, those without remarks first, then the least divided, then least recomputed."""
        some = self._layouts.select(rows)
        divided = some.tensor * some.context * some.pipeline
        keys = (self._memory[rows], some.zero, some.recompute, some.expert, divided)
        return rows[np.lexsort((*keys, self._count_marks(rows)))]

    def _count_marks(self, rows: Column) -> Column:
        return np.asarray(np.sum([mask[rows] for mask in self._marks.values()], axis=0))

    def _describe_row(self, row: int) -> LayoutRow:
        layouts, place = self._layouts, int(np.searchsorted(self._divides, row))
        degrees = {each.name: int(getattr(layouts, each.name)[row]) for each in fields(Layouts)}
        recompute, sequence = name_recompute(degrees.pop("recompute")), degrees.pop("sequence")
        return {
            "layout": write_layout(degrees, recompute, bool(sequence)),
            **degrees,  # type: ignore[typeddict-item]
            "recompute": recompute,
            "sequence": bool(sequence),
            "memory": float(self._memory[row]),
            "capacity_used": float(self._memory[row] / self._capacity),
            "memory_parts": {name: float(part[place]) for name, part in self._parts.items()},
            "stage": int(self._stages[place]),
            "remarks": [name for name, mask in self._marks.items() if mask[row]],
        }

    def _list_losers(self) -> list[LoserRow]:
        """The reasons that forbid any candidate, the most frequent first."""
        number = sum(mask.astype(int) for mask in self._reasons.values())
        rows: list[LoserRow] = [
            {
                "reason": reason,
                "layouts": int(mask.sum()),
                "alone": int((mask & (number == 1)).sum()),
                "remedy": self._find_remedy(reason),
            }
            for reason, mask in self._reasons.items()
            if mask.any()
        ]
        return sorted(rows, key=lambda row: -row["layouts"])

    def _find_remedy(self, reason: str) -> str:
        if reason == "memory":
            return self._remedy_memory()
        net, length = self._net, self._training.length
        return {
            "heads": f"a tensor degree that divides {_join(net.heads)} heads",
            "kv_heads": f"a tensor degree that divides, or is a multiple of, {_join(net.kv_heads)}",
            "hidden": f"a tensor degree that divides {net.hidden} features",
            "ffn": "a tensor degree that divides the width of MLPs and experts",
            "batch": "a global batch that data x micro-batch divides",
            "interleaving": "micro-batches that are a multiple of the stages",
            "sequence": f"a context degree whose double divides {length:,} tokens",
            "context_heads": "tensor x context that divides the heads",
            "sequence_parallel": "a length over context that the tensor degree divides",
            "experts": f"an expert degree that divides {_join(net.experts)} experts",
            "experts_need_sequence": "sequence parallelism",
            "more_stages_than_blocks": f"at most {net.blocks} chunks of all stages",
        }[reason]

    def _remedy_memory(self) -> str:
        """By which one change how many of those that are too large would fit."""
        large, changes = self._reasons["memory"], []
        for name, change in CHANGES.items():
            numbers = self._number(name)
            helped = np.isin(numbers[large], numbers[self._fits]).sum()
            if helped:
                changes.append(f"{change} ({helped:,})")
        if changes:
            return "; ".join(changes)
        least = self._memory[large].min()
        return f"more PEs, or PEs of at least {least / 1e9:,.1f} GB"


def _join(numbers: Iterable[int]) -> str:
    return " and ".join(map(str, numbers))


def name_recompute(bits: int) -> str:
    """What is computed again, its modules joined by +."""
    return "+".join(name for name, bit in RECOMPUTE.items() if bits & bit) or "none"


def write_layout(degrees: dict[str, int], recompute: str, sequence: bool) -> str:
    """A layout in short, such as `tp8 pp4 dp32 mb1 zero1 recompute=core_attn`.

    Context, expert, chunks and ZeRO stand where they are more than their least.
    """
    names = {
        **{"tp": "tensor", "cp": "context", "ep": "expert", "pp": "pipeline"},
        **{"v": "chunks", "dp": "data", "mb": "micro", "zero": "zero"},
    }
    optional = {"cp": 1, "ep": 1, "v": 1, "zero": 0}
    words = [
        f"{short}{degrees[name]}"
        for short, name in names.items()
        if degrees[name] != optional.get(short)
    ]
    words += ["sp"] if sequence else []
    return " ".join([*words, f"recompute={recompute}"] if recompute != "none" else words)
