"""Software: how a framework sends gradients; a setting of a system, like its precision.

A row lists what is known about the parameters that depend on it. Their priors are for PyTorch's
DistributedDataParallel (Li et al., VLDB 2020, arXiv 2006.15704).
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

    parameters: values that replace the medians of priors. settled: those among them that are
    certain.
    """

    meaning: str
    parameters: Mapping[str, float]
    settled: tuple[str, ...] = ()


SOFTWARE: dict[SoftwareName, SoftwareFacts] = {
    "plain": SoftwareFacts(
        "all gradients in one message after the backward pass (ChainerMN, as in ParaDL's runs)",
        {
            "bucket": math.inf,
            "overlap": 0.0,
            "flow": 0.3,  # one and a half adapters
            "winograd": 1.0,  # rarely possible in Chainer's workspace of 8 MB
            "layer_overhead": 3e-4,  # each layer is launched from Python (Chainer)
        },
        settled=("bucket", "overlap"),
    ),
    "ddp": SoftwareFacts(
        "gradients in buckets, during the backward pass (PyTorch DDP, Horovod, MXNet)",
        {"log_open": 0.0},
        settled=("log_open",),
    ),
}


AnySoftware = Annotated[SoftwareName, expect_one_of("software", tuple(SOFTWARE))]
