"""Files hold only facts and arrays; every other file is refused with one message."""

import io
import json
import os
import pickle
import sys
from hashlib import sha256
from pathlib import Path

import numpy as np
import pytest

from paradl.grids.reading.errors import InputError
from paradl.sweep.surrogates.surrogate import NEEDED, load_surrogate


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


def sign(data: bytes) -> bytes:
    """Put the digest in front that a file of these bytes has."""
    return sha256(data).hexdigest().encode() + b"\n" + data


ARRAYS = (pickle.dumps(Hack()), save_objects(), state_header((2**60,)), HEAD, b"PK\3\4")


@pytest.mark.parametrize("arrays", ARRAYS)
def test_hostile_arrays_behind_good_facts_are_refused(trained, tmp_path, arrays, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "net"
    path.write_bytes(sign(trained.read_bytes().split(b"\n")[1] + b"\n" + arrays))
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
        *({"version": 2}, {"features": ["__import__"]}, {"learner": "code"}, {"learner": "trees"}),
        *({"members": 0}, {"members": 2}, {"width": 10**9}, {"width": 9}, {"width": -1}),
        *({"constants": {"gamma": 10**400}}, {"splits": [["random"]]}, {"splits_of_data": None}),
    ],
    ids=str,
)
def test_other_facts_are_refused(trained, tmp_path, wrong):
    _, facts, arrays = trained.read_bytes().split(b"\n", 2)
    path = tmp_path / "net"
    path.write_bytes(sign(json.dumps(json.loads(facts) | wrong).encode() + b"\n" + arrays))
    load_damaged(path)


def test_numbers_that_are_not_finite_are_refused(trained, tmp_path):
    data = bytearray(trained.read_bytes().partition(b"\n")[2])
    data[-4:] = np.float32(np.nan).tobytes()
    path = tmp_path / "net"
    path.write_bytes(sign(bytes(data)))
    load_damaged(path)


@pytest.mark.parametrize(
    "arguments",
    [("train", "rows", "-o", "s"), ("evaluate", "s", "rows"), ("predict", "s", "rows")],
    ids=lambda arguments: arguments[0],
)
def test_libraries_that_are_missing_are_named(arguments, monkeypatch, tmp_path, cli):
    monkeypatch.chdir(tmp_path)
    Path("rows").mkdir()
    Path("s").touch()
    for name in [*sys.modules]:
        if name.startswith("paradl.sweep.surrogates."):
            monkeypatch.delitem(sys.modules, name)
    for name in NEEDED:
        monkeypatch.setitem(sys.modules, name, None)
    code, out, err = cli("surrogate", *arguments)
    assert (code, out) == (1, "")
    assert "pip install '.[surrogate]'" in err
    assert all(name in err for name in NEEDED)
    assert "Traceback" not in err
