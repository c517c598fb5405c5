"""Scans over positions as one operator each: loops of PyTorch code that kernels stand for.

Traced, Mamba's loop is six operators for each position of each layer: 161 s for 24 layers. Networks
of transformers call it by a name of their module, as others do the kernels of mamba-ssm and of fla.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, wraps
from importlib import import_module
from inspect import signature
from typing import Any

from paradl.grids.models.steps.state_spaces import count_delta, count_pieces, count_selective


def _count_selective(u: Any, delta: Any, decay: Any, *_: Any) -> float:
    """Nine operations for each number of the state (Gu and Dao 2023, arXiv 2312.00752)."""
    return float(count_selective(u.numel(), decay.shape[-1]))


def _count_pieces(x: Any, dt: Any, decay: Any, b: Any, c: Any, piece: int = 256) -> float:
    """Scores and sums in a piece, states made and read (Dao and Gu 2024, arXiv 2405.21060)."""
    sizes = min(piece, x.shape[1]), b.shape[2:].numel(), x.shape[2:].numel(), b.shape[-1]
    return float(x.shape[:2].numel() * count_pieces(*sizes))


def _count_delta(q: Any, k: Any, v: Any, g: Any, beta: Any, piece: int = 64) -> float:
    """As above, with a triangle solved in each piece (Yang et al. 2024, arXiv 2412.06464)."""
    sizes = min(piece, v.shape[1]), k.shape[-1], v.shape[-1]
    return float(v.shape[:3].numel() * count_delta(*sizes))


# Operations of a forward pass by a function's arguments, of which the output is like one.
SCANS: dict[str, tuple[Callable[..., float], int]] = {
    **dict.fromkeys(("mamba_selective_scan", "selective_scan_fn"), (_count_selective, 0)),
    **dict.fromkeys(("mamba2_chunk_scan", "mamba_chunk_scan_combined"), (_count_pieces, 0)),
    **dict.fromkeys(("torch_chunk_gated_delta_rule", "chunk_gated_delta_rule"), (_count_delta, 2)),
}
# Arguments for generation, with which a function returns states, too.
STATES = ("return_last_state", "return_final_states", "output_final_state")


@contextmanager
def replace_scans() -> Iterator[None]:
    """Let modules call an operator by all names of SCANS: `TorchOperators.take_scan` counts it."""
    replaced = []
    try:
        for module in [*sys.modules.values()]:
            names = getattr(module, "__dict__", {})
            for name in [name for name in SCANS if callable(names.get(name))]:
                replaced.append((names, name, names[name]))
                names[name] = _replace(names[name], *SCANS[name])
        yield
    finally:
        for names, name, function in replaced:
            names[name] = function


def _replace(function: Any, count: Callable[..., float], like: int) -> Any:
    operator = _register()

    @wraps(function)
    def scan(*args: Any, **kwargs: Any) -> Any:
        arguments = signature(function).bind(*args, **kwargs).arguments
        if any(arguments.get(name) for name in STATES):
            return function(*args, **kwargs)
        values = [*arguments.values()]
        piece = [arguments["chunk_size"]] if "chunk_size" in arguments else []
        tensors = [value for value in values if hasattr(value, "numel")]
        y = operator(values[like], tensors, count(*values[:5], *piece))
        return (y, None) if count is _count_delta else y

    return scan


@cache
def _register() -> Any:
    """Return the operator, of an output like its first argument."""
    torch: Any = import_module("torch")

    def scan(x: Any, reads: Any, operations: float) -> Any:
        return torch.empty_like(x)

    schema = "(Tensor x, Tensor[] reads, float operations) -> Tensor"
    operator = torch.library.custom_op("paradl::scan", scan, mutates_args=(), schema=schema)
    operator.register_fake(scan)
    return operator
