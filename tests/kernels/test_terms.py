"""The table of terms is the fields of `Terms`, and its sums are all of them."""

from dataclasses import fields

import numpy as np

from kernels.run import Terms
from kernels.terms import TERMS, list_terms


def test_every_term_has_a_field() -> None:
    assert [each.name for each in fields(Terms)] == list(TERMS)


def test_each_is_added_once() -> None:
    parts = (*list_terms("compute"), *list_terms("communication"))
    assert sorted(parts) == sorted(TERMS)
    powers = Terms(*(10.0 ** np.arange(len(TERMS))))
    assert powers.compute == 1111
    assert powers.communication == 111110000
