"""Damaged, missing and foreign files of a data set give one message that names them."""

import fcntl
import gc
import json
import os
import shutil

import pytest
from cubes import limit_file_sizes
from sampled_spaces import SPACE

from paradl.grids.reading.errors import InputError
from paradl.sweep.errors import RunError
from paradl.sweep.exports.target import write_beside
from paradl.sweep.samples.leakage import check_leakage
from paradl.sweep.samples.read import open_samples
from paradl.sweep.samples.sample import sample


def replace_by_folder(file) -> None:
    file.unlink()
    file.mkdir()


def replace_by_pipe(file) -> None:
    file.unlink()
    os.mkfifo(file)


def truncate(file) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def replace_by_text(file) -> None:
    file.write_text("a thesis")


def remove(file) -> None:
    file.unlink()


DAMAGES = (remove, truncate, replace_by_text, replace_by_folder, replace_by_pipe)


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_one_message(drawn, tmp_path, damage) -> None:
    folder = tmp_path / "rows"
    shutil.copytree(drawn.path, folder)
    file = min(folder.glob("data/*/*.parquet"))
    damage(file)
    for read in (check_leakage, lambda path: open_samples(path).read(["pe"])):
        with pytest.raises(InputError) as error:
            read(folder)
        assert str(folder / "data") in str(error.value)


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_facts_are_one_message(drawn, tmp_path, damage) -> None:
    shutil.copy(drawn.path / "dataset.json", tmp_path)
    damage(tmp_path / "dataset.json")
    with pytest.raises(InputError):
        open_samples(tmp_path)


@pytest.mark.parametrize("key", ["splits", "columns", "rows", "seed", "inputs", "constants"])
def test_facts_of_another_kind_are_one_message(drawn, tmp_path, key) -> None:
    (tmp_path / "dataset.json").write_text(json.dumps({**drawn.facts, key: None}))
    with pytest.raises(InputError):
        open_samples(tmp_path)


def test_a_killed_process_leaves_a_folder_that_the_next_one_takes_over(tmp_path) -> None:
    left = tmp_path / ".rows.partial"
    (left / "rows").mkdir(parents=True)
    (left / "rows" / "half").touch()
    with write_beside(tmp_path / "rows", force=False) as folder:
        assert folder == left
        assert not list(folder.iterdir())
        with (
            pytest.raises(RunError, match="rows"),
            write_beside(tmp_path / "rows", force=False),
        ):
            raise AssertionError
        (folder / "rows").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["rows"]
    assert (tmp_path / "rows").read_text() == "whole"


def test_files_that_the_system_cuts_short(tmp_path) -> None:
    """As `ulimit -f` has it: one message, nothing half-written, nothing to clean up later."""
    with limit_file_sizes(2_000), pytest.raises(RunError, match="nothing was written"):
        sample(SPACE, tmp_path / "rows", 100, gradients=None)
    gc.collect()  # pyarrow would write again as its writers are deleted
    assert list(tmp_path.iterdir()) == []


def test_a_folder_removed_before_its_lock_is_made_again(tmp_path, monkeypatch) -> None:
    """The process before may end between opening it and locking it."""
    lock = fcntl.flock

    def remove_once(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        (tmp_path / ".out.partial").rmdir()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", remove_once)
    with write_beside(tmp_path / "out", force=False) as folder:
        (folder / "out").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
