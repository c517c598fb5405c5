"""Programs on disk: loaded without being traced, and never in the way of an answer."""

import os
import pickle
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from paradl.kernels import programs
from paradl.kernels.cache_files import write_file
from paradl.kernels.compiled import Compiled, compiled

TRACED: list[int] = []


def make_cube(module: str = "paradl.kernels.cube") -> Compiled[..., object]:
    """A function, compiled anew as in a new process, that notes when it is traced."""

    def cube(values, *, power):
        TRACED.append(power)
        return values**power

    cube.__module__ = module
    return compiled("power")(cube)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    before = programs.find_folder()
    programs.keep_in(tmp_path / "programs")
    TRACED.clear()
    yield tmp_path / "programs"
    programs.keep_in(before)


def test_a_program_is_traced_once_for_all_processes(folder) -> None:
    values = np.arange(3.0)
    for _ in range(2):
        np.testing.assert_array_equal(make_cube()(values, power=3), values**3)
    assert TRACED == [3]
    assert np.asarray(make_cube()(values, power=2)).tolist() == [0, 1, 4]
    assert np.asarray(make_cube()(np.arange(2.0), power=2)).tolist() == [0, 1]
    assert TRACED == [3, 2, 2]
    assert len(list(folder.iterdir())) == 3


def test_what_a_pool_compiles_ahead_is_found_by_a_call_of_another_process() -> None:
    values = np.arange(3.0)
    with ThreadPoolExecutor(1) as pool:
        make_cube().compile_ahead(pool, values, power=3)
    assert np.asarray(make_cube()(values, power=3)).tolist() == [0, 1, 8]
    assert TRACED == [3]


def test_a_damaged_file_is_written_anew(folder, capsys) -> None:
    values = np.arange(3.0)
    make_cube()(values, power=3)
    (file,) = folder.iterdir()
    whole = file.read_bytes()
    flipped = [bytearray(whole) for _ in range(5)]
    for part, damaged in enumerate(flipped):
        damaged[part * (len(whole) - 1) // 4] ^= 1
    for damaged in (b"", whole[: len(whole) // 2], b"no program", *flipped):
        file.write_bytes(damaged)
        for _ in range(2):  # the second finds what the first has written
            assert np.asarray(make_cube()(values, power=3)).tolist() == [0, 1, 8]
    assert TRACED == [3] * 9
    assert "damaged" in capsys.readouterr().err


class Code:
    """Creates a file as it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.path,)


@pytest.mark.parametrize("mode", [0o600, 0o666])
def test_nothing_is_unpickled_before_it_is_checked(mode: int, folder, tmp_path) -> None:
    """By another's content, or as others may write it, with a digest."""
    make_cube()(np.arange(3.0), power=3)
    (file,) = folder.iterdir()
    content = pickle.dumps(Code(tmp_path / "ran"))
    if mode == 0o600:
        file.write_bytes(content)
    else:
        write_file(file, content)
    file.chmod(mode)
    assert np.asarray(make_cube()(np.arange(3.0), power=3)).tolist() == [0, 1, 8]
    assert not (tmp_path / "ran").exists()


def test_the_programs_used_longest_ago_make_room(folder, monkeypatch) -> None:
    def compute(count: int) -> None:
        make_cube()(np.arange(float(count)), power=3)

    compute(1)
    (first,) = folder.iterdir()
    compute(2)
    (second,) = set(folder.iterdir()) - {first}
    os.utime(first, (0, 0))
    os.utime(second, (1, 1))
    compute(1)  # the older one is used again
    monkeypatch.setattr(programs, "MOST_KEPT", 5 * first.stat().st_size // 2)
    compute(3)
    assert first.exists()
    assert not second.exists()
    assert len(list(folder.iterdir())) == 2
    assert TRACED == [3, 3, 3]


def test_without_a_place_programs_are_compiled_all_the_same(tmp_path) -> None:
    (tmp_path / "file").touch()
    for place in (None, tmp_path / "file"):
        programs.keep_in(place)
        assert np.asarray(make_cube()(np.arange(3.0), power=2)).tolist() == [0, 1, 4]
    assert TRACED == [2, 2]


def test_functions_of_other_packages_are_not_kept(folder) -> None:
    """Their sources are not part of a file's name, so that an older one would be taken."""
    make_cube("somewhere.cube")(np.arange(3.0), power=2)
    assert not folder.exists()
