"""docs/scoreboard.md: each run stands there, as the fits that the page states predict it."""

from pathlib import Path

import pytest

from benchmarks import layouts, scoreboard
from grids.entries.transformer_rates import FITTED

PAGE = Path(__file__).parents[2] / "docs" / "scoreboard.md"


def read_tables() -> list[list[list[str]]]:
    """Cells of the page's tables, without their heads."""
    blocks = [block.splitlines() for block in PAGE.read_text().split("\n\n")]
    return [
        [[cell.strip() for cell in line.strip("|").split("|")] for line in block[2:]]
        for block in blocks
        if block[0].startswith("|")
    ]


def test_the_page_is_what_the_stated_fits_predict() -> None:
    _, fits, rows = read_tables()
    values = {name: dict(zip(FITTED, map(float, numbers), strict=True)) for name, *numbers in fits}
    forecasts = scoreboard.forecast(layouts.select_timed(), values)
    assert len(rows) == len(forecasts) == 387
    predicted = [float(row[9]) for row in rows]
    assert predicted == pytest.approx([forecast.seconds for forecast in forecasts], rel=1e-3)
    assert [float(row[8]) for row in rows] == pytest.approx(
        [forecast.run.seconds for forecast in forecasts], rel=1e-3
    )


def test_the_sums_are_those_of_the_rows() -> None:
    sums, _, rows = read_tables()
    number = int(sums[0][1])
    dense = [float(row[10]) for row in rows[:number]]
    accuracy = sum(1 - abs(ratio - 1) for ratio in dense) / number
    assert float(sums[0][2].strip("%")) == pytest.approx(100 * accuracy, abs=0.2)


def test_paradl_is_nearer_than_both_baselines() -> None:
    sums, *_ = read_tables()
    paradl, constant, rule = (float(sums[0][column].strip("%")) for column in (2, 5, 6))
    assert paradl > max(constant, rule) + 5
