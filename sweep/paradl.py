"""`import paradl`: what `sweep` exports, under the project's name; `python -m paradl`.

An installation has this file at its top (pyproject.toml), beside the package `sweep`.
"""

from typing import Any

import sweep

__all__ = list(sweep.__all__)


def __getattr__(name: str) -> Any:
    if name not in __all__:  # of `__path__`, too: this is no package
        raise AttributeError(f"module 'paradl' has no attribute {name!r}")
    return getattr(sweep, name)


def __dir__() -> list[str]:
    return sorted(__all__)


if __name__ == "__main__":
    from sweep.__main__ import main

    main()
