"""Batches: b, B and I, each of them defined once, for arrays of any library.

Symbols: p1 replicas; b samples a replica, B = b p1 samples an iteration; D samples an epoch, which
has I = D/B iterations. A spec's batch is b under weak scaling and B under strong scaling.
"""

from typing import Any, Literal, TypeVar

Scaling = Literal["weak", "strong"]
Rounding = Literal["exact", "ceil"]

# numpy's, JAX's and xarray's arrays, and plain numbers.
Numbers = TypeVar("Numbers", bound=Any)


def replica_batch(batch: Numbers, replicas: Numbers, scaling: Scaling) -> Numbers:
    """b samples a replica."""
    # B/p1 may be no whole number: such cells are marked `uneven`, and the formulas average.
    b: Numbers = batch if scaling == "weak" else batch / replicas
    return b


def global_batch(batch: Numbers, replicas: Numbers, scaling: Scaling) -> Numbers:
    """B samples an iteration."""
    everyone: Numbers = batch * replicas if scaling == "weak" else batch
    return everyone


def iterations(samples: Numbers, global_batch: Numbers, rounding: Rounding) -> Numbers:
    """I = D/B iterations an epoch: exactly, or rounded up as data loaders do.

    >>> iterations(1000.0, 300.0, "ceil")
    4.0
    """
    # Rounded up without a `ceil`, which each of the libraries calls by another name.
    count: Numbers = -(-samples // global_batch) if rounding == "ceil" else samples / global_batch
    return count
