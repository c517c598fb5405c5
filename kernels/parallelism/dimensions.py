"""All dimensions of layouts, with their rules, remarks and duplicates taken together.

Rules of Megatron-LM (arguments.py, parallel_state.py) and of the papers named in each file.
"""

from collections.abc import Collection

import numpy as np

from paradl.kernels.columns import Column, find_any
from paradl.kernels.names.parallelisms import NEEDS
from paradl.kernels.parallelism.context import ContextParallel
from paradl.kernels.parallelism.data import Replicas
from paradl.kernels.parallelism.dimension import Dimension
from paradl.kernels.parallelism.expert import ExpertParallel
from paradl.kernels.parallelism.pipelines import PipelineParallel
from paradl.kernels.parallelism.rules import Rules
from paradl.kernels.parallelism.tensor import TensorParallel
from paradl.kernels.work.block_memory import find_idle_modules
from paradl.kernels.work.layouts import Layouts
from paradl.kernels.work.transformer import Training, Transformer

DIMENSIONS: tuple[type[Dimension], ...] = (
    *(TensorParallel, ContextParallel, ExpertParallel),
    *(PipelineParallel, Replicas),
)


def find_repeated(layouts: Layouts, stated: Collection[str] = ()) -> Column:
    """Mask of duplicates [layouts]: a setting has nothing to divide, or says the usual.

    stated: columns with a single value, which never make duplicates.
    """
    idle = {
        name: (getattr(layouts, name) > 0) & (getattr(layouts, need) == none)
        for name, (need, none) in NEEDS.items()
    }
    same = [(name, rule(layouts)) for kind in DIMENSIONS for name, rule in kind.repeats.items()]
    return find_any(mask for name, mask in (*idle.items(), *same) if name not in stated)


def list_rules(net: Transformer, layouts: Layouts, training: Training) -> Rules:
    """Return the rules that forbid layouts, by name."""
    rules = (kind.list_rules(net, layouts, training) for kind in DIMENSIONS)
    return {name: rule for some in rules for name, rule in some.items()}


def find_reasons(net: Transformer, layouts: Layouts, training: Training) -> dict[str, Column]:
    """Masks of impossible layouts by reason [layouts], whatever their memory."""
    return {name: rule.mask for name, rule in list_rules(net, layouts, training).items()}


def explain_broken(net: Transformer, layouts: Layouts, training: Training) -> dict[str, str]:
    """Explain why rules forbid a single layout: remedies by reasons, in words."""
    rules = list_rules(net, layouts, training).values()
    return {rule.reason: rule.remedy for rule in rules if np.any(rule.mask)}


def find_marks(
    net: Transformer, layouts: Layouts, training: Training, pes_per_node: int
) -> dict[str, Column]:
    """Masks of layouts that run but are odd, by remark [layouts]."""
    marks = {name: rule for kind in DIMENSIONS for name, rule in kind.marks.items()}
    return {
        **{name: rule(net, layouts, training, pes_per_node) for name, rule in marks.items()},
        # These two belong to no dimension.
        "idle_recompute": (layouts.recompute & find_idle_modules(net, training)) > 0,
        "longer": np.full(layouts.pipeline.shape, 0 < net.longest < training.length),
    }
