"""A space that is quick to sample, for tests of learners."""

from typing import Any

# All of its strategies and systems share one compiled program.
FEW: dict[str, Any] = {
    "name": "few",
    "axes": {
        "model": ["alexnet", "vgg16", "resnet50"],
        "dataset": "imagenet-226",
        "system": ["dgx-h100", "dgx-a100"],
        "strategy": ["data+filter:group=2", "data+filter:group=4", "data+filter:group=8"],
        "pe": {"pow2": [8, 256]},
        "batch": {"loguniform": [8, 256]},
        "inter_bandwidth": {"loguniform": [1e9, 1e11]},
    },
}
