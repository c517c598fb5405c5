"""Memory is used again, and never while somebody has an array in it."""

import gc

import jax
import jax.numpy as jnp
import numpy as np

from sweep.samples.stream import Room, hand_over


def find(array: jax.Array) -> int:
    return array.unsafe_buffer_pointer()


def test_what_nobody_has_is_used_again_without_a_copy() -> None:
    room = Room()
    filled = room.take((1000, 7))
    filled[:] = 1.0
    (handed,) = hand_over([filled])
    place = filled.ctypes.data
    assert find(handed) == place
    del filled, handed
    gc.collect()
    assert room.take((7, 1000)).ctypes.data == place


def test_what_somebody_has_is_not() -> None:
    room, held = Room(), []
    for number in range(4):
        filled = room.take((1000,))
        filled[:] = number
        (handed,) = hand_over([filled])
        held.append(np.asarray(handed)[10:20])  # a view of a view of JAX's
        del filled, handed
    gc.collect()
    room.take((1000,))[:] = np.nan
    assert [part.tolist() for part in held] == [[number] * 10 for number in range(4)]


def test_what_a_program_has_not_read_yet_is_not() -> None:
    """JAX returns before a program has run: what it reads is then held by it alone."""
    room = Room()
    sums = []
    double = jax.jit(lambda values: (jnp.sort(values) * 0 + values).sum())
    for number in range(20):
        filled = room.take((200_000,))
        filled[:] = number
        sums.append(double(*hand_over([filled])))
        del filled
    assert [float(each) / 200_000 for each in sums] == list(range(20))
