"""CSV files of epochs and their series and entries, for tests."""

from collections.abc import Callable
from pathlib import Path

import pytest

from paradl.grids.convergence.entry import Convergence
from paradl.grids.convergence.fit import fit
from paradl.grids.convergence.points import Series, read_points

HEAD = "model,dataset,target,global_batch,epochs,steps"

ReadLines = Callable[..., tuple[Series, ...]]
FitPoints = Callable[..., Convergence]


@pytest.fixture
def read_lines(tmp_path: Path) -> ReadLines:
    """Read the series of a file of these lines."""

    def read(*lines: str) -> tuple[Series, ...]:
        path = tmp_path / "epochs.csv"
        path.write_text("\n".join(lines))
        return read_points(path)

    return read


@pytest.fixture
def fit_points(read_lines: ReadLines) -> FitPoints:
    """Fit the entry of one series from rows `batch,epochs,steps`."""

    def fit_lines(*rows: str, samples: int | None = None) -> Convergence:
        (series,) = read_lines(HEAD, *(f"toy,small,90 %,{row}" for row in rows))
        return fit(series, samples)

    return fit_lines
