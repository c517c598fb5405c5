"""The work of a group's busiest PE.

Every strategy is a group strategy inside p2 PEs and data parallelism across p1 replicas (ParaDL,
Table III). Stage one sums the layers to numbers of few dimensions; stage two is closed-form in PEs,
batch, latency and bandwidth. s_l = 1 if the group splits layer l, else 0.

Tables may have sparse gradients (TensorFlow's IndexedSlices, PyTorch's sparse embeddings), with
only the rows that a pass touches: the optimizer holds and updates states of those rows, and
replicas exchange only them. Only for the machine oracle: Table III has whole tables.
"""

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from paradl.kernels.arrays import Cells, Flags, PerLayer, PerStage, pytree, xp
from paradl.kernels.work.layers import Layers, find_rows, is_table


@pytree
class Bounds:
    """Limits on the number of PEs of a group.

    fits: it is within the strategy's limit. even: it divides what the strategy splits. defined:
    such a placement exists.
    """

    fits: Flags
    even: Flags
    defined: Flags


@pytree
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


@pytree
class RowStates:
    """Gradients and optimizer states of looked-up rows, for each stage's tables.

    sample [B per sample]. most [B]: of all rows, the limit for many samples.
    """

    sample: PerStage
    most: PerStage


@pytree
class GroupWork:
    """Work of the busiest PE of a group.

    forward_backward [s per sample], update [s per iteration], fixed [s per pass], launches [per
    pass]. activations [B per sample], parameters [B]: by stage; the fullest counts. gradient:
    weights that a PE exchanges with other replicas. tensors: layers with such weights. sent: what
    PEs of a group send each other, by parallelism (`kernels.parallelism`).
    """

    forward_backward: Cells
    update: Cells
    fixed: Cells
    launches: Cells
    activations: PerStage
    parameters: PerStage
    gradient: Cells
    tensors: Cells
    sent: Mapping[str, Any]
    touched: Touched | None = None  # with sparse gradients
    row_states: RowStates | None = None  # with sparse gradients
    gathered_weights: Cells | None = None  # [B] of weights, if replicas divide them


def share(split: PerLayer, degree: Cells) -> PerLayer:
    """Return the share of a layer that one of q PEs holds, s/q + 1 - s."""
    return xp.asarray(split / degree + (1 - split))


def find_fullest(activations: PerStage, parameters: PerStage, batch: Cells) -> Cells:
    """Compute the memory of the fullest stage with `batch` samples per replica."""
    # Few stages: only those that are fullest for some batch (`grids.inputs.groups`).
    stages = zip(*xp.broadcast_arrays(activations, parameters), strict=True)
    # Stage by stage, which compiles to faster code than a maximum along a dimension.
    most = reduce(xp.maximum, (batch * activation + once for activation, once in stages))
    return xp.asarray(most)


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
