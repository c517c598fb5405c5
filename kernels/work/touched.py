"""Touched rows: a table whose gradient has the rows alone that a pass looks up.

A sparse gradient (TensorFlow's IndexedSlices, PyTorch's sparse embeddings): the optimizer holds and
updates states of those rows, and replicas send each other these rows. For the machine oracle:
Table III knows whole tables alone.
"""

from collections.abc import Callable
from dataclasses import dataclass

import jax

from kernels.arrays import Cells, Flags, PerLayer, PerStage
from kernels.namespace import xp
from kernels.work.layers import Layers, Rows


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Touched:
    """Weights of each stage, or device, whose gradients are exchanged.

    whole: of all layers without a sparse gradient; tables: of those with one, and their biases,
    which are not exchanged; drawn: of the rows that a pass touches whatever its batch; looked_up:
    of those that a sample touches.
    """

    whole: PerStage
    tables: PerStage
    biases: PerStage
    drawn: PerStage
    looked_up: PerStage


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class RowStates:
    """Gradients and optimizer states of the rows that samples look up, of each stage's tables.

    sample [B a sample]; most [B]: however many samples, since a table has no more rows.
    """

    sample: PerStage
    most: PerStage


def find_rows(layers: Layers) -> Rows | None:
    """The touched rows of a network's tables; None where all gradients are whole."""
    return None if layers.sequence is None else layers.sequence.rows


def is_table(rows: Rows) -> Flags:
    """Which layers have a sparse gradient."""
    return xp.greater(rows.looked_up, 0)


def count_touched(
    layers: Layers, weights: PerLayer, add: Callable[[PerLayer], PerStage]
) -> Touched | None:
    """The part of their `weights` that stages touch, None where all gradients are whole.

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
    """Weights of an all-reduce that takes as long as the exchange of gradients, `samples` each.

    Rows of all replicas are gathered: q rows in an all-gather are q/2 in an all-reduce. Where that
    is more than the table, the table is reduced whole.
    """
    rows = touched.drawn + samples * touched.looked_up
    return xp.max(touched.whole + xp.minimum(touched.tables, replicas * rows / 2), axis=0)


def count_shared(touched: Touched, samples: Cells) -> Cells:
    """Weights that PEs of a group of the same samples exchange: their rows, but for the whole."""
    rows = touched.drawn + samples * touched.looked_up
    return xp.sum(xp.minimum(touched.tables, rows) - touched.tables, axis=0)
