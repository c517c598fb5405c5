"""Compiled programs kept on disk: only the first run on a machine compiles, workers share."""

import jax
from platformdirs import user_cache_path

from paradl.kernels import programs


def keep_programs() -> None:
    """Keep programs in the user's cache, unless JAX keeps them in a place of the user's choice."""
    if jax.config.values["jax_compilation_cache_dir"] is None:
        # One folder for all runs: workers that share a home share programs (docs/scale.md).
        programs.keep_in(user_cache_path("paradl") / "programs")
