"""The legend of formulas: the meaning of each symbol, and its value (docs/machine.md, Symbols)."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paradl.grids.entries.parameters import DISCRETE, PARAMETERS
from paradl.kernels.names.parallelisms import KINDS
from paradl.sweep.answers.types.prediction import SymbolRow


@dataclass(frozen=True)
class Symbol:
    """Meaning and unit of a symbol, and the key of the answer with its value, if any."""

    meaning: str
    unit: str = "1"
    value: str | None = None


# In the order of the legend. Symbols without a value vary by layer, block or message.
SYMBOLS = {
    "p": Symbol("PEs (ranks)", value="pe"),
    "p1": Symbol("replicas", value="replicas"),
    "p2": Symbol("PEs of a replica's group", value="group"),
    **{
        KINDS[name].symbol: Symbol(KINDS[name].counts, value=name)
        for name in ("pipeline", "spatial", "filter", "channel")
    },
    "t": Symbol("PEs that share each matrix", value="tensor"),
    "c": Symbol("PEs that share each sequence", value="context"),
    "e": Symbol("parts of the routed experts", value="expert"),
    "v": Symbol("chunks of a stage", value="chunks"),
    "b": Symbol("samples per pass of a replica", value="batch"),
    "B": Symbol("samples per iteration, B = A b p1", value="global_batch"),
    "D": Symbol("samples per epoch", value="samples"),
    "I": Symbol("iterations per epoch", value="iterations"),
    "A": Symbol("passes per exchange of gradients", value="accumulate"),
    "S": Symbol("segments (micro-batches) of a pass, or of a placement", value="segments"),
    "i": Symbol("the fullest stage, from 0"),
    "u": Symbol("tokens of a micro-batch on a PE", value="tokens"),
    "h": Symbol("features between blocks", value="features"),
    "s": Symbol("tokens of a sequence", value="length"),
    "V": Symbol("words of the vocabulary", value="vocabulary"),
    "k": Symbol("experts that a token uses"),
    "sigma": Symbol("t with sequence parallelism, else 1", value="sigma"),
    "a": Symbol("size of a tensor's item", "B", "delta"),
    "a_m": Symbol("mean size of the items of a product's matrices", "B", "mean_item"),
    "delta": Symbol("size of a tensor's item, or of a weight", "B", "delta"),
    "g": Symbol("size of a weight's gradient", "B", "gradient_delta"),
    "gamma": Symbol("fraction of the memory that remains with buffer reuse", value="gamma"),
    "P": Symbol("peak of products in blocks", "FLOP/s", "peak"),
    "P_w": Symbol("peak of attention and logits", "FLOP/s", "wide_peak"),
    "R": Symbol("share of the peak at which products compute", value="reach"),
    "BW": Symbol("memory bandwidth of a PE", "B/s", "memory_bandwidth"),
    "SB": Symbol("bandwidth through host memory", "B/s", "staging_bandwidth"),
    "o": Symbol("time for the host to launch a layer in a pass", "s", "layer_overhead"),
    "G_o": Symbol("layers, or tensors of blocks, that the host launches on a PE in a pass"),
    "X": Symbol("time of the device alone, per pass or segment", "s"),
    "L_c": Symbol("convolutions whose outputs a filter or spatial group exchanges"),
    "tau": Symbol("time for a PE to open its log files", "s", "log_open"),
    "phi": Symbol("contention of a flow: multiplies beta", value="phi"),
    "FW": Symbol("forward pass of a layer, per sample", "s"),
    "FW_Gi": Symbol("forward pass of stage i's layers, per sample", "s"),
    "BW_Gi": Symbol("backward pass of stage i's layers, per sample", "s"),
    "WU": Symbol("update of a layer's weights, per iteration", "s"),
    "s_l": Symbol("forward and backward pass of a layer, per sample", "s"),
    "n_l": Symbol("segments of a layer on the critical path"),
    "f_l": Symbol("fixed time of a layer per pass, whatever the batch", "s"),
    "x": Symbol("input items of a layer, per sample"),
    "y": Symbol("output items of a layer, per sample; columns of a product in a block"),
    "x_1": Symbol("items of a sample"),
    "y_split": Symbol("output items of the last split layer, per sample"),
    "y_Gi": Symbol("output items of stage i, per sample"),
    "w": Symbol("weights of a layer"),
    "bi": Symbol("biases of a layer"),
    "W": Symbol("parameters on a PE"),
    "halo": Symbol("items that neighbours exchange at a layer, per sample"),
    "AR": Symbol("all-reduce of m bytes; in a ring of q PEs 2 (q-1) (alpha + m/q beta)", "s"),
    "AG": Symbol("all-gather of m bytes; in a ring of q PEs (q-1) (alpha + m/q beta)", "s"),
    "RS": Symbol("reduce-scatter; takes as long as AG", "s"),
    "A2A": Symbol("all-to-all of m bytes", "s"),
    "q": Symbol("PEs in a ring; the value is that of gradients", value="ring"),
    "m": Symbol("bytes of a message", "B"),
    "m_s": Symbol("bytes of gradients that pass through host memory", "B"),
    "T": Symbol("time of the exchange by itself", "s"),
    "K": Symbol("messages into which gradients are grouped"),
    "P2P": Symbol("time of one message between stages", "s"),
    "n": Symbol("as the formula says; otherwise nodes: max(1, p / PEs per node)"),
    "N": Symbol("PEs that share the states of the same weights (ZeRO)", value="shards"),
    "B_n": Symbol("samples that a node needs per iteration"),
    "z": Symbol("how far the slowest of n is from the mean, in standard deviations"),
    "slow": Symbol("time of the part of a message above 256 MiB", "s"),
    "hidden": Symbol("communication that overlaps compute", "s"),
    "used": Symbol("PEs of each node, or NVLink domain, that whole groups use", value="used"),
}
# Table III has no memory bandwidth, and no sequences.
TABLE_III_SYMBOLS = {
    "BW": Symbol("backward pass of a layer, per sample", "s"),
    "s": Symbol("1 for layers that the group splits, else 0"),
}
# The configuration's symbols, which every legend has as far as they have a value.
ALWAYS = ("p", "p1", "p2", "b", "B", "D", "I", "used")
# Paths with an alpha and a beta, by the prefix of their keys: location, and terms that use them.
PATHS = {
    "group": ("inside a group", ("layer_collectives", "point_to_point")),
    "replica": ("across replicas", ("gradient_exchange",)),
    "halo": ("between neighbours that divide samples", ("halo_exchange", "split_gather")),
}
# Names in a formula: a word after an apostrophe is not one, nor is an x between two factors.
NAME = re.compile(r"(?<![\w'])(?!(?<=\S )x )[A-Za-z_]\w*")


def list_symbols(
    formulas: Iterable[str], terms: Collection[str], values: Mapping[str, Any], oracle: str
) -> list[SymbolRow]:
    """Return one row per symbol in the formulas: meaning, value and SI unit.

    terms: those that are shown. A value is None if it varies by layer.
    """
    # Only symbols that the formulas use, of all that there are.
    named = {name for text in formulas for name in NAME.findall(text)}
    known = SYMBOLS | (TABLE_III_SYMBOLS if oracle == "paper" else {})
    rows = [
        _describe(name, symbol, values)
        for name, symbol in known.items()
        if name in named or (name in ALWAYS and symbol.value in values)
    ]
    parameters = [
        _describe(name, Symbol(row.meaning, row.unit, name), values)
        for name, row in PARAMETERS.items()
        # Formulas have symbols for counts: words such as micro-batch name none.
        if name in named - set(known) and row.free and name not in DISCRETE
    ]
    return [*rows, *_list_paths(terms, values), *parameters]


def _describe(name: str, symbol: Symbol, values: Mapping[str, Any]) -> SymbolRow:
    value = None if symbol.value is None else values.get(symbol.value)
    return {"symbol": name, "meaning": symbol.meaning, "value": value, "unit": symbol.unit}


def _list_paths(shown: Collection[str], values: Mapping[str, Any]) -> list[SymbolRow]:
    """Return rows for the alpha and beta of each path that a term takes."""
    rows: list[SymbolRow] = []
    for path, (where, terms) in PATHS.items():
        bandwidth = values.get(f"{path}_bandwidth")
        if bandwidth is None or not {*terms} & {*shown}:
            continue
        start_up = Symbol(f"start-up of a message {where}", "s", f"{path}_latency")
        rows.append(_describe(f"alpha ({path})", start_up, values))
        # Systems state a bandwidth, formulas multiply by its inverse.
        byte = Symbol(f"time of a byte {where}", "s/B", "beta")
        rows.append(_describe(f"beta ({path})", byte, {"beta": 1 / bandwidth}))
    return rows
