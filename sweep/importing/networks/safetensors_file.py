"""Parameters in the headers of safetensors files: names, types and shapes; no weight is read.

A file begins with the length of its header (8 bytes, little endian) and the header in JSON:
{"NAME": {"dtype": "BF16", "shape": [4096, 4096], "data_offsets": [0, 33554432]}, ...}.
"""

import math
from collections.abc import Sequence
from pathlib import Path

from paradl.grids.models.layers import MOST_COUNT
from paradl.grids.reading.errors import InputError, shorten
from paradl.grids.reading.textfile import open_file, parse_json

# [B] The format allows 100 MB. That of 100,000 tensors has 10; the most hostile of 16 take 400 MB.
MOST_HEADER = 2**24
MOST_DIMENSIONS = 16
# Tensors that are no parameters: statistics of batch normalisations, and counters.
BUFFERS = ("running_mean", "running_var", "num_batches_tracked", "inv_freq", "position_ids")


def count_parameters(paths: Sequence[Path]) -> int:
    """Count the parameters of all parts of a checkpoint. InputError: a bad file, a name twice."""
    sizes: dict[str, int] = {}
    for path in paths:
        for name, shape in _read_shapes(path).items():
            # Two parts of different checkpoints, or one part twice.
            if name in sizes:
                raise InputError(f"the tensor {shorten(name)} stands in two files", where=str(path))
            sizes[name] = math.prod(shape)
    total = sum(size for name, size in sizes.items() if not name.endswith(BUFFERS))
    if total > MOST_COUNT:
        raise InputError(f"its tensors have more than {MOST_COUNT:g} items", where=str(paths[0]))
    return total


def _read_shapes(path: Path) -> dict[str, list[int]]:
    """Return the shapes of a file's tensors, by name."""
    with open_file(path) as file:
        length = int.from_bytes(file.read(8), "little")
        text = file.read(min(length, MOST_HEADER))
    if not 2 <= len(text) == length:
        what = f"no safetensors file, cut off, or a header of more than {MOST_HEADER:,} bytes"
        raise InputError(what, where=str(path))
    header = parse_json(text, path)
    try:
        shapes = {n: entry["shape"] for n, entry in header.items() if n != "__metadata__"}
    except (AttributeError, KeyError, TypeError):
        raise InputError("its header is damaged", where=str(path)) from None
    for shape in shapes.values():
        is_short = isinstance(shape, list) and len(shape) <= MOST_DIMENSIONS
        if not is_short or not all(type(n) is int and 0 <= n <= MOST_COUNT for n in shape):
            raise InputError(f"its header has the shape {shorten(shape)}", where=str(path))
    return shapes
