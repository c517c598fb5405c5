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

    Under their own names: meanings, units and priors are in grids/entries/machine_parameters.py.
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
    checkpoint_wait: Cells = 0.0
    offload_rate: Cells = float("inf")
