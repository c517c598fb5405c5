"""Software: what frameworks and libraries make of a machine, and its data sheet does not tell.

Numbers that priors state for any machine, and that its own measured runs narrow (docs/machine.md,
docs/accuracy.md). Each is a share of what the system states, so that a faster link still counts, or
a time that has no name there.
"""

from dataclasses import dataclass

import jax

from kernels.arrays import Cells

# [B] of one message through host memory, up to which it moves at the bandwidth of the path: of the
# terms' structure, chosen with all of ABCI's runs in sight and not fitted. VGG16's gradients (528
# MiB) and CosmoFlow's samples of 512^3 (2 GiB) are beyond it, those of 256^3 (256 MiB) are not.
LARGE_MESSAGE = 256 * 2.0**20


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Software:
    """Parameters of the machine oracle beside those of a PE; as they stand, they change nothing.

    layer_overhead [s]: of the host, to launch a layer in a pass. bucket [B]: of gradients that are
    one message. overlap: omega, the part of the time computing that can hide communication.
    jitter: spread of a PE's time computing an iteration, of the whole.
    rail, flow: of a node's links, what all its flows reach together, and one of them alone.
    node_reduce, node_collective: of the bandwidth inside a node, what exchanges of gradients and of
    layers reach. startup: of the start-ups beyond a node. assembly: bandwidth at which gathered
    activations are put together, of the PE's memory's. part_overhead [s]: of one peer's part of a
    gather by filter. Of the path through host memory: halo_startup, of its latency; packing,
    large_message: of its bandwidth, in copying gradients, and in what of a message is beyond
    LARGE_MESSAGE; host_jitter: spread of the latter's time from node to node; gather_rate: of its
    bandwidth, in gathers where a spatial split ends. log_open [s]: for a PE to open log files, one
    PE after the other.
    """

    layer_overhead: Cells = 0.0
    bucket: Cells = float("inf")
    overlap: Cells = 0.0
    jitter: Cells = 0.0
    rail: Cells = 1.0
    flow: Cells = float("inf")
    node_reduce: Cells = 1.0
    node_collective: Cells = 1.0
    startup: Cells = 1.0
    assembly: Cells = float("inf")
    part_overhead: Cells = 0.0
    halo_startup: Cells = 1.0
    packing: Cells = float("inf")
    large_message: Cells = float("inf")
    host_jitter: Cells = 0.0
    gather_rate: Cells = 1.0
    log_open: Cells = 0.0
