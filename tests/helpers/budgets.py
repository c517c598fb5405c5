"""Numbers of examples of properties: few and always the same, or many and always different."""

from hypothesis import settings

EXPLORE = 10  # times as many examples, where each run draws others


def limit_examples(count: int) -> settings:
    """Return settings for `count` examples; more with `--hypothesis-profile=explore`."""
    # By default three of five, always the same ones, to keep the suite fast.
    few = max(3, count * 3 // 5)
    return settings(max_examples=few if settings().derandomize else EXPLORE * count)
