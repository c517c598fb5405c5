"""Parameters in the headers of safetensors files: names, types and shapes; no weight is read.

A file begins with the length of its header (8 bytes, little endian) and the header in JSON:
{"NAME": {"dtype": "BF16", "shape": [4096, 4096], "data_offsets": [0, 33554432]}, ...}.
"""

import json
import math
from collections.abc import Sequence
from pathlib import Path

from grids.reading.errors import InputError

MOST_HEADER = 100 * 2**20  # [B] as the format has it
# Tensors that are no parameters: statistics of batch normalisations, and counters.
BUFFERS = ("running_mean", "running_var", "num_batches_tracked", "inv_freq", "position_ids")


def count_parameters(paths: Sequence[Path]) -> int:
    """Count the parameters of all parts of a checkpoint. InputError: a bad file, a name twice."""
    sizes: dict[str, int] = {}
    for path in paths:
        for name, shape in _read_shapes(path).items():
            # Two parts of different checkpoints, or one part twice.
            if name in sizes:
                raise InputError(f"the tensor {name[:80]!r} stands in two files", where=str(path))
            sizes[name] = math.prod(shape)
    return sum(size for name, size in sizes.items() if not name.endswith(BUFFERS))


def _read_shapes(path: Path) -> dict[str, list[int]]:
    """Return the shapes of a file's tensors, by name."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if not 2 <= length <= MOST_HEADER:
                raise InputError("no safetensors file", where=str(path))
            header = json.loads(file.read(length))
        shapes = {n: entry["shape"] for n, entry in header.items() if n != "__metadata__"}
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from None
    except (ValueError, RecursionError, AttributeError, KeyError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError("its header is damaged", where=str(path)) from None
    if not all(isinstance(shape, list) for shape in shapes.values()) or not all(
        isinstance(size, int) and size >= 0 for shape in shapes.values() for size in shape
    ):
        raise InputError("its header has a shape that is none", where=str(path))
    return shapes
