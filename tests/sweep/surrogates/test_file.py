"""Files hold only facts and arrays; every other file is refused with one message."""

import io
import json
import os
import pickle
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

from grids.reading.errors import InputError
from sweep.surrogates.surrogate import NEEDED, load_surrogate
from sweep.surrogates.trees import Trees


def load_damaged(path):
    with pytest.raises(InputError, match=path.name) as error:
        load_surrogate(path)
    assert len(str(error.value)) < 1000


class Hack:
    def __reduce__(self):
        return os.system, ("touch hacked",)


HEAD = np.lib.format.magic(1, 0)
HOSTILE = {
    "empty": b"",
    "text": b"a thesis",
    "pickle": pickle.dumps(Hack()),
    "deep JSON": b"[" * 100_000,
    "a list": b"[1]\n",
    "an older version": (24).to_bytes(8, "little") + b'{"__metadata__": {"a": ""}}',
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_message(tmp_path, name):
    path = tmp_path / "net"
    path.write_bytes(HOSTILE[name])
    load_damaged(path)


def state_header(shape) -> bytes:
    """Header of an array of that shape, without its numbers."""
    text = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return HEAD + len(text).to_bytes(2, "little") + text


def save_objects() -> bytes:
    """An array of objects, which numpy would unpickle if allowed to."""
    file = io.BytesIO()
    np.save(file, np.array([Hack()], object), allow_pickle=True)
    return file.getvalue()


ARRAYS = (pickle.dumps(Hack()), save_objects(), state_header((2**60,)), HEAD, b"PK\3\4")


@pytest.mark.parametrize("arrays", ARRAYS)
def test_hostile_arrays_behind_good_facts_are_refused(trained, tmp_path, arrays, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net"
    path.write_bytes(trained.read_bytes().split(b"\n")[0] + b"\n" + arrays)
    load_damaged(path)
    assert os.listdir(tmp_path) == ["net"]


def test_what_is_no_file_is_named(tmp_path):
    os.mkfifo(tmp_path / "pipe")  # without a writer: reading would wait forever
    for name in ("pipe", "none", "."):
        with pytest.raises(InputError, match=str(tmp_path)):
            load_surrogate(tmp_path / name)


def test_a_cut_file_is_refused(trained, tmp_path):
    path = tmp_path / "net"
    path.write_bytes(trained.read_bytes()[:-100])
    load_damaged(path)


@pytest.mark.parametrize(
    "wrong",
    [
        *({"version": 1}, {"features": ["__import__"]}, {"learner": "code"}, {"learner": "trees"}),
        *({"shapes": []}, {"shapes": [[10**9]]}, {"shapes": [[9]]}, {"shapes": [[-1]]}),
        *({"constants": {"gamma": 10**400}}, {"splits": [["random"]]}, {"splits_of_data": None}),
    ],
    ids=str,
)
def test_other_facts_are_refused(trained, tmp_path, wrong):
    facts, arrays = trained.read_bytes().split(b"\n", 1)
    path = tmp_path / "net"
    path.write_bytes(json.dumps(json.loads(facts) | wrong).encode() + b"\n" + arrays)
    load_damaged(path)


def test_numbers_that_are_not_finite_are_refused(trained, tmp_path):
    data = bytearray(trained.read_bytes())
    data[-4:] = np.float32(np.nan).tobytes()
    path = tmp_path / "net"
    path.write_bytes(data)
    load_damaged(path)


def test_trees_of_any_nodes_answer():
    """No node of a file can lead a walk out of memory or let it run forever."""
    rng = np.random.default_rng(0)
    feature, left, right = rng.integers(-(2**31), 2**31, (3, 50)).astype(np.int32)
    left[:25], right[:25], roots = 1, 0, rng.integers(50, size=(4, 6)).astype(np.int32)
    parts = (feature, left, right, np.ones(50, np.float32), roots)
    trees = Trees(*map(jax.numpy.asarray, parts))
    row = jax.numpy.zeros(3)
    assert trees(row, row, row[0]).tolist() == [6, 6, 6, 6]


@pytest.mark.parametrize(
    "arguments",
    [("train", "rows", "-o", "s"), ("evaluate", "s", "rows"), ("predict", "s", "rows")],
    ids=lambda arguments: arguments[0],
)
def test_libraries_that_are_missing_are_named(arguments, monkeypatch, tmp_path, paradl):
    monkeypatch.chdir(tmp_path)
    Path("rows").mkdir()
    Path("s").touch()
    for name in [*sys.modules]:
        if name.startswith("sweep.surrogates."):
            monkeypatch.delitem(sys.modules, name)
    for name in NEEDED:
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = paradl("surrogate", *arguments)
    assert (code, out) == (1, "")
    assert "pip install '.[surrogate]'" in err
    assert all(name in err for name in NEEDED)
    assert "Traceback" not in err
