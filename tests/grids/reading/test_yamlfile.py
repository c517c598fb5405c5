"""YAML files: numbers, line numbers, and what is refused."""

import os
from pathlib import Path
from typing import Annotated

import pytest
from pydantic import Field, ValidationError

from paradl.grids.entries.entry import Count, Record
from paradl.grids.library import find
from paradl.grids.reading.errors import InputError
from paradl.grids.reading.yamlfile import explain_error, load

TEXT = """\
name: study   # line 1

axes:
  pe: {range: [1, 4]}
  batch:
    - 1e3
    - 2.5e-6
"""


def written(tmp_path: Path, content: str | bytes) -> Path:
    path = tmp_path / "spec.yaml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_numbers_with_an_exponent_are_numbers(tmp_path: Path) -> None:
    document = load(written(tmp_path, TEXT))
    assert document.data["axes"] == {"pe": {"range": [1, 4]}, "batch": [1000.0, 2.5e-6]}


def test_a_number_with_a_unit_behind_its_exponent_is_a_text(tmp_path: Path) -> None:
    file = tmp_path / "a.yaml"
    file.write_text("bandwidth: 1e9 B/s\n")
    assert load(file).data == {"bandwidth": "1e9 B/s"}


@pytest.mark.parametrize("number", ["1:30", "1:30.5", "010", "-010"])
def test_numbers_to_other_bases_are_texts(tmp_path: Path, number: str) -> None:
    """YAML 1.1 takes them for 90, 90.5, 8 and -8, while 1:64 and 08 are texts there, too."""
    assert load(written(tmp_path, f"pe: {number}\nbatch: [0, 0x10, 00.5]\n")).data == {
        "pe": number,
        "batch": [0, 16, 0.5],
    }


@pytest.mark.parametrize(
    ("keypath", "line"),
    [
        (("name",), 1),
        (("axes", "pe", "range", 1), 4),
        (("axes", "batch", 1), 7),
        (("axes", "missing"), 3),  # the nearest part that is there
        (("missing",), None),
    ],
)
def test_line(tmp_path: Path, keypath: tuple[str | int, ...], line: int | None) -> None:
    assert load(written(tmp_path, TEXT)).line(keypath) == line


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", ":"),
        ("- 1", ":"),
        ("a: [1", ":1: YAML syntax: "),
        ("a: 1\nb: 2\na: 3", ":3:"),
        ("a: !!python/object:os.system {}", ":1:"),
        ("a: &x [*x]", ":1:"),
        ("a: 1\n---\nb: 2", ":2: YAML syntax: "),
        ("a: 2020-99-99", ":"),
        ("a: \x00", ": YAML syntax: "),
        (b"a: 1\nb: \xff", ":2:"),
        ("a: 1".encode("utf-16"), ":1:"),
        ("[" * 100_000, ":1:"),
        ("? " * 100_000, ":1:"),
        # For an unsuitable tag, PyYAML's own constructors raise various errors.
        ("a: !!timestamp x", ":1:"),
        ("a: !!bool maybe", ":1:"),
        ("? [a]\n: b", ":1:"),
        ("? {a: b}\n: b", ":1:"),
        ("a:\n  null: b", ":2:"),
        ("1: b", ":1:"),
        ("=: b", ":1:"),
        ("a: =", ":1: YAML syntax: could not determine a constructor"),
        ("<<: 3", ":1:"),
        ("a: &a {<<: *a}", ":1:"),
        (f"a: {'9' * 401}", ":1:"),
        (f"a: 0x{'f' * 10_000}", ":1:"),
        (f"a: {':'.join(['59'] * 300)}", ":1:"),
        ('a: "\\ud800"', ":1:"),
        ('a: "\\0"', ":1:"),
        ('a: "\\e[31m"', ":1:"),
        ("#" * 500_001, ":"),
    ],
)
def test_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_a_json_file_is_not_told_of_yaml(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    for content, message in (
        ('{"a": [1,', ":1: JSON syntax: "),
        ("", ": .* write {"),
        ("[1]", ":"),
    ):
        path.write_text(content)
        with pytest.raises(InputError, match=f"^{path}{message}") as error:
            load(path)
        assert "YAML" not in str(error.value)


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; check the path"):
        load(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="expected a file, got a folder; name a file"):
        load(tmp_path)
    with pytest.raises(InputError, match=r"cannot be read: .*embedded null"):
        load(tmp_path / "a\0b")
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        load(tmp_path / ("a" * 300))


def test_what_has_no_end_is_no_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.yaml"
    os.mkfifo(pipe)
    for path in (pipe, Path("/dev/zero")):
        with pytest.raises(InputError, match="expected a file, got a device or a pipe"):
            load(path)


BOMBS = {
    "values": "a0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    + "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)),
    "keys": "a0: &a0 {x: 1}\n"
    + "\n".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}" for n in range(1, 9)),
}


@pytest.mark.parametrize("name", BOMBS)
def test_aliases_that_stand_for_too_much(tmp_path: Path, name: str) -> None:
    assert len(BOMBS[name]) < 600
    with pytest.raises(InputError, match=r":[56]: YAML syntax: more than 30,000 values"):
        load(written(tmp_path, BOMBS[name]))


def test_aliases_that_nest_endlessly(tmp_path: Path) -> None:
    steps = "{residual: [" * 40 + "relu" + "]}" * 40
    lines = [f"a{n}: &a{n} {steps.replace('relu', f'*a{n - 1}')}" for n in range(1, 12)]
    text = "\n".join(["a0: &a0 relu", *lines, "name: deep", "rank: 2", "layers: [*a11]"])
    with pytest.raises(InputError, match="residual"):
        find("model", str(written(tmp_path, text)), tmp_path)


def test_aliases_and_merges_that_spare_typing_are_read(tmp_path: Path) -> None:
    text = "a: &a {x: 1, y: 2}\nb: {<<: *a, y: 3}\nc: [*a, *a]"
    data = load(written(tmp_path, text)).data
    assert data["b"] == {"x": 1, "y": 3}
    assert data["c"] == [data["a"], data["a"]]


def test_marks_and_ends_of_lines_of_other_systems(tmp_path: Path) -> None:
    path = written(tmp_path, b"\xef\xbb\xbf" + TEXT.replace("\n", "\r\n").encode())
    assert load(path).data == load(written(tmp_path, TEXT)).data


class Part(Record):
    pes: Count
    latency: float = 0.0


class Whole(Record):
    name: str
    levels: Annotated[tuple[Part, ...], Field(min_length=1)]
    other: Part | None = None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name: a\nlevels: [{pes: 1}]\nlevles: 1", ":3: levles:"),
        ("name: a\nlevels:\n- pse: 1\n  pes: 1", ":3: levels.0.pse:"),
        ("name: a\nlevels: [{pes: 1}]\nother: {pe: 1, pes: 1}", ":3: other.pe:"),
        ("name: a\nlevels:\n- {pes: -1}", ":3: levels.0.pes:"),
        ("name: a\nlevels:\n- {}", ":3: levels.0.pes:"),
        ("name: a\nlevels: 3", ":2: levels:"),
        ("name: a\nlevels: [3]", ":2: levels.0:"),
        ("name: a\nlevels: [{pes: 0}]", ":2: levels.0.pes:"),
        ("name: a\nlevels: [{pes: true}]", ":2: levels.0.pes:"),
    ],
)
def test_explain(tmp_path: Path, content: str, message: str) -> None:
    document = load(written(tmp_path, content))
    with pytest.raises(ValidationError) as error:
        Whole.model_validate(document.data)
    messages = str(explain_error(error.value, document, Whole))
    assert messages.startswith(f"{document.path}{message}")
    assert "\n" not in messages


def test_explain_shows_the_first_errors() -> None:
    with pytest.raises(ValidationError) as error:
        Whole.model_validate({"name": "a", "levels": [{"pes": -1}] * 7})
    lines = str(explain_error(error.value, "the spec")).splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("the spec: levels.0.pes: ")
    assert lines[-1] == "... and 2 more"
