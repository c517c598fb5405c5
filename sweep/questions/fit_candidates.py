"""Candidate layouts of `fit`: which of them fit, at what micro-batch, and what stops the others."""

from functools import cached_property

import numpy as np

from grids.entries.systems import System
from kernels.layouts.columns import Column
from kernels.layouts.enumerate import find_marks, find_reasons
from kernels.layouts.memory import measure_memory
from kernels.layouts.time import TERMS
from kernels.layouts.transformer import COLUMNS, Layouts, Training, Transformer
from sweep.answers.types.fitting import LayoutRow, LoserRow, TimeParts
from sweep.cases.layout_reasons import find_remedy
from sweep.cases.layout_words import list_layouts, name_recompute, write_layout
from sweep.questions.fit_changes import list_changes
from sweep.questions.layout_times import LayoutTimes, compare

# What a micro-batch, ... may be instead, for a layout that does not fit.
CHANGES: dict[str, tuple[str, ...]] = {
    "a smaller micro-batch": ("micro",),
    "a higher ZeRO stage": ("zero",),
    "sequence parallelism": ("sequence",),
    "fewer chunks": ("chunks",),
    "another expert tensor degree": ("expert_tensor",),
    "tensor in the place of data": ("tensor", "data"),
    "pipeline in the place of data": ("pipeline", "data"),
    "context in the place of data": ("context", "data"),
}


class Candidates:
    """The candidates, what forbids each, and the memory of those that divide."""

    def __init__(
        self,
        net: Transformer,
        layouts: Layouts,
        training: Training,
        machine: System,
        times: LayoutTimes | None = None,
    ) -> None:
        self._net, self._layouts, self._training = net, layouts, training
        self._machine, self._times = machine, times
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
        rows = self._rank(np.flatnonzero(self._fits))
        smallest = self._divides[np.argsort(self._memory[self._divides], kind="stable")[:1]]
        return {
            "candidates": len(self._layouts),
            "fitting": int(self._fits.sum()),
            "feasible": bool(self._fits.any()),
            "smallest": next((self._describe_row(row) for row in smallest), None),
            "faster_than_next": self._compare(rows[:2]),
            "layouts": [self._describe_row(row) for row in rows],
            "losers": self._list_losers(),
        }

    def list_changes(self) -> list[LayoutRow]:
        """What a change of a layout, or two, lets fit; of one that fits larger micro-batches."""
        for layouts in list_changes(self._layouts, self._training, bool(self._fits[0])):
            changed = Candidates(self._net, layouts, self._training, self._machine, self._times)
            rows = changed._rank(np.flatnonzero(changed._fits))
            if len(rows):
                return [changed._describe_row(row) for row in rows]
        return []

    def _rank(self, rows: Column) -> Column:
        """The layouts to show, of each its largest micro-batch; by time its fastest."""
        if self._times is None:
            return self._order(self._find_largest(rows))
        ordered = rows[np.argsort(self._seconds[:, rows].sum(axis=0), kind="stable")]
        _, first = np.unique(self._number("micro")[ordered], return_index=True)
        return ordered[np.sort(first)]

    @cached_property
    def _seconds(self) -> Column:
        """Seconds of an iteration of what fits [terms, layouts]."""
        rows = np.flatnonzero(self._fits)
        seconds = np.full((len(TERMS), len(self._layouts)), np.nan)
        if self._times:
            seconds[:, rows] = self._times.time(self._layouts.select(rows))
        return seconds

    def _describe_time(self, row: int) -> TimeParts | None:
        """The time of a layout, if it is asked for and fits."""
        if self._times is None or not self._fits[row]:
            return None
        return self._times.describe(self._layouts.select(np.array([row])), self._seconds[:, row])

    def _compare(self, rows: Column) -> float | None:
        """The probability that the first of two layouts takes less time, if times are asked for."""
        if self._times is None or len(rows) < 2:
            return None
        return compare(*self._seconds[:, rows].sum(axis=0))

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
            name: np.unique(getattr(self._layouts, name), return_inverse=True)[1]
            for name in COLUMNS
        }

    def _number(self, *left_out: str) -> Column:
        """A number for each layout, the same where all but some columns are."""
        columns = [column for name, column in self._places.items() if name not in left_out]
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
        layout, place = (
            self._layouts.select(np.array([row])),
            int(np.searchsorted(self._divides, row)),
        )
        (columns,) = list_layouts(layout)
        resolved = {"expert_tensor": layout.etp, "group": layout.passes, "shard": layout.shards}
        degrees = columns | {name: int(column[0]) for name, column in resolved.items()}
        return {
            "layout": write_layout(columns),
            **degrees,  # type: ignore[typeddict-item]
            "recompute": name_recompute(columns["recompute"]),
            "sequence": columns["sequence"] > 0,
            "memory": float(self._memory[row]),
            "capacity_used": float(self._memory[row] / self._capacity),
            "memory_parts": {name: float(part[place]) for name, part in self._parts.items()},
            "stage": int(self._stages[place]),
            "remarks": [name for name, mask in self._marks.items() if mask[row]],
            "time": self._describe_time(row),
        }

    def _list_losers(self) -> list[LoserRow]:
        """The reasons that forbid any candidate, the most frequent first."""
        number = sum(mask.astype(int) for mask in self._reasons.values())
        rows: list[LoserRow] = [
            {
                "reason": reason,
                "layouts": int(mask.sum()),
                "alone": int((mask & (number == 1)).sum()),
                "remedy": self._remedy_memory()
                if reason == "memory"
                else find_remedy(reason, self._net, self._training),
            }
            for reason, mask in self._reasons.items()
            if mask.any()
        ]
        return sorted(rows, key=lambda row: -row["layouts"])

    def _remedy_memory(self) -> str:
        """By which one change how many of those that are too large would fit."""
        counts = {name: self._count_helped(self._fits, *left) for name, left in CHANGES.items()}
        for bits in np.unique(self._layouts.recompute[self._fits]).tolist():
            again = self._fits & (self._layouts.recompute == bits)
            counts[f"recompute={name_recompute(bits)}"] = self._count_helped(again, "recompute")
        ordered = sorted(counts.items(), key=lambda change: -change[1])
        changes = [f"{change} ({helped:,})" for change, helped in ordered if helped]
        if changes:
            return "; ".join(changes)
        least = self._memory[self._reasons["memory"]].min()
        return f"more PEs, or PEs of at least {least / 1e9:,.1f} GB"

    def _count_helped(self, fits: Column, *left_out: str) -> int:
        """How many that are too large would fit with other values of some columns."""
        numbers = self._number(*left_out)
        return int(np.isin(numbers[self._reasons["memory"]], numbers[fits]).sum())
