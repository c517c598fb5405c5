"""Memory is reused, but never while an array or a running program refers to it."""

import gc

import jax
import jax.numpy as jnp
import numpy as np

from paradl.sweep.samples.stream import Room, hand_over


def read_address(array: jax.Array) -> int:
    return array.unsafe_buffer_pointer()


def test_free_memory_is_reused_without_a_copy() -> None:
    room = Room()
    filled = room.take((1000, 7))
    filled[:] = 1.0
    (handed,) = hand_over([filled])
    place = filled.ctypes.data
    assert read_address(handed) == place
    del filled, handed
    gc.collect()
    assert room.take((7, 1000)).ctypes.data == place


def test_memory_of_a_view_is_not_reused() -> None:
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


def test_memory_of_a_running_program_is_not_reused() -> None:
    """JAX returns before a program has run, which then alone refers to its inputs."""
    room = Room()
    sums = []
    double = jax.jit(lambda values: (jnp.sort(values) * 0 + values).sum())
    for number in range(8):
        filled = room.take((200_000,))
        filled[:] = number
        sums.append(double(*hand_over([filled])))
        del filled
    assert [float(total) / 200_000 for total in sums] == list(range(8))
