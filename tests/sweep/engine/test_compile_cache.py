import os
import subprocess
import sys

SHOW = (
    "import jax; from sweep.engine.compile_cache import keep_programs; keep_programs();"
    "print(jax.config.values['jax_compilation_cache_dir'])"
)


def cache(**changes: str) -> str:
    environment = os.environ | changes
    run = subprocess.run(
        [sys.executable, "-c", SHOW], env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout.strip()


def test_programs_are_kept_in_the_users_cache(tmp_path):
    assert cache(XDG_CACHE_HOME=str(tmp_path)) == str(tmp_path / "paradl" / "programs")


def test_the_users_own_place_stays(tmp_path):
    assert cache(JAX_COMPILATION_CACHE_DIR=str(tmp_path)) == str(tmp_path)


def test_no_place_is_no_fault(tmp_path):
    (tmp_path / "file").touch()
    assert cache(XDG_CACHE_HOME=str(tmp_path / "file")) == "None"
