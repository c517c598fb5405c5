"""The libraries that surrogates need, and the message where one is missing."""

from importlib.util import find_spec

from sweep.errors import RunError

NEEDED = ("equinox", "optax", "safetensors", "lightgbm", "pyarrow")


def expect_extra() -> None:
    """RunError: a library is missing."""
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise RunError(
            f"surrogates need {', '.join(missing)}: install paradl with its extra 'surrogate', "
            "pip install '.[surrogate]'"
        )
