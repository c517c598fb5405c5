"""Channel parallelism: the PEs of a group divide a layer's channels.

ParaDL, Table III, row Channel: y_l is reduced forward, dL/dx_l gathered backward: the collectives
of filter parallelism in another order.
"""

from dataclasses import replace

from paradl.kernels.arrays import PerLayer, xp
from paradl.kernels.parallelism.filter import Filter, Gathered
from paradl.kernels.parallelism.parallelism import Add
from paradl.kernels.work.division import Division
from paradl.kernels.work.layers import Layers


class Channel(Filter):
    """Divides channels, or rows of matrices: AR forward and AG backward."""

    name = "channel"

    def share_planes(self, division: Division) -> tuple[PerLayer, PerLayer] | None:
        """Return its share of channels, and all filters."""
        part = self.find_share(division)
        return part, xp.ones_like(part)

    def take_part(self, division: Division) -> Layers:
        """Return layers that read a share of the input and add to the whole output."""
        layers, part = division.layers, self.find_share(division)
        # y is whole: its channels' products are a part of every output's sum.
        return replace(layers, flops=layers.flops * part, w=layers.w * part, x=layers.x * part)

    def reduce_sent(self, division: Division, shares: Layers, add: Add) -> Gathered:
        """Return the exchanges: one of two collectives is a reduction; no run showed log files."""
        sent = super().reduce_sent(division, shares, add)
        return replace(sent, reductions=xp.ones(()), logged=xp.zeros(()))


PARALLELISM = Channel()
