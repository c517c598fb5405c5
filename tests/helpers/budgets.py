"""How many examples a property is tried on: few and always the same, or many and always others."""

from hypothesis import settings

EXPLORE = 10  # times as many examples, where each run draws others


def limit_examples(count: int) -> settings:
    """Settings for `count` examples; more with `--hypothesis-profile=explore` (conftest.py)."""
    return settings(max_examples=count if settings().derandomize else EXPLORE * count)
