"""What a case holds of its layers by Table III."""

from paradl.kernels.arrays import Cells, PerMessage, PerStage, pytree


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
