"""Calibration: the numbers that a machine's own runs tell, and its data sheet does not.

Each is a factor on what the system states (so that a faster link still counts), or a time that has
no name there. The terms that they enter, and how much each of them explains: docs/accuracy.md.
"""

from dataclasses import dataclass

import jax

from kernels.arrays import AnyArray, Cells

# [B] of one message through host memory, up to which it moves at the bandwidth of the path. M0 in
# docs/accuracy.md: of the terms' structure, chosen with all of ABCI's runs in sight and not fitted.
# VGG16's gradients (528 MiB) and CosmoFlow's samples of 512^3 (2 GiB) are beyond it.
LARGE_MESSAGE = 256 * 2.0**20


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Calibration:
    """Parameters of the calibrated oracle, `kernels.calibrated`.

    elementwise_passes: times that a layer without a matrix product moves its items, forward and
    backward. layer_overhead [s]: of each layer, whatever its size. assembly: bandwidth at which
    gathered activations are put together, of the PE's memory bandwidth. chunk_overhead [s]: of one
    peer's part of a layer-wise collective. packing, large_message: bandwidth of copying gradients
    to host memory, and of the part of a message beyond LARGE_MESSAGE, of the staging path's.
    node_reduce, reduce: bandwidth of gradient all-reduces inside and between nodes, of the link's;
    reduce_latency: start-up between nodes, of the link's. node_collective, collective: bandwidth of
    layer-wise collectives inside and between nodes. halo_latency: start-up of a halo message, of
    the staging path's. contention: of the rings of a hybrid, of phi. congestion: how much longer
    communication takes with all peers in other nodes.
    """

    elementwise_passes: Cells
    layer_overhead: Cells
    assembly: Cells
    chunk_overhead: Cells
    packing: Cells
    large_message: Cells
    node_reduce: Cells
    reduce: Cells
    reduce_latency: Cells
    node_collective: Cells
    collective: Cells
    halo_latency: Cells
    contention: Cells
    congestion: Cells


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Uncertainty:
    """Spreads of logarithms.

    directions [n, parameter, cells]: of the parameters' posterior, independent of each other.
    serial_time: of a model's time on one PE. serial, group, reduce, exchange: errors of computing
    whole models, and divided ones; of the gradients' rings, and of all else that is communicated.
    widening: the factor on these errors.
    """

    directions: AnyArray
    serial_time: Cells
    serial: Cells
    group: Cells
    reduce: Cells
    exchange: Cells
    widening: Cells
