"""What Table III reads of a case and holds of it, in records of its own: no change elsewhere moves
a bit of it.

`kernels.oracle.table_iii` fills them, inside compiled programs.
"""

from dataclasses import dataclass

from paradl.kernels.arrays import (
    Cells,
    Ends,
    Extents,
    Factors,
    PerLayer,
    PerLevel,
    PerMessage,
    PerStage,
    pytree,
)
from paradl.kernels.options import Options


@dataclass(frozen=True)
class TableLayers:
    """Sizes of the layers l = 1..G for one sample shape (ParaDL, section 4.1).

    x, y: items per sample in and out. w, bias: weights. extents_x, extents_y, kernel, stride: along
    (depth, height, width). slowdown: measured over roofline time; 1 if not measured.
    """

    x: PerLayer
    y: PerLayer
    w: PerLayer
    bias: PerLayer
    flops: PerLayer
    channels: PerLayer
    filters: PerLayer
    extents_x: Extents
    extents_y: Extents
    kernel: Extents
    stride: Extents
    slowdown: PerLayer


@dataclass(frozen=True)
class TablePE:
    """A PE: peak_flops [FLOP/s], of which kernels reach `efficiency`; memory_bandwidth [B/s]."""

    peak_flops: Cells
    efficiency: Cells
    memory_bandwidth: Cells


@dataclass(frozen=True)
class TableTimes:
    """FW_l and BW_l [s per sample] and WU_l [s per iteration] of whole layers on one PE."""

    forward: PerLayer
    backward: PerLayer
    update: PerLayer


@dataclass(frozen=True)
class TableGroup:
    """Layers placed on the PEs of a group.

    degree: p2. divides: "rows", "layers", "filters" or "channels"; empty for one PE. split: s_l.
    factors: parts along (depth, height, width). ends: index after each stage's last layer; stages
    that a cell lacks end at G, too.
    """

    layers: TableLayers
    degree: Cells
    divides: tuple[str, ...]
    split: PerLayer
    factors: Factors
    ends: Ends
    options: Options


@dataclass(frozen=True)
class TableRun:
    """One configuration per cell: p PEs = p1 `replicas` x p2 PEs of a `group`.

    batch: b, samples of one pass through a replica. delta, gradient_delta [B]: per item, and per
    weight in the gradient exchange. gamma: memory reuse. phi: contention of that exchange.
    """

    p: Cells
    replicas: Cells
    group: Cells
    batch: Cells
    segments: Cells
    delta: Cells
    gamma: Cells
    phi: Cells
    gradient_delta: Cells


@dataclass(frozen=True)
class TableNetwork:
    """Levels in ascending `span` [PEs], each with `latency` [s] and `bandwidth` [B/s].

    staging_*: path through host memory (latency 0 and infinite bandwidth if there is none). phi_*:
    contention of halos, and of gathers where a split ends.
    """

    span: PerLevel
    latency: PerLevel
    bandwidth: PerLevel
    staging_bandwidth: Cells
    staging_latency: Cells
    phi_halo: Cells
    phi_gather: Cells


@pytree
class TableWork:
    """Work of the busiest PE of a group.

    forward_backward [s per sample], update [s per iteration]. activations [items per sample],
    parameters [items]: with gradients, by stage; the fullest counts. gradient: weights that a PE
    exchanges with other replicas. gathered, gathers: items and number of layer-wise collectives.
    halo_items, halo_exchanges: likewise. split_items: output of the last split layer. stage_items:
    largest output between stages. replicated: 1 if each PE of a group holds all weights; pipelined:
    1 for pipelines; else 0, so that strategies share compiled programs.
    """

    forward_backward: Cells
    update: Cells
    activations: PerStage
    parameters: PerStage
    gradient: Cells
    gathered: PerMessage
    gathers: PerMessage
    halo_items: Cells
    halo_exchanges: Cells
    split_items: Cells
    stage_items: Cells
    replicated: Cells
    pipelined: Cells
