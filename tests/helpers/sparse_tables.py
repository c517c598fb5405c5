"""A language model whose tables have sparse or whole gradients."""

from typing import Any


def make_model(sparse: bool) -> dict[str, Any]:
    """Make a small language model of 800,000 words; a pass reads 20 per sample and 100 more."""
    return {
        "name": "words",
        "rank": 1,
        "layers": [
            {"embedding": {"vocabulary": 800_000, "features": 64, "sparse": sparse}},
            {"lstm": 64},
            {"sampled_softmax": {"classes": 800_000, "samples": 100, "sparse": sparse}},
        ],
    }


WORDS: Any = {"name": "text", "samples": 10**6, "shape": [1, 20], "targets": 800_000}
