"""Touched rows: tables whose sparse gradients have only the rows that a pass looks up.

For such gradients (TensorFlow's IndexedSlices, PyTorch's sparse embeddings) the optimizer holds and
updates states of those rows, and replicas exchange only them. Only for the machine oracle: Table
III has whole tables.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax

from kernels.arrays import Cells, Flags, PerLayer, PerStage, xp
from kernels.work.layers import Layers, TouchedRows


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Touched:
    """Weights of each stage, or device, whose gradients are exchanged.

    whole: of layers without a sparse gradient. tables, biases: of layers with one. drawn: of rows
    that a pass touches whatever its batch. looked_up: of rows that a sample touches.
    """

    whole: PerStage
    tables: PerStage
    biases: PerStage
    drawn: PerStage
    looked_up: PerStage


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RowStates:
    """Gradients and optimizer states of looked-up rows, for each stage's tables.

    sample [B per sample]. most [B]: of all rows, the limit for many samples.
    """

    sample: PerStage
    most: PerStage


def find_rows(layers: Layers) -> TouchedRows | None:
    """Return the touched rows of a network's tables; None if all gradients are whole."""
    return None if layers.sequence is None else layers.sequence.rows


def is_table(rows: TouchedRows) -> Flags:
    """True for layers with a sparse gradient."""
    return xp.greater(rows.looked_up, 0)


def count_touched(
    layers: Layers, weights: PerLayer, add: Callable[[PerLayer], PerStage]
) -> Touched | None:
    """Count the `weights` that stages touch; None if all gradients are whole.

    add: sums values of layers over each stage.
    """
    rows = find_rows(layers)
    if rows is None:
        return None
    tables = xp.where(is_table(rows), 1.0, 0.0)
    return Touched(
        whole=add((1 - tables) * weights),
        tables=add(tables * weights),
        biases=add(tables * layers.bias),
        drawn=add(rows.drawn),
        looked_up=add(rows.looked_up),
    )


def count_exchanged(touched: Touched, samples: Cells, replicas: Cells) -> Cells:
    """Count weights of an all-reduce as long as the gradient exchange, with `samples` per replica.

    Rows of all replicas are gathered: q rows in an all-gather equal q/2 in an all-reduce. If that
    exceeds the table, the whole table is reduced.
    """
    rows = touched.drawn + samples * touched.looked_up
    return xp.max(touched.whole + xp.minimum(touched.tables, replicas * rows / 2), axis=0)


def count_shared(touched: Touched, samples: Cells) -> Cells:
    """Count weights to add when PEs of a group exchange touched rows instead of whole tables."""
    rows = touched.drawn + samples * touched.looked_up
    return xp.sum(xp.minimum(touched.tables, rows) - touched.tables, axis=0)
