"""Symbols: each formula's are told once, with the values that the answer has."""

import re

import pytest

import paradl
from paradl.grids.entries.parameters import PARAMETERS
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.names.terms import TERMS
from paradl.sweep.explanation.formulas import FORWARD_BACKWARD, PLACED, SPLIT, TABLE_III, ZERO
from paradl.sweep.explanation.group_memory import TABLE_III as MEMORY
from paradl.sweep.explanation.symbols import SYMBOLS

# Two letters and more, in lower case, are words: these are not.
WORDS = {"PE", "PEs", "MiB", "fp32", "dL", "dy", "ZeRO", "kv_heads", "log2", "zb1p"}
PATHS = {"alpha", "beta"}


def find_names(text: str) -> set[str]:
    """What in a formula is no English word, and no number."""
    # An x between two factors multiplies them.
    names = set(re.findall(r"(?<![\w'])[A-Za-z_]\w*", text.replace(" x ", " ")))
    return {name for name in names if not (len(name) > 1 and name.islower() and name.isalpha())}


TABLES = (TABLE_III, TERMS, PLACED, *ZERO, LAYOUT_TERMS)
ALL = {term.symbols for table in TABLES for term in table.values()}
ALL |= {SPLIT, *FORWARD_BACKWARD.values(), *(text for pair in MEMORY.values() for text in pair)}


@pytest.mark.parametrize("text", sorted(ALL))
def test_every_symbol_has_words(text):
    known = {*SYMBOLS, *PARAMETERS, *PATHS, *WORDS}
    assert find_names(text) <= known, find_names(text) - known


@pytest.mark.parametrize("oracle", ["machine", "paper"])
@pytest.mark.parametrize("strategy", ["data+spatial", "data+filter", "data+pipeline"])
def test_each_is_told_once_with_its_value(strategy, oracle):
    answer = paradl.explain(
        "alexnet", strategy, 8, 64, dataset="imagenet", system="abci", settings={"oracle": oracle}
    )
    rows = {row["symbol"]: row for row in answer["symbols"]}
    assert len(rows) == len(answer["symbols"])
    assert "context" not in rows  # a word of a formula that is also a degree of transformers
    assert rows["p"]["value"] == 8
    assert rows["p1"]["value"] * rows["p2"]["value"] == 8
    assert rows["b"]["value"] == 64
    assert rows["B"]["value"] == 64 * rows["p1"]["value"]
    assert rows["D"]["value"] == 1_281_167
    assert rows["beta (replica)"]["value"] == 1 / answer["parameters"]["replica_bandwidth"]
    assert rows["alpha (replica)"]["unit"] == "s"
    text = " ".join(
        row["formula"]
        for row in (*answer["formulas"], *answer["hidden"], *answer["memory_formulas"])
    )
    layers = {row["layer"] for row in answer["layers"]}
    assert find_names(text) - PATHS - WORDS - layers <= set(rows)


def test_a_gradient_of_table_iii_is_an_item():
    answer = paradl.explain(
        "alexnet", "data", 8, 64, dataset="imagenet", system="abci", settings={"oracle": "paper"}
    )
    rows = {row["symbol"]: row for row in answer["symbols"]}
    assert rows["q"]["value"] == 8
    assert (rows["delta"]["value"], rows["delta"]["unit"]) == (4, "B")
    assert rows["BW"]["meaning"].startswith("backward pass")
