"""Columns of candidate layouts."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from paradl.kernels.columns import Column
from paradl.kernels.names.parallelisms import LAYOUT_COLUMNS, LAYOUT_DEGREES

# In the order of rows.
COLUMNS = tuple(LAYOUT_COLUMNS)
ALL_COLUMNS = (*COLUMNS, "batch", "flushes")


@dataclass(frozen=True)
class Layouts:
    """Candidate layouts as columns of integers: [layouts] each, or arrays that broadcast.

    LAYOUT_COLUMNS describes them. PEs = tensor x context x pipeline x data. Experts divide tensor x
    context x data once more, into expert_tensor x expert x replicas. group: N of interleaving,
    consecutive micro-batches per chunk. A 0 means: tensor for expert_tensor, pipeline for group,
    data x context for shard. batch: B [sequences] if it differs between layouts. flushes: A, into
    which an iteration is cut, each filling and draining a pipeline; None: one.
    """

    tensor: Column
    context: Column
    pipeline: Column
    data: Column
    expert: Column
    chunks: Column
    micro: Column
    recompute: Column
    zero: Column
    sequence: Column
    expert_tensor: Column
    group: Column
    shard: Column
    batch: Column | None = None
    flushes: Column | None = None

    def __len__(self) -> int:
        return len(self.tensor)

    @classmethod
    def from_rows(cls, rows: Column) -> "Layouts":
        """Layouts from rows [layouts, columns]."""
        return cls(**dict(zip(COLUMNS, np.ascontiguousarray(rows.T), strict=True)))

    @classmethod
    def from_names(cls, rows: Iterable[Mapping[str, int]]) -> "Layouts":
        """Layouts from columns by name, with the usual numbers of the rest."""
        table = [
            [row.get(name, column.usual) for name, column in LAYOUT_COLUMNS.items()] for row in rows
        ]
        return cls.from_rows(np.array(table, int).reshape(-1, len(COLUMNS)))

    def to_names(self) -> list[dict[str, int]]:
        """The columns of each layout by name."""
        return [dict(zip(COLUMNS, row, strict=True)) for row in self.to_rows().tolist()]

    def to_rows(self) -> Column:
        """The columns as rows [layouts, columns]."""
        return np.stack([getattr(self, name) for name in COLUMNS], axis=1)

    def select(self, rows: Column) -> "Layouts":
        """Select layouts of a list, by mask or by row number."""
        return self.map_columns(lambda column: column[rows])

    def take(self, rows: Column) -> "Layouts":
        """Select positions along the last axis of a product."""
        length = self.shape[-1]
        # A column of length 1 along a longer axis has that value at every position.
        return self.map_columns(
            lambda column: column[..., rows] if column.shape[-1] == length else column
        )

    def list_rows(self, at: tuple[Column, ...]) -> "Layouts":
        """List the layouts at these positions along each axis of a product."""
        shape = self.shape
        return self.map_columns(lambda column: np.broadcast_to(column, shape)[at])

    def map_columns(self, change: Callable[[Column], Column]) -> "Layouts":
        """Apply a function to every column."""
        columns = ((name, getattr(self, name)) for name in ALL_COLUMNS)
        return replace(
            self, **{name: change(column) for name, column in columns if column is not None}
        )

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape that columns broadcast to."""
        return np.broadcast_shapes(*(getattr(self, name).shape for name in COLUMNS))

    @property
    def pes(self) -> Column:
        """n, PEs of each layout."""
        return self.replica * self.data

    @property
    def replica(self) -> Column:
        """PEs of a replica of the network."""
        sizes: Column = prod(getattr(self, name) for name in LAYOUT_DEGREES)
        return sizes

    @property
    def sigma(self) -> Column:
        """Ranks that share norms and dropout: t with sequence parallelism, else 1."""
        return np.where(self.sequence > 0, self.tensor, 1)

    @property
    def etp(self) -> Column:
        """Tensor-parallel degree of each expert."""
        return np.where(self.expert_tensor > 0, self.expert_tensor, self.tensor)

    @property
    def passes(self) -> Column:
        """N: consecutive micro-batches per chunk."""
        return np.where(self.group > 0, self.group, self.pipeline)

    @property
    def shards(self) -> Column:
        """Ranks that shard the states of all parameters but routed experts."""
        return np.where(self.shard > 0, self.shard, self.data * self.context)

    @property
    def expert_replicas(self) -> Column:
        """Replicas of routed experts; 0 with more parts of experts than PEs."""
        # Integer division: a product also holds layouts whose experts do not divide their PEs.
        replicas: Column = self.tensor * self.context * self.data // (self.etp * self.expert)
        return replicas

    @property
    def expert_shards(self) -> Column:
        """Ranks that shard the states of routed experts: their replicas, at most `shard`."""
        replicas = self.expert_replicas
        shared: Column = np.where(self.shard > 0, np.minimum(replicas, self.shard), replicas)
        return shared
