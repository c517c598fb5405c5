"""Compiled programs kept on disk: only the first run on a machine compiles, workers share."""

from pathlib import Path

import jax
from platformdirs import user_cache_path


def keep_programs() -> None:
    """Turn JAX's persistent cache on, unless the user has set one up, or there is no place."""
    if jax.config.values["jax_compilation_cache_dir"] is not None:
        return
    # One folder for all runs of a user: workers that share a home share programs (docs/scale.md).
    folder: Path = user_cache_path("paradl") / "programs"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return
    jax.config.update("jax_compilation_cache_dir", str(folder))
    # The programs are small and many: keep each, however quickly it was compiled.
    # JAX 0.10.2 keeps by default what took a second or more to compile, and at a least size of 0 it
    # may choose one of its own for some file systems; -1 leaves it no choice.
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
