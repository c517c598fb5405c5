"""Software: how a framework sends gradients, a setting of the system beside its precision.

One table: a row says what it knows of the parameters that depend on it, whose priors are those of
PyTorch's DistributedDataParallel (Li et al., VLDB 2020, arXiv 2006.15704).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

from grids.entries.entry import expect_one_of

SoftwareName = Literal["plain", "ddp"]


@dataclass(frozen=True)
class SoftwareFacts:
    """A way of sending gradients.

    parameters: values that replace medians of priors. settled: parameters among them that are
    certain.
    """

    meaning: str
    parameters: Mapping[str, float]
    settled: tuple[str, ...] = ()


SOFTWARE: dict[SoftwareName, SoftwareFacts] = {
    "plain": SoftwareFacts(
        "all gradients in one message, when the backward pass has ended (ChainerMN, as ParaDL ran)",
        {
            "bucket": math.inf,
            "overlap": 0.0,
            "flow": 0.3,  # of one adapter and a half
            "winograd": 1.0,  # of Chainer's workspace, 8 MB, which rarely allows it
            "layer_overhead": 3e-4,  # launched layer by layer out of Python (Chainer)
        },
        settled=("bucket", "overlap"),
    ),
    "ddp": SoftwareFacts(
        "gradients in buckets, while the backward pass runs (PyTorch DDP, Horovod, MXNet)",
        {"log_open": 0.0},
        settled=("log_open",),
    ),
}


AnySoftware = Annotated[SoftwareName, expect_one_of("software", tuple(SOFTWARE))]
