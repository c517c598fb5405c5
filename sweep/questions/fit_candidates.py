"""Candidate layouts of `fit`: which fit at what micro-batch, their times, and what stops others."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.special import ndtr

from paradl.grids.entries.calibration import LayoutTime
from paradl.grids.entries.systems import System
from paradl.grids.entries.transformer_rates import (
    RIVAL_SPREAD,
    describe_times,
)
from paradl.grids.inputs.blocks import BlockTraining
from paradl.grids.inputs.draws import DRAWS
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.inputs.values import RowValues, Settings
from paradl.kernels.columns import Column
from paradl.kernels.names.parallelisms import LAYOUT_DEGREES, RECOMPUTE
from paradl.kernels.names.stored import PERCENTILES
from paradl.kernels.oracle.answer import answer_case
from paradl.kernels.oracle.block_times import TERMS, count_model_flops, count_recomputed_flops
from paradl.kernels.oracle.blocks import add_seconds, time_layouts, total_exchanges
from paradl.kernels.parallelism.layout import find_marks, list_rules
from paradl.kernels.search.candidates import LayoutProduct
from paradl.kernels.search.search import FITS, LARGE, BlockResult, Ranked, Search
from paradl.kernels.search.stacks import STACKS, find_unsupported
from paradl.kernels.work.block_memory import measure_bucket, measure_memory
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Transformer
from paradl.sweep.answers.objectives import count_hours
from paradl.sweep.answers.types.fitting import TIGHT, UNSUPPORTED, LayoutRow, LoserRow, TimeParts
from paradl.sweep.cases.layout_words import list_layouts, name_recompute, write_layout
from paradl.sweep.engine.resources import cores

Row = dict[str, int]  # columns of a layout by name

# Changes that might let a layout fit, and the columns that each changes. A larger degree takes its
# PEs from data parallelism.
CHANGES: dict[str, tuple[str, ...]] = {
    "smaller micro-batch": ("micro",),
    "higher ZeRO stage": ("zero",),
    "sequence parallelism": ("sequence",),
    "fewer chunks": ("chunks",),
    "other expert tensor": ("expert_tensor",),
    **{f"more {name}": (name, "data") for name in LAYOUT_DEGREES},
    "more pipeline": ("pipeline", "chunks", "data"),  # stages have chunks of their own
}
SHOWN_CHANGES = 2  # a terminal has no room for more
# Share of the capacity from which what is not counted may be too much: of a 70B recipe at 97 %, 30
# to 60 % of the runs ran out of memory (Megatron-Bridge, pull request 3107).
FULL = 0.9


@dataclass(frozen=True)
class Target:
    """Tokens to train on, and the price of a PE-hour; None: not asked for."""

    tokens: float | None = None
    price: float | None = None


class LayoutTimes:
    """Times of layouts on a machine.

    precision: a recipe of bytes per parameter. calibrated: times fitted to runs of layouts.
    InputError: the machine has no peak for the precision.
    """

    def __init__(
        self,
        net: Transformer,
        training: Training,
        machine: Machine,
        precision: str,
        target: Target,
        calibrated: LayoutTime | None = None,
    ) -> None:
        self._net, self._training, self._target = net, training, target
        self._basis = machine.system, precision, net.family, calibrated
        # Cells have batch and reserved memory of their own.
        of_cells = replace(training, batch=0, reserved=0.0)
        stack = Stack(machine, precision, calibrated)
        self._blocks = BlockTraining(net, of_cells, stack, training.batch)
        self.speeds = stack.find_speeds()

    def describe_basis(self) -> str:
        """Words on where times come from, and what their interval allows for."""
        return describe_times(*self._basis)

    def describe(self, layouts: Layouts) -> list[TimeParts]:
        """The time of each layout, and what follows from it."""
        asked = (self._net, layouts, self._training, *self.speeds)
        terms, totals = time_layouts(*asked), total_exchanges(*asked)
        rows = np.stack([*totals.values()], axis=1).tolist()
        exchanges = [dict(zip(totals, row, strict=True)) for row in rows]
        again = count_recomputed_flops(self._net, layouts, self._training).tolist()
        spreads = self._find_spreads(layouts).tolist()
        parts = zip(terms.T, layouts.pes.tolist(), again, exchanges, spreads, strict=True)
        return [self._describe(*part) for part in parts]

    def _find_spreads(self, layouts: Layouts) -> Column:
        """Spread of the logarithm of each layout's time [layouts]."""
        values = RowValues({"pe": layouts.pes, "batch": self._training.batch})
        settings = Settings({}, scaling="strong", oracle="machine", draws=DRAWS)
        case = self._blocks.make_case(layouts, values, settings)
        spread = answer_case(case).spread
        assert spread is not None  # it was asked for
        return np.broadcast_to(spread.total, len(layouts))

    def _describe(
        self,
        terms: Column,
        pes: int,
        again: float,
        exchanges: dict[str, float],
        spread: float,
    ) -> TimeParts:
        """Time of a layout. terms: seconds by TERMS. again: FLOPs of recomputing."""
        seconds = float(sum(add_seconds(terms)))
        by_term = dict(zip(TERMS, terms.tolist(), strict=True))
        low, high = (float(np.exp(PERCENTILES[n] * spread)) for n in (10, 90))
        tokens = self._training.batch * self._training.length / seconds
        flops = count_model_flops(self._net, self._training)
        peak = seconds * pes * float(self.speeds[0].peak)
        train_time = self._target.tokens and self._target.tokens / tokens
        hours = train_time and count_hours(pes, train_time)
        price = self._target.price
        return {
            "iteration_time": seconds,
            "iteration_time_p10": seconds * low,
            "iteration_time_p90": seconds * high,
            "tokens_per_second": tokens,
            "tokens_per_pe_second": tokens / pes,
            "mfu": flops / peak,
            "hfu": (flops + again) / peak,
            "train_time": train_time,
            "pe_hours": hours,
            "cost": None if price is None or hours is None else hours * price,
            "terms": by_term,
            "exchanges": exchanges,
            "bubble_share": by_term["pipeline_bubble"] / seconds,
        }


def compare(first: float, second: float) -> float:
    """Probability that the first layout takes less time; first, second: predicted seconds."""
    # Errors of two layouts are independent, so their variances add up.
    return float(ndtr(np.log(second / first) / (RIVAL_SPREAD * np.sqrt(2))))


class Candidates:
    """The layouts of a space that fit, the best first, and what stops the others.

    most: how many to list; None: all. front: those that none beats in both time and memory.
    headroom: share of each PE's memory to keep free.
    """

    def __init__(
        self,
        net: Transformer,
        space: LayoutProduct,
        training: Training,
        machine: System,
        times: LayoutTimes | None = None,
        most: int | None = None,
        *,
        front: bool = False,
        headroom: float = 0.0,
    ) -> None:
        self._net, self._training, self._machine, self._times = net, training, machine, times
        self._headroom = headroom
        self._stack = machine.software_facts.layouts.stack
        capacity = (1 - headroom) * machine.pe.memory_capacity
        self._search = Search(
            *(net, space, training, capacity, machine.pes_per_node),
            speeds=times.speeds if times else None,
            most=most,
            threads=cores(),
            front=front,
            stack=self._stack,
        )

    @cached_property
    def _found(self) -> BlockResult:
        return self._search.run()

    @cached_property
    def rows(self) -> list[LayoutRow]:
        """The layouts that fit, the best first; of ties in time and memory the simplest."""
        rows: dict[tuple[float | bool, ...], LayoutRow] = {}
        for number, row in enumerate(self._describe(self._found.best)):
            # Only times tell that two layouts do the same.
            key = (row["time"]["iteration_time"], row["memory"]) if row["time"] else (number,)
            key = (*key, UNSUPPORTED in row["remarks"])
            if key in rows:
                rows[key]["same"].append(row["layout"])
            else:
                rows[key] = row
        return [*rows.values()]

    def describe(self) -> dict[str, object]:
        """The fields of the answer that follow from candidates."""
        smallest = next(self._describe(self._found.smallest), None)
        seconds = [row["time"]["iteration_time"] for row in self.rows[:2] if row["time"]]
        # Outcome 0 is no candidate.
        counts = np.bincount(self._search.outcomes.ravel(), minlength=FITS + 1).tolist()
        return {
            "candidates": sum(counts[1:]),
            "fitting": counts[FITS],
            "ranked": self._search.count_ranked(),
            "feasible": counts[FITS] > 0,
            "smallest": smallest,
            "faster_than_next": compare(*seconds) if len(seconds) == 2 else None,
            "layouts": self.rows,
            "losers": self._list_losers(counts[LARGE]),
        }

    def list_changes(self) -> list[LayoutRow]:
        """Layouts that fit after one or two changes; larger micro-batches for one that fits."""
        asked = self._search.space.layouts
        for layouts in _change(asked, self._training, bool(self.rows)):
            # A higher stage of ZeRO helps only where its temporaries fit as well.
            bucket = measure_bucket(self._net, layouts, self._training) * (
                layouts.zero > asked.zero
            )
            helps = self._search.measure(layouts) + bucket <= self._search.capacity
            space = LayoutProduct.from_list(layouts.select(helps))
            changed = Candidates(
                *(self._net, space, self._training, self._machine, self._times),
                headroom=self._headroom,
            )
            if changed.rows:
                return changed.rows
        return []

    def _describe(self, found: Ranked) -> Iterator[LayoutRow]:
        """Rows of layouts, in their order."""
        layouts = found.layouts
        parts, stages = measure_memory(self._net, layouts, self._training)
        marks = find_marks(self._net, layouts, self._training, self._machine.pes_per_node)
        refused = {
            stack: find_unsupported(stack, self._net, layouts, self._training) for stack in STACKS
        }
        none = np.zeros(len(layouts), bool)
        marks[UNSUPPORTED] = refused[self._stack] if self._stack else none
        fits = found.memory <= self._search.capacity
        used = found.memory / self._machine.pe.memory_capacity
        marks[TIGHT] = fits & (used >= FULL)
        # Columns have 0 for the usual numbers; rows state them.
        resolved = {"expert_tensor": layouts.etp, "group": layouts.passes, "shard": layouts.shards}
        times = self._times.describe(layouts) if self._times else [None] * len(layouts)
        for row, columns in enumerate(list_layouts(layouts)):
            yield {
                "layout": write_layout(columns),
                **columns,  # type: ignore[typeddict-item]
                **{name: int(column[row]) for name, column in resolved.items()},
                "recompute": name_recompute(columns["recompute"]),
                "sequence": columns["sequence"] > 0,
                "memory": float(found.memory[row]),
                "capacity_used": float(used[row]),
                "fits": bool(fits[row]),
                "memory_parts": {name: float(part[row]) for name, part in parts.items()},
                "stage": int(stages[row]),
                "remarks": [name for name, mask in marks.items() if mask[row]],
                "runs_with": [name for name, mask in refused.items() if not mask[row]],
                "same": [],
                "time": times[row],
            }

    def _list_losers(self, large: int) -> list[LoserRow]:
        """The reasons that forbid any candidate, the most frequent first."""
        # Remedies are the same for all layouts.
        rules = list_rules(self._net, self._found.smallest.layouts, self._training)
        rows: list[LoserRow] = [
            {
                "reason": reason,
                "layouts": count,
                "alone": self._found.alone[reason],
                "remedy": rules[reason].remedy,
            }
            for reason, count in self._found.reasons.items()
            if count
        ]
        if large:
            remedy = self._remedy_memory()
            rows.append({"reason": "memory", "layouts": large, "alone": large, "remedy": remedy})
        return sorted(rows, key=lambda row: -row["layouts"])

    def _remedy_memory(self) -> str:
        """Changes that let layouts fit, and how many each; else the memory that one needs."""
        counts: dict[str, int] = {}
        # A list of layouts has no neighbours that could be counted.
        if self._search.space.is_product:
            counts = {name: self._search.count_helped(*of) for name, of in CHANGES.items()}
            again = self._search.count_recomputing()
            counts |= {f"recompute={name_recompute(bits)}": n for bits, n in again.items()}
        ordered = sorted(counts.items(), key=lambda change: -change[1])
        changes = [f"{change} ({helped:,})" for change, helped in ordered if helped]
        if changes:
            return ", ".join(changes[:SHOWN_CHANGES])
        needed = self._found.least_large / (1 - self._headroom)
        return f"more PEs, or PEs of at least {needed / 1e9:,.1f} GB"


def _change(layout: Layouts, training: Training, fits: bool) -> Iterator[Layouts]:
    """Yield layouts with one change, then with two; if the layout fits, larger micro-batches."""
    (columns,) = list_layouts(layout)
    if fits:
        # Larger micro-batches, up to a replica's part of the batch.
        most = training.batch // (columns["data"] * columns["micro"])
        sizes = (columns["micro"] << bit for bit in range(1, most.bit_length()))
        yield Layouts.from_names(columns | {"micro": size} for size in sizes)
        return
    changed = [columns | change for change in _lessen(columns, training)]
    yield Layouts.from_names(changed)
    again = (first | change for first in changed for change in _lessen(first, training))
    yield Layouts.from_names(again)


def _lessen(columns: Row, training: Training) -> Iterator[Row]:
    """Yield single changes that take less memory."""
    micro = columns["micro"]
    yield from ({"micro": micro >> bit} for bit in range(1, micro.bit_length()))
    modules = ("blocks",) if training.fused_attention else ("core_attn", "blocks")
    yield from ({"recompute": columns["recompute"] | RECOMPUTE[name]} for name in modules)
    # ZeRO shares states among the PEs that have the same weights.
    if columns["data"] * columns["context"] > 1:
        yield from ({"zero": stage} for stage in range(columns["zero"] + 1, 4))
    if columns["tensor"] > 1 and not columns["sequence"]:
        yield {"sequence": 1}
    if columns["chunks"] > 1:
        # Groups are those of interleaved chunks, of which there are then none.
        yield {"chunks": 1, "group": 0}
    # The number of PEs stays: to divide the model further halves the replicas.
    if columns["data"] % 2 == 0:
        for name in LAYOUT_DEGREES:
            yield {name: 2 * columns[name], "data": columns["data"] // 2}
