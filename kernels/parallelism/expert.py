"""Expert parallelism: routed experts are divided, and tokens sent to them and back.

Lepikhin et al. 2020 (GShard). Experts divide the tensor x context x data PEs in another way, into
etp x e x replicas: Megatron-LM, parallel_state.py; arXiv 2504.14960 (parallel folding).
"""

from math import gcd
from typing import ClassVar

import numpy as np

from paradl.kernels.columns import read_first
from paradl.kernels.parallelism.divided_blocks import (
    Computing,
    DividedBlocks,
    Exchanged,
    Repeats,
    Rule,
    Rules,
    Values,
    divide,
)
from paradl.kernels.parallelism.parallelism import Parallelism
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Block, Training, Transformer


class ExpertParallel(Parallelism):
    """Divides routed experts, and the matrices of each over `etp` PEs."""

    name = sends_as = "expert"
    values: ClassVar[Values] = {
        "expert": lambda net, pes, _: (
            degree
            for degree in range(1, max(net.experts, default=1) + 1)
            if gcd(pes, *net.experts) % degree == 0
        ),
        # The tensor degree (0), or undivided matrices (1).
        "expert_tensor": lambda net, _, __: (0, 1) if net.experts else (0,),
    }
    repeats: ClassVar[Repeats] = {
        "expert_tensor": lambda layouts: layouts.expert_tensor == layouts.tensor
    }

    @staticmethod
    def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
        t, c, e, d = layouts.tensor, layouts.context, layouts.expert, layouts.data
        ep, tp = f"ep{read_first(e)}", f"tp{read_first(t)}"
        return {
            "experts": divide(net.experts, e, ep, "experts", "an expert degree")
            if net.experts
            else Rule(
                (e > 1) | (layouts.etp != t),
                "ep or etp: the network has no experts",
                "leave them out",
            ),
            "folding": Rule(
                t * c * d % (layouts.etp * e) > 0,
                f"etp x {ep} does not divide {tp} x cp{read_first(c)} x dp{read_first(d)}",
                "tensor x context x data that the parts of experts divide",
            ),
            "experts_need_sequence": Rule(
                # Otherwise each of t PEs would route the same tokens.
                (t > 1) & (e > 1) & (layouts.sequence == 0),
                f"{ep} with {tp} needs sp",
                "sequence parallelism",
            ),
        }

    def exchange_block(
        self, divided: DividedBlocks, costs: None, block: Block, hiding: Computing | None
    ) -> Exchanged:
        """Compute exposed seconds of dispatch and combine, forward and backward."""
        routed = next((weights for weights in block.weights if weights.is_routed), None)
        if routed is None:
            return {"expert_exchange": np.zeros(1)}
        layouts, k = divided.layouts, routed.used * routed.experts
        # Every expert gets the average number of tokens. DeepEP sends a token once per node, whose
        # PEs forward copies.
        sent = k * divided.activations / layouts.tensor
        alike = k if divided.rates.sends_once else 1.0
        dispatch = divided.transfers.send_to_all(layouts.expert, layouts.etp, sent, 1, alike)
        # Backward as forward, where there are gradients.
        seconds = (4 if routed.share > 1 / 3 else 2) * dispatch
        if hiding is not None:
            # Beside the compute of the neighbouring micro-batch, which the last one lacks.
            m = divided.training.count_micro_batches(divided.layouts)
            hidden = np.minimum(seconds, divided.rates.hidden_experts * hiding.whole)
            seconds = seconds - (m - 1) / m * hidden
        return {"expert_exchange": seconds}


PARALLELISM = ExpertParallel()
