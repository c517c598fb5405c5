"""How many examples a property is tried on: few and always the same, or many and always others."""

from hypothesis import settings

EXPLORE = 10  # times as many examples, where each run draws others


def limit_examples(count: int) -> settings:
    """Settings for `count` examples; more with `--hypothesis-profile=explore` (conftest.py)."""
    # The first three of five by default: always the same ones, and the suite has to end in minutes.
    few = max(3, count * 3 // 5)
    return settings(max_examples=few if settings().derandomize else EXPLORE * count)
