"""The ParaDL oracle as pure, differentiable JAX functions of arrays, in SI units."""

from kernels.arrays import Cells
from kernels.collectives import Algorithm, all_gather, all_reduce, point_to_point
from kernels.compiled import compiled
from kernels.compute import PE, Optimizer, forward_roofline, layer_times, roofline, slowdown
from kernels.group import Bounds, GroupWork, Placement
from kernels.layers import Layers, LayerTimes
from kernels.limits import FORBIDS, MARKS, Limit
from kernels.memory import memory
from kernels.network import Link, Network, link, shared_links, staged_link
from kernels.oracle import Answer, answer, best_group, reduce_layers
from kernels.strategy import GroupStrategy, Options, Run, Terms
from kernels.summary import Line, Summary, summarise

__all__ = [
    "FORBIDS",
    "MARKS",
    "PE",
    "Algorithm",
    "Answer",
    "Bounds",
    "Cells",
    "GroupStrategy",
    "GroupWork",
    "LayerTimes",
    "Layers",
    "Limit",
    "Line",
    "Link",
    "Network",
    "Optimizer",
    "Options",
    "Placement",
    "Run",
    "Summary",
    "Terms",
    "all_gather",
    "all_reduce",
    "answer",
    "best_group",
    "compiled",
    "forward_roofline",
    "layer_times",
    "link",
    "memory",
    "point_to_point",
    "reduce_layers",
    "roofline",
    "shared_links",
    "slowdown",
    "staged_link",
    "summarise",
]
