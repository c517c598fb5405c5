"""Software: what frameworks and libraries achieve on a machine, beyond its data sheet.

Priors state these numbers for any machine; its measured runs narrow them (docs/machine.md,
docs/accuracy.md). They are shares of stated values, so that a faster link still counts, or times
that a data sheet does not state.
"""

from paradl.kernels.arrays import Cells, pytree

# [B] Messages through host memory slow down beyond this size. Chosen by hand from ABCI's runs, not
# fitted: VGG16's gradients (528 MiB) and CosmoFlow's samples of 512^3 (2 GiB) exceed it, those of
# 256^3 (256 MiB) do not.
LARGE_MESSAGE = 256 * 2.0**20


@pytree
class Software:
    """Parameters of the machine oracle other than those of a PE; the defaults have no effect.

    layer_overhead [s]: host time to launch a layer in one pass. bucket [B]: gradients sent as one
    message. overlap: share of the compute time that can hide communication. jitter: relative
    spread of a PE's compute time per iteration.
    rail, flow: share of a node's links that all its flows together, or a single flow, reach.
    node_reduce, node_collective: share of the bandwidth inside a node that exchanges of gradients,
    or of layers, reach. startup: factor on start-ups beyond a node. assembly: bandwidth at which
    gathered activations are joined, relative to the PE's memory. part_overhead [s]: per peer, in a
    gather of the filter strategy.
    Path through host memory: halo_startup: factor on its latency; packing, large_message: share of
    its bandwidth for copying gradients, and for the part of a message above LARGE_MESSAGE;
    host_jitter: relative spread of the latter's time over nodes; gather_rate: share of its
    bandwidth in gathers where a spatial split ends. log_open [s]: for one PE to open its log
    files; PEs take turns.
    Of transformers: attention_penalty: slowdown of attention without newer instructions of GPUs.
    host_pause [s]: per iteration. straggling: share by which each doubling of the PEs slows an
    iteration. expert_wait [s]: host time to launch an expert, without grouped products.
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
    attention_penalty: Cells = 1.0
    host_pause: Cells = 0.0
    straggling: Cells = 0.0
    expert_wait: Cells = 0.0
