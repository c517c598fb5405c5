from collections.abc import Iterator

import jax
import pytest

from paradl.kernels import programs
from paradl.sweep.engine.compile_cache import keep_programs

OWN = "jax_compilation_cache_dir"


@pytest.fixture(autouse=True)
def unset() -> Iterator[None]:
    """No place for programs yet, as where JAX has just been imported."""
    before, own = programs.find_folder(), jax.config.values[OWN]
    programs.keep_in(None)
    jax.config.update(OWN, None)
    yield
    programs.keep_in(before)
    jax.config.update(OWN, own)


def test_programs_are_kept_in_the_users_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    keep_programs()
    assert programs.find_folder() == tmp_path / "paradl" / "programs"


def test_where_jax_keeps_programs_paradl_keeps_none(tmp_path):
    jax.config.update(OWN, str(tmp_path))
    keep_programs()
    assert programs.find_folder() is None
