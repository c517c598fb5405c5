"""Numbers of every strategy and both oracles are pinned to the last bit.

A refactoring leaves tests/data/pins.json unchanged. A changed formula needs new pins
(tests/helpers/pinned_spaces.py) and a note in CHANGELOG.md of what moved and by how much.
"""

import json
from pathlib import Path

import pytest
from pinned_spaces import PINS, SPACES, SWEPT, digest, digest_store

PINNED: dict[str, dict[str, str]] = json.loads(PINS.read_text())


@pytest.mark.parametrize("name", SPACES)
def test_computed_numbers_are_as_pinned(name: str) -> None:
    assert digest(name) == PINNED[name]


@pytest.mark.parametrize("name", SWEPT)
def test_swept_numbers_are_as_pinned(name: str, tmp_path: Path) -> None:
    assert digest_store(name, str(tmp_path / "cube")) == PINNED[f"swept: {name}"]
