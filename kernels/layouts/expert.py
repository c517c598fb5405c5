"""Expert parallelism: routed experts are divided, and tokens sent to them and back.

Lepikhin et al. 2020 (GShard). Experts divide the tensor x context x data PEs in another way, into
etp x e x replicas: Megatron-LM, parallel_state.py; arXiv 2504.14960 (parallel folding).
"""

from collections.abc import Sequence
from math import gcd
from typing import ClassVar

import numpy as np

from paradl.kernels.layouts.columns import Column
from paradl.kernels.layouts.dimension import (
    Dimension,
    Exchanged,
    Repeats,
    Rules,
    Values,
    leave_rest,
)
from paradl.kernels.layouts.transformer import Block


class ExpertParallel(Dimension):
    """Divides routed experts, and the matrices of each over `etp` PEs."""

    values: ClassVar[Values] = {
        "expert": lambda net, pes: (
            degree
            for degree in range(1, max(net.experts, default=1) + 1)
            if gcd(pes, *net.experts) % degree == 0
        ),
        # The tensor degree (0), or undivided matrices (1).
        "expert_tensor": lambda net, _: (0, 1) if net.experts else (0,),
    }
    repeats: ClassVar[Repeats] = {
        "expert_tensor": lambda layouts: layouts.expert_tensor == layouts.tensor
    }
    reasons: ClassVar[Rules] = {
        "experts": lambda net, layouts, _: leave_rest(net.experts or (1,), layouts.expert),
        "folding": lambda net, layouts, _: (
            layouts.tensor * layouts.context * layouts.data % (layouts.etp * layouts.expert) > 0
        ),
        # Otherwise each of t PEs would route the same tokens.
        "experts_need_sequence": lambda net, layouts, _: (
            (layouts.tensor > 1) & (layouts.expert > 1) & (layouts.sequence == 0)
        ),
    }

    def exchange_block(self, block: Block, hiding: Sequence[Column] | None) -> Exchanged:
        """Compute seconds of dispatch and combine, forward and backward."""
        routed = next((weights for weights in block.weights if weights.is_routed), None)
        if routed is None:
            return {"expert_exchange": np.zeros(1)}
        layouts, k = self.layouts, routed.used * routed.experts
        # Every expert gets the average number of tokens. DeepEP sends a token once per node, whose
        # PEs forward copies.
        sent, alike = k * self.activations / layouts.tensor, k if self.rates.sends_once else 1.0
        dispatch = self.transfers.send_to_all(layouts.expert, layouts.etp, sent, 1, alike)
        return {"expert_exchange": 4 * dispatch}
