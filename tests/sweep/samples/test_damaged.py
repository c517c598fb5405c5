"""Damaged, missing and foreign files of a data set are one message that names them."""

import json
import os
import shutil
from pathlib import Path
from tempfile import mkdtemp

import pytest

from grids.reading.errors import InputError
from sweep.exports import target
from sweep.exports.target import write_beside
from sweep.samples.leakage import check_leakage
from sweep.samples.read import open_samples


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


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_stays(tmp_path) -> None:
    left = tmp_path / ".rows.abcdefgh.partial"
    other = tmp_path / ".rows.more.abcdefgh.partial"
    left.mkdir()
    other.mkdir()
    with write_beside(tmp_path / "rows", force=False) as first:
        assert not left.exists()
        with write_beside(tmp_path / "rows", force=False) as second:
            assert first.is_dir()
            (second / "rows").write_text("")
        (first / "rows").write_text("")
        shutil.rmtree(tmp_path / "rows", ignore_errors=True)
        (tmp_path / "rows").unlink(missing_ok=True)
    assert other.is_dir()


def test_a_folder_removed_before_its_lock_is_made_again(tmp_path, monkeypatch) -> None:
    made = []

    def make(**place):
        made.append(mkdtemp(**place))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(target, "mkdtemp", make)
    with write_beside(tmp_path / "out", force=False) as folder:
        (folder / "out").write_text("whole")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]
    assert len(made) == 2
