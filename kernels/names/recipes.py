"""Recipes: the bytes that training takes. Read without JAX; grids/entries/precision.py has them."""

from typing import NamedTuple


class Recipe(NamedTuple):
    """Bytes of a parameter's weight, gradient and states; of a kept item; of a GEMM's input.

    peak: the peak that a PE needs to train so, beyond those of all PEs.
    """

    weights: int
    gradients: int
    states: int
    item: int
    read: float
    peak: str = ""
