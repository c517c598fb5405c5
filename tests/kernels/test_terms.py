"""`Terms` are the rows of the table, and its sums are all of them."""

import subprocess
import sys

import jax
import numpy as np

from paradl.kernels.configuration.run import Terms, add_terms
from paradl.kernels.names.terms import TERMS, list_terms


def test_terms_are_a_pytree_in_the_order_of_the_table() -> None:
    leaves = jax.tree.leaves(Terms(*map(float, range(len(TERMS)))))
    assert leaves == [*map(float, range(len(TERMS)))]


def test_each_is_added_once_but_what_is_hidden() -> None:
    parts = (*list_terms("compute"), *list_terms("communication"))
    assert sorted((*parts, "hidden_communication")) == sorted(TERMS)
    powers = dict(zip(TERMS, 10.0 ** np.arange(len(TERMS)), strict=True))
    sums = add_terms(powers)
    assert sums.compute + sums.communication == sum(powers[name] for name in parts)
    assert sums.communication == sum(powers[name] for name in list_terms("communication"))


def test_terms_and_outputs_are_named_without_jax() -> None:
    names = "paradl.kernels.names.terms, paradl.kernels.names.stored"
    code = f"import sys, {names}; sys.exit('jax' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
