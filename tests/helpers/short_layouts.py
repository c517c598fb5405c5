"""Layouts from short words, for the kernels."""

from paradl.grids.entries.layout_words import count_pes, parse_layout
from paradl.kernels.work.layouts import Layouts


def read_layout(words: str, pes: int) -> Layouts:
    """The layout of short words; without `dp` its replicas are as many as the PEs have room for."""
    columns, _ = parse_layout(words, "layout")
    return Layouts.from_names([{"data": pes // count_pes(columns), **columns}])
