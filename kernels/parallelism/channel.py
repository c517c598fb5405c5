"""Channel parallelism: a layer's channels divided among the PEs of a group.

ParaDL, Table III, row Channel: y_l is reduced forward, dL/dx_l gathered backward, the collectives
of filter parallelism in another order.
"""

from collections.abc import Mapping
from dataclasses import replace

from kernels.arrays import Cells
from kernels.case import Case
from kernels.division import Division
from kernels.group import share
from kernels.hosts import time_large
from kernels.layers import Layers
from kernels.namespace import xp
from kernels.parallelism.filter import Filter, Gathered


class Channel(Filter):
    """Channels, or rows of matrices, divided."""

    name = "channel"
    gathers = 1
    reductions = 1

    def take_part(self, division: Division) -> Layers:
        """It reads its part of what comes in and adds to all that goes out."""
        layers, part = division.layers, share(division.placement.split, division.p2)
        return replace(layers, flops=layers.flops * part, w=layers.w * part, x=layers.x * part)

    def reduce_sent(self, division: Division) -> Gathered:
        """As by filter, without log files: no run showed any."""
        return replace(super().reduce_sent(division), logged=xp.zeros(()))

    def count_parts(self, messages: Cells, case: Case) -> Cells:
        """None: no time of parts was seen."""
        return xp.zeros(())

    def time_besides(self, sent: Gathered, case: Case) -> Mapping[str, Cells]:
        """As by filter; and what of gradients is large is slow here, too.

        One series of runs shows the latter, and no mechanism is known. It does not depend on where
        peers are: compute does not.
        """
        besides = super().time_besides(sent, case)
        slow = 2 * time_large(self.count_gradients(sent, case), case.network, case.software)
        return {**besides, "gradient_packing": besides["gradient_packing"] + slow}
