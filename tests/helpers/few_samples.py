"""A space that is quick to sample, with slopes, for tests of learners."""

from typing import Any

# Of few strategies, which share compiled programs, and no feature but those of models and PEs is
# many-valued.
FEW: dict[str, Any] = {
    "name": "few",
    "axes": {
        "model": ["alexnet", "vgg16", "resnet50"],
        "dataset": "imagenet-226",
        "system": ["dgx1-v100", "dgx-a100"],
        "strategy": ["data", "data+filter:group=2", "data+filter:group=4"],
        "pe": {"pow2": [8, 256]},
        "batch": {"loguniform": [8, 256]},
        "inter_bandwidth": {"loguniform": [1e9, 1e11]},
    },
}
