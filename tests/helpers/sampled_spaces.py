"""Small spaces with ranges, which tests draw samples from."""

from typing import Any

# Two networks, machines of four and of two levels, and strategies that share a compiled program.
SPACE: dict[str, Any] = {
    "name": "drawn",
    "axes": {
        "model": ["alexnet", "resnet50"],
        "dataset": "imagenet-226",
        "system": ["abci", "dgx-a100"],
        "strategy": ["serial", "data", "data+spatial"],
        "pe": {"pow2": [1, 256]},
        "batch": {"loguniform": [8, 256]},
        "inter_bandwidth": {"loguniform": [1e9, 1e11]},
        "inter_latency": {"uniform": [0, 1e-4]},
    },
}
ROWS = 752  # the last slice lacks a strategy

# Quick to sample, for tests of learners: strategies and systems share one compiled program.
FEW: dict[str, Any] = {
    "name": "few",
    "axes": {
        "model": ["alexnet", "vgg16", "resnet50"],
        "dataset": "imagenet-226",
        "system": ["dgx-h100:memory=80 GB", "dgx-a100:memory=40 GB"],
        "strategy": ["data+filter:group=2", "data+filter:group=4", "data+filter:group=8"],
        "pe": {"pow2": [8, 256]},
        "batch": {"loguniform": [8, 256]},
        "inter_bandwidth": {"loguniform": [1e9, 1e11]},
    },
}

# Of a small network that learns most of it.
RECIPE: dict[str, Any] = {"epochs": 10, "width": 16}
