"""The definitions of b, B and I, for arrays of any library.

Symbols: p1 replicas; b samples per replica, B = b p1 samples per iteration; D samples per epoch,
which has I = D/B iterations. A spec's batch is b under weak scaling and B under strong scaling.
"""

from typing import Any, Literal, TypeVar

from paradl.kernels.options import Rounding

Scaling = Literal["weak", "strong"]

# Arrays of numpy, JAX and xarray, and plain numbers.
Numbers = TypeVar("Numbers", bound=Any)


def replica_batch(batch: Numbers, replicas: Numbers, scaling: Scaling) -> Numbers:
    """Return b, samples per replica."""
    # B/p1 need not be whole: such cells are marked `uneven`, and the formulas average.
    b: Numbers = batch if scaling == "weak" else batch / replicas
    return b


def global_batch(batch: Numbers, replicas: Numbers, scaling: Scaling) -> Numbers:
    """Return B, samples per iteration."""
    total: Numbers = batch * replicas if scaling == "weak" else batch
    return total


def iterations(samples: Numbers, global_batch: Numbers, rounding: Rounding) -> Numbers:
    """Return I = D/B, iterations per epoch: exact, or rounded up as data loaders do.

    >>> iterations(1000.0, 300.0, "ceil")
    4.0
    """
    # Rounded up without `ceil`, whose name differs between the libraries.
    count: Numbers = -(-samples // global_batch) if rounding == "ceil" else samples / global_batch
    return count
