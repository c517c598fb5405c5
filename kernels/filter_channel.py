"""Filter and channel parallelism: a layer's filters (channels) divided among the PEs of a group.

ParaDL, Table III, rows Filter and Channel. Filter gathers y_l forward and reduces dL/dx_l backward;
channel reduces y_l forward and gathers dL/dx_l backward: the same two collectives in another order.
The last layer's output is not exchanged.
"""

from dataclasses import replace
from typing import Literal

from kernels.arrays import PerLayer, PerMessage
from kernels.division import Division
from kernels.group import GroupWork, held, merged, share, total, whole_work
from kernels.layers import LayerTimes
from kernels.namespace import empty_last, xp
from kernels.touched import count_touched

# Of messages. Against a minimum for each layer, catalogue networks on three machines and 1 to 512
# samples take 0.2 % too long on average with two classes, 15 % at worst
# (tests/test_machine_classes.py); four cost a third of the rate.
CLASSES = 2
# What is a class' least size but for rounding is in it.
BORDER = 1e-9


def exchanged(split: PerLayer) -> PerLayer:
    """1 for each layer whose output the group exchanges: split, and not the last (l < G)."""
    return empty_last(split)


def _sort_by_size(gathers: PerLayer, gathered: PerLayer) -> tuple[PerMessage, PerMessage]:
    """Messages and items by class of size, of equal width between the logarithms' extremes.

    A class takes one algorithm. Against the best for each message by itself: docs/machine.md.
    """
    there = gathered > 0
    sizes = xp.log(xp.where(there, gathered, 1.0))
    least = xp.min(xp.where(there, sizes, xp.inf), axis=0)
    most = xp.max(xp.where(there, sizes, -xp.inf), axis=0)
    # All of one size are the first class.
    width = xp.where(most > least, (most - least) / CLASSES, xp.inf)
    number = xp.clip(xp.floor((sizes - least) / width + BORDER), 0, CLASSES - 1)
    of_class = [xp.where(there & (number == each), 1.0, 0.0) for each in range(CLASSES)]
    return (
        xp.stack([total(each * gathers) for each in of_class]),
        xp.stack([total(each * gathered) for each in of_class]),
    )


def work(division: Division, times: LayerTimes, by: Literal["filter", "channel"]) -> GroupWork:
    """Weights, their update and the compute divide by p2 in split layers; activations do not."""
    layers, split, p2 = division.layers, division.placement.split, division.p2
    gathers = exchanged(split)
    gathered = gathers * layers.y
    if division.options.algorithm == "auto":
        gathers, gathered = _sort_by_size(gathers, gathered)
    else:  # costs are linear in the size: the layers' sum is enough
        gathers, gathered = merged(gathers), merged(gathered)
    return replace(
        whole_work(layers, times),
        # Activations stay those of one PE: what is gathered, each PE holds in full.
        forward_backward=total(times.forward + times.backward),
        update=total(times.update),
        # Table III divides weights and not biases, of which each PE holds all.
        parameters=xp.expand_dims(held(2 * layers.w, split, p2), 0) + merged(layers.bias),
        gradient=held(layers.w, split, p2),
        touched=count_touched(layers, layers.w * share(split, p2), merged),
        undivided=total(layers.w * (1 - split)),
        by_filter=xp.asarray(float(by == "filter")),
        by_channel=xp.asarray(float(by == "channel")),
        gathered=gathered,
        gathers=gathers,
        logged=total(exchanged(split) * layers.convolution) * float(by == "filter"),
    )
