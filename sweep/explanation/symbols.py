"""Symbols of an explanation's formulas, each with its meaning, value and unit.

As in docs/oracle.md and docs/machine.md.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from grids.entries.parameters import DEGREES, PARAMETERS
from kernels.names.parallelisms import KINDS, NESTING

Row = dict[str, Any]


@dataclass(frozen=True)
class Symbol:
    """A symbol's meaning and unit, and the key of an answer that has its value, if any."""

    meaning: str
    unit: str = "1"
    value: str | None = None


# In the order of the legend. Symbols without a value differ by layer, or by message.
SYMBOLS = {
    "p": Symbol("PEs (ranks)", value="pe"),
    "p1": Symbol("replicas", value="replicas"),
    "p2": Symbol("PEs of a replica's group", value="group"),
    **{
        KINDS[name].symbol: Symbol(KINDS[name].counts, value=name)
        for name in NESTING
        if KINDS[name].alone is None
    },
    "b": Symbol("samples of one pass through a replica", value="batch"),
    "B": Symbol("samples of an iteration, B = A b p1", value="global_batch"),
    "D": Symbol("samples of an epoch", value="samples"),
    "I": Symbol("iterations of an epoch", value="iterations"),
    "A": Symbol("passes before gradients are exchanged", value="accumulate"),
    "S": Symbol("segments (micro-batches) of a pipeline, or of a placement", value="segments"),
    "a": Symbol("an item of a tensor", "B", "delta"),
    "delta": Symbol("an item of a tensor, or a weight", "B", "delta"),
    "g": Symbol("a weight's gradient", "B", "gradient_delta"),
    "gamma": Symbol("the part of the memory that buffer reuse leaves", value="gamma"),
    "BW": Symbol("memory bandwidth of a PE", "B/s", "memory_bandwidth"),
    "SB": Symbol("bandwidth through host memory", "B/s", "staging_bandwidth"),
    "o": Symbol("time in which the host launches a layer in a pass", "s", "layer_overhead"),
    "G_o": Symbol("layers that a PE's host launches in a pass"),
    "X": Symbol("time of the device alone, in a pass or a segment", "s"),
    "L_c": Symbol("convolutions that a filter or spatial group exchanges"),
    "tau": Symbol("time in which a PE opens its log files", "s", "log_open"),
    "phi": Symbol("contention of a flow: multiplies beta", value="phi"),
    "FW": Symbol("forward pass of a layer, per sample", "s"),
    "FW_Gi": Symbol("forward pass of stage i's layers, per sample", "s"),
    "BW_Gi": Symbol("backward pass of stage i's layers, per sample", "s"),
    "WU": Symbol("update of a layer's weights, per iteration", "s"),
    "s": Symbol("1 where the group splits a layer, else 0"),
    "s_l": Symbol("forward and backward pass of a layer, per sample", "s"),
    "n_l": Symbol("segments of a layer that are on the critical path"),
    "f_l": Symbol("time of a layer in each pass, whatever its samples", "s"),
    "x": Symbol("items that go into a layer, per sample"),
    "y": Symbol("items that come out of a layer, per sample"),
    "x_1": Symbol("items of a sample"),
    "y_split": Symbol("items that come out of the last split layer, per sample"),
    "y_Gi": Symbol("items that come out of stage i, per sample"),
    "w": Symbol("weights of a layer"),
    "bi": Symbol("biases of a layer"),
    "c": Symbol("items per sample that cross a cut between stages"),
    "halo": Symbol("items per sample that neighbours swap at a layer"),
    "AR": Symbol("all-reduce of m bytes; in a ring of q PEs 2 (q-1) (alpha + m/q beta)", "s"),
    "AG": Symbol("all-gather of m bytes; in a ring of q PEs (q-1) (alpha + m/q beta)", "s"),
    "RS": Symbol("reduce-scatter, as long as AG", "s"),
    "q": Symbol("PEs of a ring; here that of the gradients", value="ring"),
    "m": Symbol("bytes of a message", "B"),
    "m_s": Symbol("bytes of gradients that go through host memory", "B"),
    "T": Symbol("the exchange alone", "s"),
    "K": Symbol("messages that the gradients are sent in"),
    "P": Symbol("one message from stage to stage", "s"),
    "u": Symbol("times that an output is moved: by filter 2, by channel 1"),
    "n": Symbol("as the formula says, else nodes: max(1, p / PEs of a node)"),
    "N": Symbol("samples that a node needs per iteration"),
    "z": Symbol("how far the slowest of n is from the mean, in standard deviations"),
    "slow": Symbol("time of the part of a message above 256 MiB", "s"),
    "hidden": Symbol("communication that passes while PEs compute", "s"),
}
# Table III has no memory bandwidth.
OF_TABLE_III = {"BW": Symbol("backward pass of a layer, per sample", "s")}
# In every legend: the configuration.
ALWAYS = ("p", "p1", "p2", "b", "B", "D", "I")
# alpha and beta by path: their name in an answer, their meaning, and the terms that have them.
PATHS = {
    "group": ("inside a group", ("layer_collectives", "point_to_point")),
    "replica": ("across replicas", ("gradient_exchange",)),
    "halo": ("between neighbours that divide samples", ("halo_exchange", "split_gather")),
}
# A formula's names; a word behind an apostrophe is none.
NAME = re.compile(r"(?<![\w'])[A-Za-z_]\w*")


def list_symbols(formulas: Mapping[str, str], values: Mapping[str, Any], oracle: str) -> list[Row]:
    """A row for each symbol that formulas name: what it means, its value, SI unit.

    formulas: by term, or part of the memory. value: None where it differs from layer to layer.
    """
    named = {name for text in formulas.values() for name in NAME.findall(text)}
    known = SYMBOLS | (OF_TABLE_III if oracle == "paper" else {})
    rows = [
        _describe(name, symbol, values)
        for name, symbol in known.items()
        if name in named or name in ALWAYS
    ]
    return [*rows, *_list_paths(formulas, values), *_list_parameters(named - set(known), values)]


def _describe(name: str, symbol: Symbol, values: Mapping[str, Any]) -> Row:
    value = None if symbol.value is None else values.get(symbol.value)
    return {"symbol": name, "meaning": symbol.meaning, "value": value, "unit": symbol.unit}


def _list_paths(formulas: Iterable[str], values: Mapping[str, Any]) -> list[Row]:
    """Rows of alpha and beta of each path that a term takes."""
    rows = []
    for path, (where, terms) in PATHS.items():
        if not set(terms) & set(formulas):
            continue
        start_up = Symbol(f"start-up of a message {where}", "s", f"{path}_latency")
        rows.append(_describe(f"alpha ({path})", start_up, values))
        bandwidth = values[f"{path}_bandwidth"]
        byte = Symbol(f"time of a byte {where}", "s/B", "beta")
        rows.append(_describe(f"beta ({path})", byte, {"beta": 1 / bandwidth}))
    return rows


def _list_parameters(names: Iterable[str], values: Mapping[str, Any]) -> list[Row]:
    """Rows of oracle parameters, which formulas call by their names."""
    return [
        _describe(name, Symbol(PARAMETERS[name].meaning, PARAMETERS[name].unit, name), values)
        for name in PARAMETERS
        if name in names and name not in DEGREES  # which have symbols in formulas
    ]
