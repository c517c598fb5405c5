"""Files that are written: at once or not at all, and never in the place of something else."""

import os
import stat

import pytest

from paradl.grids.reading.errors import InputError
from paradl.grids.reading.textfile import write_text


def test_a_pipe_is_left_where_it_is(tmp_path):
    path = tmp_path / "pipe.yaml"
    os.mkfifo(path)
    with pytest.raises(InputError, match=r"pipe\.yaml"):
        write_text("text", path)
    assert stat.S_ISFIFO(path.stat().st_mode)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced(tmp_path):
    path = tmp_path / "mine.yaml"
    for text in ("first", "second"):
        write_text(text, path)
        assert path.read_text(encoding="utf-8") == text
    assert list(tmp_path.iterdir()) == [path]
