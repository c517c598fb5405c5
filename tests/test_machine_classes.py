"""Two classes of message sizes against the fastest algorithm for each single message.

The catalogue's networks in groups of 2 to 256 PEs, with 1 to 512 samples, as docs/machine.md
states for filter and channel groups.
"""

from collections.abc import Callable
from functools import reduce
from itertools import product

import numpy as np
import pytest

from paradl.grids.grid import Grid
from paradl.grids.spec import Spec
from paradl.kernels.arrays import Cells, empty_last, use_numpy, xp
from paradl.kernels.configuration.case import Case
from paradl.kernels.machine.library_collectives import gather_costs, reduce_costs, time_fastest
from paradl.kernels.machine.network import Ring
from paradl.kernels.names.arrays import Floats

SIZES = [2, 4, 8, 16, 32, 64, 128, 256]
BATCHES = [2**n for n in range(10)]
SYSTEMS = ("abci", "dgx-a100", "dgx1-v100")
# By how many per cent two classes are slower, by network: on average, and at worst.
LOSSES = {
    "alexnet": (0.003, 1.0),
    "big_lstm": (0.0, 0.0),  # two linear layers, of one size
    "cosmoflow": (0.24, 14.6),
    "densenet121": (0.212, 6.7),
    "efficientnet_b0": (0.469, 10.5),
    "gnmt": (0.010, 1.2),
    "gnmt_v2": (0.013, 1.7),
    "inception_v3": (0.52, 10.0),
    "mobilenet_v2": (0.272, 6.8),
    "resnet152": (0.12, 4.5),
    "resnet50": (0.16, 4.9),
    "resnext50_32x4d": (0.142, 4.7),
    "unet3d": (0.572, 13.1),
    "vgg16": (0.22, 5.1),
    "vit_b_16": (0.0, 0.0),  # two sizes
}
# Of the others: imagenet.
SAMPLES = {
    "big_lstm": "one-billion-words",
    "cosmoflow": "cosmoflow-512",
    "gnmt": "wmt16-en-de",
    "gnmt_v2": "wmt16-en-de",
    "inception_v3": "imagenet-299",
    "unet3d": "kits19",
}


def read(model: str, system: str, group: str) -> Grid:
    axes = {
        "model": model,
        "dataset": SAMPLES.get(model, "imagenet"),
        "system": system,
        "strategy": group,
        "pe": SIZES,
        "batch": BATCHES,
    }
    return Grid.from_spec(Spec.model_validate({"axes": axes}))


def make_timer(case: Case) -> Callable[[Cells, Cells], Cells]:
    """Seconds of `messages` of so many items in all: forward and backward."""
    run, network = case.run, case.network
    ring = Ring(run.group, xp.ones(()), run.p)
    gathers, reductions = (costs(network, ring, "auto") for costs in (gather_costs, reduce_costs))
    (sent,) = case.machine_work.sent.values()
    reduces = xp.equal(sent.reductions, 1)

    def time(messages: Cells, items: Cells) -> Cells:
        m = run.batch * run.delta * items
        gather = time_fastest(gathers, m, messages)
        other = xp.where(reduces, time_fastest(reductions, m, messages), gather)
        return xp.where(xp.greater(messages, 0), gather + other, 0.0)

    return time


def time_classes(case: Case) -> Cells:
    time, (sent,) = make_timer(case), case.machine_work.sent.values()
    pairs = zip(sent.messages, sent.items, strict=True)
    return xp.asarray(reduce(xp.add, (time(count, items) for count, items in pairs)))


def time_messages(case: Case, sizes: Cells) -> Cells:
    return xp.asarray(xp.sum(make_timer(case)(xp.ones(()), sizes), axis=0))


def compare(model: str, system: str, group: str) -> Floats:
    """[p2, b] seconds of classes over those of messages by themselves."""
    grid = read(model, system, group)
    index = (0, 0, 0, 0)
    case, groups = grid.case(index), grid.groups(index)
    assert isinstance(case, Case)
    assert groups is not None
    placement, _ = groups.place()
    # A table's layers that are split are the same for all sizes.
    split = empty_last(np.asarray(placement.split))
    sizes = np.asarray(groups.layers.y * split)
    sizes = sizes[sizes.reshape(len(sizes), -1).max(axis=1) > 0]
    return np.asarray(time_classes(case)) / np.asarray(time_messages(case, sizes))


@pytest.mark.parametrize("model", LOSSES)
def test_two_classes_are_enough(model: str) -> None:
    mean, worst = LOSSES[model]
    with use_numpy():
        ratios = np.stack(
            [compare(model, *place) for place in product(SYSTEMS, ("filter", "channel"))]
        )
    assert ratios.shape == (2 * len(SYSTEMS), len(SIZES), len(BATCHES))
    assert ratios.min() >= 1 - 1e-9
    assert 100 * (ratios.mean() - 1) == pytest.approx(mean, abs=0.01)
    assert 100 * (ratios.max() - 1) == pytest.approx(worst, abs=0.1)


def test_on_average_little_is_lost() -> None:
    means, worsts = zip(*LOSSES.values(), strict=True)
    assert sum(means) / len(means) <= 0.27
    assert max(worsts) <= 15
