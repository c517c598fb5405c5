"""Channel parallelism: a layer's channels divided among the PEs of a group.

ParaDL, Table III, row Channel: y_l is reduced forward, dL/dx_l gathered backward, the collectives
of filter parallelism in another order.
"""

from dataclasses import replace

from kernels.arrays import PerLayer
from kernels.namespace import xp
from kernels.parallelism.filter import Filter, Gathered
from kernels.parallelism.parallelism import Add
from kernels.work.division import Division
from kernels.work.layers import Layers


class Channel(Filter):
    """Channels, or rows of matrices, divided: AR forward and AG backward."""

    name = "channel"

    def share_planes(self, division: Division) -> tuple[PerLayer, PerLayer] | None:
        """Its channels; all filters."""
        part = self.find_share(division)
        return part, xp.ones_like(part)

    def take_part(self, division: Division) -> Layers:
        """It reads its part of what comes in and adds to all that goes out."""
        layers, part = division.layers, self.find_share(division)
        return replace(layers, flops=layers.flops * part, w=layers.w * part, x=layers.x * part)

    def reduce_sent(self, division: Division, own: Layers, add: Add) -> Gathered:
        """One of two collectives is a reduction; no run showed log files."""
        sent = super().reduce_sent(division, own, add)
        return replace(sent, reductions=xp.ones(()), logged=xp.zeros(()))


PARALLELISM = Channel()
