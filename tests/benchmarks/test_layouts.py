"""Published memory of transformers: every row is read, and what is allocated is met."""

from benchmarks import layouts
from benchmarks.effort import QUICK


def test_allocated_memory_is_met_and_a_card_shows_more() -> None:
    rows = {row.what: row for row in layouts.measure(QUICK).rows}
    assert sum(int(row.value) for row in rows.values()) == len(layouts.read_runs()) == 110
    ratios = {stack: row.ratio or 0.0 for stack, row in rows.items()}
    assert 0.95 < ratios["Megatron-LM"] < 1.0
    assert ratios["Megatron-DeepSpeed"] < 0.9
