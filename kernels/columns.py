"""Columns of layouts: arrays that broadcast against each other, and operations over several.

Layouts are either a list, with columns [layouts], or a product of settings, where each column has
its own axis. Over a product, broadcasting evaluates a formula once per combination of the settings
it reads.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]


def add(columns: Iterable[Column]) -> Column:
    """Sum columns from left to right; the order of np.sum would depend on their number."""
    total: Column = reduce(np.add, columns)
    return total


def find_most(columns: Iterable[Column]) -> Column:
    """Elementwise maximum of columns."""
    most: Column = reduce(np.maximum, columns)
    return most


def read_first(column: Column | int) -> int:
    """The first number of a column, for messages; 1 without any."""
    return int(np.ravel(column)[0]) if np.size(column) else 1


def find_any(masks: Iterable[Column]) -> Column:
    """Elementwise `or` of masks; False for no masks."""
    found: Column = reduce(np.logical_or, masks, np.array(False))
    return found


def sum_kinds(counts: Column, of_kinds: Iterable[Column]) -> Column:
    """Sum a quantity over the blocks of a stage, given its value per kind."""
    return add(n * number for n, number in zip(counts, of_kinds, strict=True))


def find_largest(counts: Column, of_kinds: Iterable[Column]) -> Column:
    """Maximum of a quantity over the kinds of blocks in a stage [layouts]."""
    numbers = (np.where(n > 0, number, 0) for n, number in zip(counts, of_kinds, strict=True))
    return find_most(numbers)


def keep_largest(answers: Iterable[tuple[Sequence[Column], Column]]) -> list[Column]:
    """Parts of the largest answer of each layout [layouts]; the first among equals.

    answers: pairs of the parts and the number that decides.
    """
    most: Column = np.array(-np.inf)
    kept: list[Column] = []
    # One at a time, so that only one answer is in memory.
    for parts, size in answers:
        is_larger = size > most
        kept = [np.where(is_larger, *pair) for pair in zip(parts, kept or parts, strict=True)]
        most = np.maximum(size, most)
    return kept


# Entries of a lookup table per number, beyond which sorting is faster.
WIDEST = 16


def find_distinct(*columns: Column) -> tuple[list[Column], Column]:
    """Distinct combinations of integer columns, [distinct] each, and the index of every layout's
    combination. Lookup tables take a tenth of the time of sorting."""
    whole = np.broadcast_arrays(*columns)
    places = np.zeros(whole[0].shape, int)
    if places.size == 1:
        return [column.reshape(1) for column in whole], places
    for column in whole:
        # Renumbering after each column keeps the next table small.
        numbers = _find_places(column)
        places = _find_places(places * (int(numbers.max(initial=0)) + 1) + numbers)
    # One layout represents each combination: the last one written.
    samples = np.zeros(int(places.max(initial=-1)) + 1, int)
    samples[places.ravel()] = np.arange(places.size)
    return [column.ravel()[samples] for column in whole], places


def _find_places(numbers: Column) -> Column:
    """Rank of each number among the distinct numbers."""
    most = int(numbers.max(initial=-1))
    if most > WIDEST * numbers.size:
        return np.unique(numbers, return_inverse=True)[1].reshape(numbers.shape)
    occurs = np.zeros(most + 1, bool)
    occurs[numbers] = True
    return (np.cumsum(occurs) - 1)[numbers]
