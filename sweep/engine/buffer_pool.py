"""Buffers: the memory of blocks that are written, kept for those to come.

A block has tens of megabytes. Memory that the system has just handed out is slow to touch first:
evaluating a block into it takes 1.5 to 2.6 times as long as into memory that is there (2
cores, 2026-11, 2**22 cells).
"""

from threading import Lock

import jax.numpy as jnp
from jax import Array

from sweep.cube.variables import VARIABLES

Buffers = dict[str, Array]


class Spare:
    """Buffers of blocks of one size; those of another size are let go."""

    def __init__(self) -> None:
        self._size: tuple[object, ...] = ()
        self._free: list[Buffers] = []
        self._lock = Lock()

    def take(self, places: int, shape: tuple[int, ...], names: tuple[str, ...]) -> Buffers:
        """Arrays [places, cells]; what is in them means nothing."""
        size = places, shape, frozenset(names)
        with self._lock:
            if self._size != size:
                self._size, self._free = size, []
            # Under the lock only what is quick: arrays are made outside of it.
            if self._free:
                return self._free.pop()
        # JAX's own arrays: `kernels.blocks.fill` writes in them, donated, and gives them back,
        # which it cannot with numpy's. Zeros, as jnp.empty writes them, too (JAX 0.10.2).
        return {name: jnp.zeros((places, *shape), VARIABLES[name].dtype) for name in names}

    def give(self, buffers: Buffers) -> None:
        """Arrays that nobody reads any more."""
        with self._lock:
            if buffers and _measure(buffers) == self._size:
                self._free.append(buffers)


def _measure(buffers: Buffers) -> tuple[object, ...]:
    places, *shape = next(iter(buffers.values())).shape
    return places, tuple(shape), frozenset(buffers)


# Of this process: a worker runs its blocks one after the other.
SPARE = Spare()
