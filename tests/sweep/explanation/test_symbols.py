"""Symbols: each formula's are told once, with the values that the answer has."""

import re

import pytest

import paradl
from paradl.grids.entries.parameters import PARAMETERS
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.sweep.explanation.formulas import (
    FORWARD_BACKWARD,
    MACHINE,
    OF_TABLE_III,
    PLACED,
    SPLIT,
    SYMBOLS,
)
from paradl.sweep.explanation.formulas import OF_TABLE_III as TABLE
from paradl.sweep.explanation.layout_formulas import SYMBOLS as LAYOUT_SYMBOLS
from paradl.sweep.explanation.memory_formulas import TABLE_III

# Two letters and more, in lower case, are words: these are not.
WORDS = {"PE", "PEs", "MiB", "fp32", "dL", "dy"}
PATHS = {"alpha", "beta"}


def find_names(text: str) -> set[str]:
    """What in a formula is no English word, and no number."""
    names = set(re.findall(r"(?<![\w'])[A-Za-z_]\w*", text))
    return {name for name in names if not (len(name) > 1 and name.islower() and name.isalpha())}


ALL = [term.symbols for table in (TABLE, MACHINE, PLACED) for term in table.values()]
ALL += [SPLIT.symbols, *(term.symbols for term in FORWARD_BACKWARD.values())]
ALL += [text for pair in TABLE_III.values() for text in pair]


@pytest.mark.parametrize("text", ALL)
def test_every_symbol_has_words(text):
    known = {*SYMBOLS, *OF_TABLE_III, *PARAMETERS, *PATHS, *WORDS}
    assert find_names(text) <= known, find_names(text) - known


@pytest.mark.parametrize("oracle", ["machine", "paper"])
@pytest.mark.parametrize("strategy", ["data+spatial", "data+filter", "data+pipeline"])
def test_each_is_told_once_with_its_value(strategy, oracle):
    answer = paradl.explain(
        "alexnet", strategy, 8, 64, dataset="imagenet", settings={"oracle": oracle}
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
        "alexnet", "data", 8, 64, dataset="imagenet", settings={"oracle": "paper"}
    )
    rows = {row["symbol"]: row for row in answer["symbols"]}
    assert rows["q"]["value"] == 8
    assert (rows["delta"]["value"], rows["delta"]["unit"]) == (4, "B")
    assert rows["BW"]["meaning"].startswith("backward pass")


@pytest.mark.parametrize("term", LAYOUT_TERMS.values(), ids=LAYOUT_TERMS)
def test_every_symbol_of_a_layout_has_words(term):
    # Collectives, and what the formula itself says.
    known = {"AR", "AG", "RS", "A2A", "P2P", "X", "y", "x", "kv_heads", "log2", "zb1p"}
    known |= {*LAYOUT_SYMBOLS, *PARAMETERS, *PATHS, *WORDS, "ZeRO"}
    assert find_names(term.symbols) <= known, find_names(term.symbols) - known
