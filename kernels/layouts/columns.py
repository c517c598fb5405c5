"""Columns of layouts: arrays that broadcast against each other, and what is made of several.

Layouts may be a list, each column [layouts], or a product of settings, each column with an axis of
its own: then numpy evaluates a formula once for each combination of the settings that it reads, and
no formula says which these are.
"""

from collections.abc import Iterable, Sequence
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

Column = NDArray[Any]


def add(columns: Iterable[Column]) -> Column:
    """The sum of columns, one after the other: numpy's own order depends on their number."""
    total: Column = reduce(np.add, columns)
    return total


def find_most(columns: Iterable[Column]) -> Column:
    """The largest of columns."""
    most: Column = reduce(np.maximum, columns)
    return most


def find_any(masks: Iterable[Column]) -> Column:
    """Whether any of some masks is true; of none False."""
    found: Column = reduce(np.logical_or, masks, np.array(False))
    return found


def sum_kinds(counts: Column, of_kinds: Iterable[Column]) -> Column:
    """The sum over a stage's blocks, of a number of each kind."""
    return add(n * number for n, number in zip(counts, of_kinds, strict=True))


def find_largest(counts: Column, of_kinds: Iterable[Column]) -> Column:
    """The largest of the numbers of those kinds of blocks that a stage has [layouts]."""
    numbers = (np.where(n > 0, number, 0) for n, number in zip(counts, of_kinds, strict=True))
    return find_most(numbers)


def keep_largest(
    answers: Iterable[tuple[Sequence[Column], Column]], shape: tuple[int, ...]
) -> list[Column]:
    """The parts of the answer that is the largest [layouts]; of equal ones of the first.

    answers: parts of each, and the number that decides.
    """
    most: Column = np.array(-np.inf)
    kept: Sequence[Column] = []
    # One after the other, so that the arrays of one answer are there at a time.
    for parts, size in answers:
        is_larger = size > most
        kept = [np.where(is_larger, *pair) for pair in zip(parts, kept or parts, strict=True)]
        most = np.maximum(size, most)
    return [np.broadcast_to(part, shape) for part in kept]


def find_distinct(*columns: Column) -> tuple[list[Column], Column]:
    """Combinations of whole numbers that there are [distinct] each, and the place of every layout's
    among them. By tables of what there is: sorting takes ten times as long."""
    whole = np.broadcast_arrays(*columns)
    places = np.zeros(whole[0].shape, int)
    for column in whole:
        # Renumbered after each column: the next table has combinations times numbers, no more.
        numbers = _find_places(column)
        places = _find_places(places * (int(numbers.max(initial=0)) + 1) + numbers)
    # Any layout of a combination stands for it: the last one that is written.
    samples = np.zeros(int(places.max(initial=-1)) + 1, int)
    samples[places.ravel()] = np.arange(places.size)
    return [column.ravel()[samples] for column in whole], places


def _find_places(numbers: Column) -> Column:
    """The place of each number among those that there are."""
    occurs = np.zeros(int(numbers.max(initial=-1)) + 1, bool)
    occurs[numbers] = True
    return (np.cumsum(occurs) - 1)[numbers]
