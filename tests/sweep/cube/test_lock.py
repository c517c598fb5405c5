import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.cube.lock import hold_store


def test_the_second_is_refused(tmp_path):
    url = str(tmp_path)
    (tmp_path / "zarr.json").touch()
    with (
        hold_store(url),
        pytest.raises(InputError, match="another run"),
        hold_store(url),
    ):
        pass
    with hold_store(url):
        pass


def test_who_is_refused_leaves_the_folder_to_its_holder(tmp_path):
    url = str(tmp_path / "cube.zarr")
    with hold_store(url):
        for _ in range(2):  # the folder is still empty: it is not the refused one's to remove
            with pytest.raises(InputError, match="another run"), hold_store(url):
                pass


def test_a_folder_is_made_and_removed_if_it_stays_empty(tmp_path):
    with hold_store(str(tmp_path / "a")):
        assert (tmp_path / "a").is_dir()
    assert list(tmp_path.iterdir()) == []


def test_no_parent_folder_is_made(tmp_path):
    """The path may be mistyped."""
    with pytest.raises(InputError, match="make it first"), hold_store(str(tmp_path / "a" / "b")):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_file_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("mine")
    with pytest.raises(InputError, match="left untouched"), hold_store(str(path)):
        pass
    assert path.read_text() == "mine"


def test_an_object_store_has_no_lock():
    with hold_store("memory://x"), hold_store("memory://x"):
        pass


@pytest.mark.parametrize("place", ["file/cube.zarr", "gone/cube.zarr", "long"])
def test_a_folder_that_cannot_be(place, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    url = str(tmp_path / ("x" * 300 if place == "long" else place))
    if place.startswith("gone"):
        folder = tmp_path / "gone"
        folder.mkdir()
        monkeypatch.chdir(folder)
        folder.rmdir()
        url = "cube.zarr"
    with pytest.raises(InputError, match="choose another path"), hold_store(url):
        pass
