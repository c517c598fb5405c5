import numpy as np
import pytest

from sweep.cells.lines import Lines, split_groups

PLACES = {"model": np.array(["one", "two"], object), "batch": np.array([8, 64, 512])}


@pytest.fixture
def lines() -> Lines:
    """Of two models and three batches; of the second model only one line can exist."""
    forbidden = np.array([[0, 1, 1], [8, 8, 2]])
    return Lines(PLACES, {"forbidden_by": forbidden, "count_memory": np.arange(6).reshape(2, 3)})


def test_a_row_for_each_line_that_can_exist(lines):
    found = lines.list_columns()
    assert found["model"].tolist() == ["one", "one", "one", "two"]
    assert found["batch"].tolist() == [8, 64, 512, 512]
    assert found["forbidden_by"].tolist() == [0, 1, 1, 2]
    assert found["count_memory"].tolist() == [0, 1, 2, 5]


def test_groups_come_from_top_to_bottom(lines):
    found = list(split_groups(lines.list_columns(), ["model"]))
    assert [part["batch"].tolist() for part in found] == [[8, 64, 512], [512]]
    found = list(split_groups(lines.list_columns(), ["model", "batch"]))
    assert [part["forbidden_by"].tolist() for part in found] == [[0], [1], [1], [2]]


def test_no_rows_are_no_groups():
    assert list(split_groups({"model": np.array([], object)}, ["model"])) == []
