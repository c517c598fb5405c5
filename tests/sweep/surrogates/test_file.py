"""Files hold arrays and JSON alone, and what is no such file is one message."""

import json
import struct

import numpy as np
import pytest
from safetensors.numpy import load_file, save, save_file

from grids.reading.errors import InputError
from sweep.surrogates.file import KEY, read_file
from sweep.surrogates.surrogate import load_surrogate
from sweep.surrogates.trees import Forest, build_forests


def test_what_is_loaded_is_what_was_saved(trained, drawn):
    surrogate = load_surrogate(trained)
    assert surrogate.facts["splits"] == ["random", "model"]
    assert not surrogate.encoding.constants.keys() & set(surrogate.encoding.names)
    again = load_surrogate(trained)
    frame = drawn.read(drawn.list_columns("feature", constants=True)).head(50)
    np.testing.assert_array_equal(surrogate.apply(frame).epoch_time, again.apply(frame).epoch_time)


def test_numbers_alone_are_in_it(trained):
    header = trained.read_bytes()[8 : 8 + struct.unpack("<Q", trained.read_bytes()[:8])[0]]
    parts = json.loads(header)
    assert json.loads(parts.pop("__metadata__")[KEY])["version"] == 1
    assert {each["dtype"] for each in parts.values()} <= {"F32", "F64", "I32"}


def rewrite(trained, path, **facts):
    """The file with other facts."""
    saved = read_file(trained)
    header = {KEY: json.dumps({"version": 1, **saved.facts} | facts)}
    save_file(dict(saved.arrays), path, metadata=header)


def test_another_version_is_told(trained, tmp_path):
    rewrite(trained, tmp_path / "net", version=2)
    with pytest.raises(InputError, match="expected a surrogate of version 1, got 2; train it agai"):
        load_surrogate(tmp_path / "net")


HOSTILE = {
    "empty": b"",
    "text": b"a thesis",
    "pickle": b"\x80\x04cos\nsystem\n(S'touch hacked'\ntR.",
    "a huge header": struct.pack("<Q", 2**62) + b"{}",
    "another's": save({"weight": np.zeros(3)}),
    "no JSON": save({"weight": np.zeros(3)}, metadata={KEY: "{"}),
    "deep JSON": save({"weight": np.zeros(3)}, metadata={KEY: "[" * 100_000}),
    "a list": save({"weight": np.zeros(3)}, metadata={KEY: "[1]"}),
    "facts alone": save({"weight": np.zeros(3)}, metadata={KEY: '{"version": 1}'}),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_one_message(tmp_path, name):
    path = tmp_path / "net.safetensors"
    path.write_bytes(HOSTILE[name])
    with pytest.raises(InputError) as error:
        load_surrogate(path)
    assert "net.safetensors" in str(error.value)
    assert len(str(error.value)) < 1000
    with pytest.raises(InputError, match="no such file"):
        load_surrogate(tmp_path / "none")


def test_a_damaged_file_is_one_message(trained, tmp_path):
    path = tmp_path / "net"
    path.write_bytes(trained.read_bytes()[:-100])
    with pytest.raises(InputError, match="no surrogate, or a damaged one"):
        load_surrogate(path)
    saved = load_file(trained)
    for name, value in (
        ("0.lines", np.zeros((1, 2, 3), np.float32)),
        ("encoding.scale", -saved["encoding.scale"]),
        ("0.weights0", saved["0.weights0"][:, 1:]),
        ("0.biases0", np.full_like(saved["0.biases0"], np.nan)),
    ):
        facts = {KEY: json.dumps({"version": 1, **read_file(trained).facts})}
        save_file(saved | {name: np.ascontiguousarray(value)}, path, metadata=facts)
        with pytest.raises(InputError, match="damaged"):
            load_surrogate(path)
    for key, wrong in (
        *(("features", ["__import__"]), ("members", 10**9), ("learner", "code")),
        *(("constants", {"gamma": 10**400}), ("splits", [["random"]]), ("splits_of_data", None)),
    ):
        rewrite(trained, path, **{key: wrong})
        with pytest.raises(InputError, match="damaged"):
            load_surrogate(path)


def test_trees_that_lead_back_are_refused():
    leaf = {"feature": [-1], "left": [0], "right": [0], "threshold": [1.5], "roots": [0]}
    arrays = {
        f"{name}{number}": np.array(value) for number in range(4) for name, value in leaf.items()
    }
    (first, *_) = build_forests(arrays, 3)
    assert isinstance(first, Forest)
    assert first.sum_leaves(np.zeros((2, 3), np.float32)).tolist() == [1.5, 1.5]
    for name, value in (
        *(("feature2", [0]), ("roots1", [7]), ("feature0", [9]), ("left3", [0, 1])),
        *(("roots2", [[0]]), ("threshold1", [[1.5]])),
    ):
        with pytest.raises(InputError, match="the trees of this surrogate are damaged"):
            build_forests(arrays | {name: np.array(value)}, 3)
