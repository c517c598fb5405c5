"""Growth of each term of layouts, as the table of docs/machine.md, How terms grow, states it."""

import re
from pathlib import Path

import pytest
from short_layouts import read_layout

from paradl.grids.entries.precision import RECIPES
from paradl.grids.inputs.machine import Machine, Stack
from paradl.grids.library import find
from paradl.grids.models.transformers import read_transformer
from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.oracle.block_times import time_iteration
from paradl.kernels.work.transformer import Training

PAGE = (Path(__file__).parents[1] / "docs" / "machine.md").read_text()
COLUMNS = ("p1", "t", "q_p", "S", "u")
MACHINE = Machine(find("system", "dgx-h100:software=deepspeed", Path()))
NET = read_transformer(find("model", "mixtral_8x7b", Path()))


def read_growth() -> dict[str, dict[str, str]]:
    """The cells of each row, by column."""
    (table,) = re.findall(r"\| term of layouts \|.*\n.*\n((?:\|.*\n)+)", PAGE)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()]
    return {row.strip("`"): dict(zip(COLUMNS, cells, strict=True)) for row, *cells in rows}


GROWTH = read_growth()


def time_terms(words: str, pes: int, sequences: int) -> dict[str, float]:
    """Seconds per iteration by term. sequences: per replica."""
    layout = read_layout(words, pes)
    training = Training(sequences * int(layout.data[0]), 4096, RECIPES["bf16"])
    rates, fabric = Stack(MACHINE, "bf16").find_speeds()
    terms = time_iteration(NET, layout, training, rates, fabric)
    return {name: float(seconds[0]) for name, seconds in terms.items()}


ALL = "recompute=core_attn sp"
# Twice of what each column is about, everything else alike.
PAIRS = {
    "p1": ((f"tp2 cp2 ep4 pp2 dp4 mb1 {ALL}", 32, 8), (f"tp2 cp2 ep4 pp2 dp8 mb1 {ALL}", 64, 8)),
    "q_p": ((f"tp2 cp2 ep4 pp2 dp4 mb1 {ALL}", 32, 8), (f"tp2 cp2 ep4 pp4 dp4 mb1 {ALL}", 64, 8)),
    "S": ((f"tp2 cp2 ep4 pp2 dp4 mb1 {ALL}", 32, 8), (f"tp2 cp2 ep4 pp2 dp4 mb1 {ALL}", 32, 16)),
}
# Exponents without further words.
EXACT = [
    (term, column, int(GROWTH[term][column]))
    for term in GROWTH
    for column in PAIRS
    if re.fullmatch(r"-?\d", GROWTH[term][column])
]


def test_every_term_has_its_growth() -> None:
    assert set(GROWTH) == set(LAYOUT_TERMS)


@pytest.mark.parametrize(("term", "column", "exponent"), EXACT)
def test_terms_grow_as_documented(term: str, column: str, exponent: int) -> None:
    before, after = (time_terms(*case)[term] for case in PAIRS[column])
    assert before > 0
    assert after / before == pytest.approx(2**exponent, rel=1e-9)


def test_states_do_not_depend_on_micro_batches_but_of_zero_3() -> None:
    for zero, factor in ((1, 1), (3, 2)):
        before, after = (
            time_terms(f"tp2 pp2 dp4 mb1 zero{zero}", 16, sequences) for sequences in (8, 16)
        )
        for term in ("gradient_exchange", "weight_gather"):
            assert after[term] / before[term] == pytest.approx(factor)
        assert after["optimizer"] == before["optimizer"] > 0
