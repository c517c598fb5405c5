"""Formulas of a transformer's layout: its time by term, and its memory by part."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from paradl.kernels.names.layout_terms import LAYOUT_TERMS
from paradl.kernels.parallelism.alignment import count_level_pes
from paradl.kernels.work.layouts import COLUMNS
from paradl.sweep.cases.layout_cells import LayoutCell
from paradl.sweep.explanation.formulas import describe_largest
from paradl.sweep.explanation.layout_memory import explain_memory

Row = dict[str, Any]

# Symbols of formulas (docs/machine.md): meaning, column or number that they are, unit. Those
# without a number vary by block or by message.
SYMBOLS: Mapping[str, tuple[str, str | None, str]] = {
    "p": ("PEs", "pes", "1"),
    "p1": ("replicas", "data", "1"),
    "q_p": ("stages of the pipeline", "pipeline", "1"),
    "t": ("PEs that share each matrix", "tensor", "1"),
    "c": ("PEs that share each sequence", "context", "1"),
    "e": ("parts of the routed experts", "expert", "1"),
    "v": ("chunks of a stage", "chunks", "1"),
    "N": ("PEs that share states (ZeRO), apart from experts'", "shards", "1"),
    "A": ("flushes of an iteration", "flushes", "1"),
    "S": ("micro-batches of a flush", "micro_batches", "1"),
    "u": ("tokens of a micro-batch on a PE", "tokens", "1"),
    "h": ("features between blocks", "hidden", "1"),
    "s": ("tokens of a sequence", "length", "1"),
    "V": ("words of the vocabulary", "vocabulary", "1"),
    "a": ("size of a tensor's item", "item", "B"),
    "a_m": ("mean size of the items of a product's matrices", "mean_item", "B"),
    "g": ("size of a weight's gradient", "gradients", "B"),
    "P": ("peak of products in blocks", "peak", "FLOP/s"),
    "P_w": ("peak of attention and logits", "wide_peak", "FLOP/s"),
    "R": ("share of the peak at which products compute", "reach", "1"),
    "BW": ("memory bandwidth of a PE", "bandwidth", "B/s"),
    "o": ("time for the host to launch a layer in a pass", "launch", "s"),
    "product_moves": (
        "times that a product's three matrices cross the memory",
        *("product_moves", "1"),
    ),
    "k": ("experts that a token uses", None, "1"),
    "sigma": ("t with sequence parallelism, else 1", "sigma", "1"),
    "W": ("parameters on a PE", None, "1"),
    "G_o": ("tensors that blocks keep, each with a launch, and messages", None, "1"),
    "m": ("bytes of a message", None, "B"),
    "used": ("PEs of each node, or NVLink domain, that whole groups use", "used", "1"),
}


def explain_layout(cell: LayoutCell, predicted: Mapping[str, Any]) -> Row:
    """Explain a layout: formulas, memory and symbols; it has no list of layers.

    predicted: the answer of `predict` for the cell.
    """
    times = {name: seconds for name, seconds in predicted["terms"].items() if seconds}
    shares = {name: seconds / predicted["epoch_time"] for name, seconds in times.items()}
    return {
        "sentence": describe_largest(shares)["sentence"],
        "formulas": [
            {
                "term": name,
                "formula": LAYOUT_TERMS[name].symbols,
                "numbers": f"{seconds / predicted['iterations']:.6g} s",
                "seconds_per_iteration": seconds / predicted["iterations"],
                "seconds_per_epoch": seconds,
                "part": shares[name],
            }
            for name, seconds in times.items()
        ],
        "hidden": _list_hidden(predicted),
        "memory_formulas": _list_memory(cell),
        "symbols": _list_symbols(cell),
        "launch": None,
        "layers": [],
    }


def _list_hidden(predicted: Mapping[str, Any]) -> list[Row]:
    """List communication that overlaps compute: one row per term that has some."""
    rows, iterations = [], predicted["iterations"]
    for name, total in predicted["exchanges"].items():
        exposed = predicted["terms"][name]  # terms have what PEs wait for
        if total > exposed:
            rows.append(
                {
                    "term": name,
                    "formula": "all of its communication - exposed",
                    "numbers": f"{total / iterations:.6g} s - {exposed / iterations:.6g} s",
                    "seconds_per_iteration": (total - exposed) / iterations,
                    "seconds_per_epoch": total - exposed,
                    "part": (total - exposed) / predicted["epoch_time"],
                }
            )
    return rows


def _list_memory(cell: LayoutCell) -> list[Row]:
    """List the parts of the memory, as `fit --layout` does."""
    rows = explain_memory(cell.net, cell.layout, cell.training)
    whole = sum(row["memory"] for row in rows)
    return [
        {
            "part": row["part"],
            "formula": row["formula"],
            "numbers": row["numbers"],
            "bytes": row["memory"],
            "share": row["memory"] / whole,
        }
        for row in rows
    ]


def _list_symbols(cell: LayoutCell) -> list[Row]:
    """List the symbols with their values."""
    net, layout, training = cell.net, cell.layout, cell.training
    recipe = training.recipe
    values = {
        **{name: int(getattr(layout, name)[0]) for name in COLUMNS},
        "pes": int(layout.pes[0]),
        "shards": int(layout.shards[0]) if layout.zero[0] else 1,
        "sigma": int(layout.sigma[0]),
        "micro_batches": int(training.count_micro_batches(layout)[0]),
        "flushes": int(np.ravel(training.count_flushes(layout))[0]),
        "tokens": float(training.count_tokens(layout)[0]),
        "length": training.length,
        **{name: getattr(net, name) for name in ("hidden", "vocabulary")},
        **recipe._asdict(),
        "mean_item": (2 * recipe.read + recipe.item) / 3,
        **vars(cell.rates),
        "used": float(np.ravel(count_level_pes(cell.fabric.stated, layout)[0])[0]),
    }
    return [
        {"symbol": symbol, "meaning": meaning, "value": values.get(name or ""), "unit": unit}
        for symbol, (meaning, name, unit) in SYMBOLS.items()
    ]
