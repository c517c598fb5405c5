"""The type of training recipes, in bytes; the recipes are in grids/entries/precision.py."""

from typing import NamedTuple


class Recipe(NamedTuple):
    """Bytes per parameter of weights, gradients and states; per kept item; per GEMM input.

    peak: name of the special peak rate that a PE needs for this recipe.
    """

    weights: float
    gradients: int
    states: float
    item: int
    read: float
    peak: str = ""
