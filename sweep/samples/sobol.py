"""Scrambled Sobol sequences, bit for bit those of `scipy.stats.qmc.Sobol`.

Importing scipy.stats takes 1 s of CPU, of the 16 s of 50,000 rows (2026-11). Directions: Joe, Kuo,
"Constructing Sobol sequences with better two-dimensional projections", SIAM J. Sci. Comput., 2008.
Scrambling: Matousek, "On the L2-discrepancy for anchored boxes", J. Complexity, 1998.
"""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from kernels.names.arrays import Floats

# A sequence has 2**BITS points.
BITS = 30
WEIGHTS = np.uint32(1) << np.arange(BITS, dtype=np.uint32)
# Their new-joe-kuo-6, a dimension after the other: a primitive polynomial, whose coefficients are
# bits, and the first direction numbers. As many dimensions as a spec may have axes, and more.
DIRECTIONS = """
1; 3 1; 7 1 3; 11 1 3 1; 13 1 1 1; 19 1 1 3 3; 25 1 3 5 13; 37 1 1 5 5 17; 41 1 1 5 5 5; 47 1 1 7 11
19; 55 1 1 5 1 1; 59 1 1 1 3 11; 61 1 3 5 5 31; 67 1 3 3 9 7 49; 91 1 1 1 15 21 21; 97 1 3 1 13 27
49; 103 1 1 1 15 7 5; 109 1 3 1 15 13 25; 115 1 1 5 5 19 61; 131 1 3 7 11 23 15 103; 137 1 3 7 13 13
15 69; 143 1 1 3 13 7 35 63; 145 1 3 5 9 1 25 53; 157 1 3 1 13 9 35 107; 167 1 3 1 5 27 61 31; 171 1
1 5 11 19 41 61; 185 1 3 5 3 3 13 69; 191 1 1 7 13 1 19 1; 193 1 3 7 5 13 19 59; 203 1 1 3 9 25 29
41; 211 1 3 5 13 23 1 55; 213 1 3 7 3 13 59 17; 229 1 3 1 3 5 53 69; 239 1 1 5 5 23 33 13; 241 1 1 7
7 1 61 123; 247 1 1 7 9 13 61 49; 253 1 3 3 5 3 55 33; 285 1 3 1 15 31 13 49 245; 299 1 3 5 15 31 59
63 97; 301 1 3 1 11 11 11 77 249; 333 1 3 1 11 27 43 71 9; 351 1 1 7 15 21 11 81 45; 355 1 3 7 3 25
31 65 79; 357 1 3 1 1 19 11 3 205; 361 1 1 5 9 19 21 29 157; 369 1 3 7 11 1 33 89 185; 391 1 3 3 3
15 9 79 71; 397 1 3 7 11 15 39 119 27; 425 1 1 3 1 11 31 97 225; 451 1 1 1 3 23 43 57 177; 463 1 3 7
7 17 17 37 71; 487 1 3 1 5 27 63 123 213; 501 1 1 3 5 11 43 53 133; 529 1 3 5 5 29 17 47 173 479;
539 1 3 3 11 3 1 109 9 69; 545 1 1 1 5 17 39 23 5 343; 557 1 3 1 5 25 15 31 103 499; 563 1 1 1 11 11
17 63 105 183; 601 1 1 5 11 9 29 97 231 363; 607 1 1 5 15 19 45 41 7 383; 617 1 3 7 7 31 19 83 137
221; 623 1 1 1 3 23 15 111 223 83; 631 1 1 5 13 31 15 55 25 161; 637 1 1 3 13 25 47 39 87 257; 647 1
1 1 11 21 53 125 249 293; 661 1 1 7 11 11 7 57 79 323; 675 1 1 5 5 17 13 81 3 131; 677 1 1 7 13 23 7
65 251 475; 687 1 3 5 1 9 43 3 149 11; 695 1 1 3 13 31 13 13 255 487; 701 1 3 3 1 5 63 89 91 127;
719 1 1 3 3 1 19 123 127 237; 721 1 1 5 7 23 31 37 243 289; 731 1 1 5 11 17 53 117 183 491; 757 1 1
1 5 1 13 13 209 345; 761 1 1 3 15 1 57 115 7 33; 787 1 3 1 11 7 43 81 207 175; 789 1 3 1 1 15 27 63
255 49; 799 1 3 5 3 27 61 105 171 305; 803 1 1 5 3 1 3 57 249 149
"""
MOST_DIMENSIONS = DIRECTIONS.count(";") + 1


def draw_sobol(rng: np.random.Generator, dimensions: int, first: int, count: int) -> Floats:
    """Draw points `first` to `first + count` of the sequence that a generator scrambles.

    Returns fractions in [0, 1) [dimension, point].
    """
    # As scipy does.
    rng = rng.spawn(1)[0]
    shape = dimensions, BITS
    shift = rng.integers(2, size=shape, dtype=np.uint32) @ WEIGHTS
    scramble = np.tril(rng.integers(2, size=(*shape, BITS), dtype=np.uint32), -1)
    scramble[:, range(BITS), range(BITS)] = 1
    used = (first + count - 1).bit_length()
    bits = scramble @ _find_directions(dimensions)[..., :used] & 1
    directions = np.einsum("dbn,b->dn", bits, WEIGHTS[::-1])
    # Neighbours in Gray code differ in one direction.
    numbers = np.arange(first, first + count)
    chosen = ((numbers ^ numbers >> 1)[:, None] >> np.arange(used) & 1).astype(np.uint32)
    points = np.bitwise_xor.reduce(directions[:, None] * chosen, axis=-1) ^ shift[:, None]
    return np.asarray(points / 2.0**BITS)


@cache
def _find_directions(dimensions: int) -> NDArray[np.uint32]:
    """Return the directions' bits, the highest first [dimension, bit, direction]."""
    lines = [list(map(int, line.split())) for line in DIRECTIONS.split(";")[:dimensions]]
    found = [_extend_directions(polynomial, given) for polynomial, *given in lines]
    descending = np.arange(BITS, dtype=np.uint32)[::-1]
    values = np.array(found, np.uint32) << descending
    return np.asarray(values[:, None] >> descending[:, None] & 1, np.uint32)


def _extend_directions(polynomial: int, given: list[int]) -> list[int]:
    """Return BITS direction numbers, by the recurrence of a polynomial."""
    numbers, degree = given or [1] * BITS, len(given)
    while len(numbers) < BITS:
        number = numbers[-degree]
        for back in range(1, degree + 1):
            if polynomial >> (degree - back) & 1:
                number ^= numbers[-back] << back
        numbers.append(number)
    return numbers
