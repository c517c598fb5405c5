from collections.abc import Iterator
from pathlib import Path

import jax
import pytest

from sweep.engine.compile_cache import keep_programs

PLACE = "jax_compilation_cache_dir"


@pytest.fixture(autouse=True)
def unset() -> Iterator[None]:
    """No place for programs yet, as where JAX has just been imported."""
    before = jax.config.values[PLACE]
    jax.config.update(PLACE, None)
    yield
    jax.config.update(PLACE, before)


def keep_in(cache: Path, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Where programs are kept with this folder as the user's cache."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    keep_programs()
    place: str | None = jax.config.values[PLACE]
    return place


def test_programs_are_kept_in_the_users_cache(tmp_path, monkeypatch):
    assert keep_in(tmp_path, monkeypatch) == str(tmp_path / "paradl" / "programs")


def test_the_users_own_place_stays(tmp_path, monkeypatch):
    jax.config.update(PLACE, str(tmp_path / "own"))
    assert keep_in(tmp_path, monkeypatch) == str(tmp_path / "own")


def test_no_place_is_no_fault(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    assert keep_in(tmp_path / "file", monkeypatch) is None
