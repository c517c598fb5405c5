"""Cases of blocks: a transformer on a machine, with the layout of every cell."""

from dataclasses import dataclass, replace

import numpy as np

from paradl.grids.convergence.entry import Convergence
from paradl.grids.entries.software import Loss
from paradl.grids.inputs.machine import Stack
from paradl.grids.inputs.runs import build_training, find_largest_batch, make_run
from paradl.grids.inputs.uncertainty import build_block_uncertainty
from paradl.grids.inputs.values import Settings, Values
from paradl.kernels.configuration.case import Case
from paradl.kernels.names.arrays import Flags, Floats
from paradl.kernels.names.parallelisms import LAYOUT_DEGREES
from paradl.kernels.oracle.blocks import make_work
from paradl.kernels.work.group import Bounds
from paradl.kernels.work.layouts import COLUMNS, Layouts
from paradl.kernels.work.transformer import Training, Transformer

LOSS_PARTS = 8  # of a chunked loss, as torchtune has it
# Bytes per logit of PyTorch's log_softmax: the output, which it keeps, and its gradient. The item
# of the recipe and, if that has fewer than 4 bytes, its copy in fp32 come on top.
PLAIN_LOSS = 4 + 4


@dataclass(frozen=True)
class BlockTraining:
    """A network's blocks on a stack, and how they train, apart from batch and reserved memory.

    samples: of an epoch. law: of epochs.
    """

    net: Transformer
    training: Training
    stack: Stack
    samples: int
    law: Convergence | None = None

    def make_case(
        self,
        layouts: Layouts,
        values: Values,
        settings: Settings,
        segments: Floats | None = None,
        exists: Flags | None = None,
    ) -> Case:
        """Make the case of cells with these layouts [cells].

        segments: that cut a flush where no micro-batch is stated; None: by the parameter. exists:
        where degrees divide PEs; None: everywhere.
        """
        stack, draws = self.stack, settings.draws
        pe, network, software = stack.build_parts(values)
        columns = {name: getattr(layouts, name) for name in COLUMNS}
        # PEs beyond a layout's degrees have no work.
        fits = values.get("pe") <= layouts.pes
        whole = np.ones_like(fits)
        run = make_run(
            *(values, stack.machine.system, self.samples, settings),
            replicas=columns["data"].astype(float),
            degrees={name: columns[name].astype(float) for name in LAYOUT_DEGREES},
            spec_batch=values.get("batch"),
            segments=values.get("segments") if segments is None else segments,
            accumulate=values.get("accumulate"),
            largest_batch=find_largest_batch(self.law, values),
        )
        of_run = stack, self.net, values, draws
        return Case(
            work=make_work(self.net, self.training, stack.facts, columns, network),
            bounds=Bounds(fits, whole, whole if exists is None else exists),
            run=run,
            network=network,
            pe=pe,
            uncertainty=build_block_uncertainty(*of_run) if draws else None,
            training=build_training(self.law, values),
            software=software,
            options=settings.options,
        )


def keep_logits(training: Training, loss: Loss) -> Training:
    """Return the training with what a loss keeps of logits."""
    item = training.recipe.item
    plain = item + 4 * (item < 4) + PLAIN_LOSS
    return replace(
        training,
        logit_bytes={"fused": 0, "plain": plain}.get(loss, 4),
        loss_parts=LOSS_PARTS if loss == "chunked" else 1,
    )
