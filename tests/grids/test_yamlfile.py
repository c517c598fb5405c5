"""YAML files: numbers, line numbers, and what is refused."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from grids.entry import Count, Record
from grids.errors import InputError
from grids.yamlfile import explain, load

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
        ("", ": expected a mapping, got nothing"),
        ("- 1", ": expected a mapping, got a list"),
        ("a: [1", ":1: YAML syntax: "),
        ("a: 1\nb: 2\na: 3", ":3: YAML syntax: the key 'a' stands twice"),
        ("a: !!python/object:os.system {}", ":1: YAML syntax: could not determine a constructor"),
        ("a: &x [*x]", ":1: YAML syntax: found unconstructable recursive node"),
        ("a: 1\n---\nb: 2", ":2: YAML syntax: "),
        ("[" * 5000, ": no YAML that can be read"),
        ("a: 2020-99-99", ": no YAML that can be read"),
        ("a: \x00", ": YAML syntax: "),
        (b"a: 1\nb: \xff", ":2: not UTF-8 text"),
    ],
)
def test_refused(tmp_path: Path, content: str | bytes, message: str) -> None:
    path = written(tmp_path, content)
    with pytest.raises(InputError) as error:
        load(path)
    assert str(error.value).startswith(f"{path}{message}")


def test_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file; check the path"):
        load(tmp_path / "missing.yaml")
    with pytest.raises(InputError, match="cannot be read: "):
        load(tmp_path)


class Part(Record):
    pes: Count
    latency: float = 0.0


class Whole(Record):
    name: str
    levels: tuple[Part, ...]
    other: Part | None = None


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "name: a\nlevels: [{pes: 1}]\nlevles: 1",
            ":3: levles: unknown key; did you mean 'levels'?",
        ),
        (
            "name: a\nlevels:\n- pse: 1\n  pes: 1",
            ":3: levels.0.pse: unknown key; did you mean 'pes'?",
        ),
        (
            "name: a\nlevels: []\nother: {pe: 1, pes: 1}",
            ":3: other.pe: unknown key; did you mean 'pes'",
        ),
        ("name: a\nlevels:\n- {}", ":3: levels.0.pes: this key is missing"),
        ("name: a\nlevels: 3", ":2: levels: expected a list, got 3"),
        ("name: a\nlevels: [3]", ":2: levels.0: expected a mapping, got 3"),
        ("name: a\nlevels: [{pes: 0}]", ":2: levels.0.pes: input should be greater than 0, got 0"),
        ("name: a\nlevels: [{pes: true}]", ":2: levels.0.pes: expected a number, got True"),
    ],
)
def test_explain(tmp_path: Path, content: str, message: str) -> None:
    document = load(written(tmp_path, content))
    with pytest.raises(ValidationError) as error:
        Whole.model_validate(document.data)
    assert str(explain(error.value, document, Whole)).startswith(f"{document.path}{message}")


def test_explain_shows_the_first_errors() -> None:
    with pytest.raises(ValidationError) as error:
        Whole.model_validate({"name": "a", "levels": [{"pes": -1}] * 7})
    lines = str(explain(error.value, "the spec")).splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("the spec: levels.0.pes: ")
    assert lines[-1] == "... and 2 more"
