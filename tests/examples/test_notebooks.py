"""The notebooks run, and print what they hold: text to the letter, numbers to four digits."""

import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
NUMBER = re.compile(r"\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def list_texts(notebook):
    """What each cell of code has printed or shown."""
    cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert all(cell.outputs for cell in cells)
    return [
        output.text if output.output_type == "stream" else output.data["text/plain"]
        for cell in cells
        for output in cell.outputs
    ]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
@pytest.mark.parametrize("name", ["planner", "paper"])
def test_a_notebook_prints_what_it_holds(name, tmp_path):
    kept, fresh = (nbformat.read(EXAMPLES / f"{name}.ipynb", 4) for _ in range(2))
    NotebookClient(fresh, timeout=200, resources={"metadata": {"path": str(tmp_path)}}).execute()
    for before, now in zip(list_texts(kept), list_texts(fresh), strict=True):
        assert NUMBER.sub("#", before) == NUMBER.sub("#", now)
        numbers = [[float(number) for number in NUMBER.findall(text)] for text in (before, now)]
        assert numbers[0] == pytest.approx(numbers[1], rel=1e-4)
