"""Formulas of the terms of one pass, in symbols and as templates for numbers, and their legend.

Those of the machine oracle are in the table of terms; here are those of Table III and of
placements. Symbols: docs/oracle.md and docs/machine.md.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from paradl.grids.entries.parameters import DEGREES, PARAMETERS
from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.parallelisms import KINDS, NESTING, ParallelismFacts
from paradl.kernels.names.terms import SECONDS, TERMS

Row = dict[str, Any]


@dataclass(frozen=True)
class Formula:
    """A term in symbols, and a template to fill with numbers."""

    symbols: str
    numbers: str


SPLIT = Formula("b sum (FW+BW) (s/p2 + 1-s)", "{b:g} x {work:.6g} s")

FORWARD_BACKWARD = {
    "nothing": Formula("b sum (FW+BW)", "{b:g} x {work:.6g} s"),
    "layers": Formula("b (max FW_Gi + max BW_Gi)", "{b:g} x {work:.6g} s"),
}

MACHINE = {name: Formula(term.symbols, term.numbers) for name, term in TERMS.items()}

# For groups with placed operators (docs/placement.md).
PLACED = {
    "forward_backward": Formula(
        "b/S sum n_l s_l, n_l segments of a layer on the critical path", "{b:g} x {work:.6g} s"
    ),
    "pass_overhead": Formula("sum n_l f_l of the critical path", "{fixed:.6g} s"),
    "launch_wait": Formula(
        "(X^4 + (S G_o o)^4)^(1/4) - X, X the sum of the two terms above",
        "{launches:g} x {layer_overhead:.4g} s to launch, {seconds:.6g} s",
    ),
    "point_to_point": Formula(
        "n alpha + b/S a y beta, n messages and y items a sample on the critical path",
        "{path_messages:g} x {group_latency:.4g} s + {path_bytes:.6g} B"
        " / {group_bandwidth:.4g} B/s",
    ),
}

# For ring collectives; other algorithms are named in front.
OF_TABLE_III = {
    **{name: MACHINE[name] for name in ("pipeline_bubble", "weight_update")},
    "gradient_exchange": Formula(
        "AR(q, m) = 2 (q-1) (alpha + m/q phi beta), m = delta |w|",
        "2 x ({ring:g}-1) x ({replica_latency:.4g} s + {gradient_bytes:.6g} B / {ring:g}"
        " x {phi:g} / {replica_bandwidth:.4g} B/s)",
    ),
    "layer_collectives": Formula(
        "sum over split layers of AG + AR = 3 (p2-1) (n alpha + b delta sum |y| / p2 beta)",
        "3 x ({p2:g}-1) x ({gathers:g} x {group_latency:.4g} s + {gathered_bytes:.6g} B / {p2:g}"
        " / {group_bandwidth:.4g} B/s)",
    ),
    "halo_exchange": Formula(
        "4 n alpha + 2 b delta sum (halo(x) + halo(dL/dy)) phi beta",
        "4 x {halos:g} x {halo_latency:.4g} s + 2 x {halo_bytes:.6g} B x {phi_halo:g}"
        " / {halo_bandwidth:.4g} B/s",
    ),
    "split_gather": Formula(
        "2 AG(p2, m) = 2 (p2-1) (alpha + m/p2 phi beta), m = b delta |y_split|",
        "2 x ({p2:g}-1) x ({halo_latency:.4g} s + {split_bytes:.6g} B / {p2:g} x {phi_gather:g}"
        " / {halo_bandwidth:.4g} B/s)",
    ),
    "point_to_point": Formula(
        "2 (p2+S-2) (alpha + b/S delta max |y_Gi| beta)",
        "2 x ({p2:g}+{segments:g}-2) x ({group_latency:.4g} s + {stage_bytes:.6g} B"
        " / {group_bandwidth:.4g} B/s)",
    ),
}


# For ZeRO: replicas share states, and from stage 3 weights, too.
ZERO = {"weight_update": Formula("sum WU / N", SECONDS)}
GATHERED = Formula(
    "T/K + max(0, T - T/K - hidden), T = (A + 1/2) AR of m = g |w|: 2 A AG and an RS",
    "m = {gradient_bytes:.6g} B, {seconds:.6g} s",
)

# Terms whose numbers hold for any product of parallelisms.
WRITTEN_OUT = ("pass_overhead",)


def select_formulas(parts: tuple[str, ...], zero: int = 0, *, oracle: str) -> dict[str, Formula]:
    """Return the formula of each term for the parallelisms inside a replica, by term.

    zero: the ZeRO stage.
    """
    kinds = [KINDS[name] for name in parts]
    if oracle == "machine":
        places = any(kind.divides == "operators" for kind in kinds)
        single = MACHINE | (PLACED if places else {})
        single |= {name: formula for name, formula in ZERO.items() if zero} | (
            {"gradient_exchange": GATHERED} if zero == 3 else {}
        )
        return single if len(kinds) < 2 else single | _combine(single, kinds)
    # Table III has one parallelism inside a replica.
    divided = kinds[0].divides if kinds else "nothing"
    return {"forward_backward": FORWARD_BACKWARD.get(divided, SPLIT)} | OF_TABLE_III


def _combine(single: dict[str, Formula], kinds: list[ParallelismFacts]) -> dict[str, Formula]:
    """Return formulas of terms in a product of parallelisms, which depend on each other."""
    formulas = {}
    for kind in kinds:
        for term in kind.terms:
            # Alone, the parallelism has degree p2.
            symbols = single[term].symbols.replace("p2", kind.symbol)
            # Inside a pipeline a term recurs for each micro-batch on the critical path.
            for outside in kinds:
                if outside.segmented and outside is not kind:
                    symbols = f"n ({symbols}) of b/S samples, n = {outside.symbol}+S-1"
            numbers = single[term].numbers if term in WRITTEN_OUT else SECONDS
            formulas[term] = Formula(symbols, numbers)
    return formulas


def describe_largest(shares: Mapping[str, float]) -> dict[str, Any]:
    """Describe the term with the largest share: `binds`, `share`, `kind` and a `sentence`.

    shares: fraction of the time by term.
    """
    binds = max(shares, key=shares.__getitem__)
    term = EVERY_TERM[binds]
    passes = binds == "forward_backward"
    name = "the forward and backward passes" if passes else binds.replace("_", " ")
    return {
        "binds": binds,
        "share": shares[binds],
        "kind": term.kind,
        "sentence": f"{shares[binds]:.0%} of the time is {name}: {term.why}.",
    }


@dataclass(frozen=True)
class Symbol:
    """Meaning and unit of a symbol, and the key of the answer with its value, if any."""

    meaning: str
    unit: str = "1"
    value: str | None = None


# In the order of the legend. Symbols without a value vary by layer or by message.
SYMBOLS = {
    "p": Symbol("PEs (ranks)", value="pe"),
    "p1": Symbol("replicas", value="replicas"),
    "p2": Symbol("PEs of a replica's group", value="group"),
    **{
        KINDS[name].symbol: Symbol(KINDS[name].counts, value=name)
        for name in NESTING
        if KINDS[name].alone is None
    },
    "b": Symbol("samples per pass of a replica", value="batch"),
    "B": Symbol("samples per iteration, B = A b p1", value="global_batch"),
    "D": Symbol("samples per epoch", value="samples"),
    "I": Symbol("iterations per epoch", value="iterations"),
    "A": Symbol("passes per exchange of gradients", value="accumulate"),
    "S": Symbol("segments (micro-batches) of a pipeline, or of a placement", value="segments"),
    "S_i": Symbol("segments in flight on stage i, from 0"),
    "a": Symbol("size of a tensor's item", "B", "delta"),
    "delta": Symbol("size of a tensor's item, or of a weight", "B", "delta"),
    "g": Symbol("size of a weight's gradient", "B", "gradient_delta"),
    "gamma": Symbol("fraction of the memory that remains with buffer reuse", value="gamma"),
    "BW": Symbol("memory bandwidth of a PE", "B/s", "memory_bandwidth"),
    "SB": Symbol("bandwidth through host memory", "B/s", "staging_bandwidth"),
    "o": Symbol("time for the host to launch a layer in a pass", "s", "layer_overhead"),
    "G_o": Symbol("layers that the host launches on a PE in a pass"),
    "X": Symbol("time of the device alone, per pass or segment", "s"),
    "L_c": Symbol("convolutions whose outputs a filter or spatial group exchanges"),
    "tau": Symbol("time for a PE to open its log files", "s", "log_open"),
    "phi": Symbol("contention of a flow: multiplies beta", value="phi"),
    "FW": Symbol("forward pass of a layer, per sample", "s"),
    "FW_Gi": Symbol("forward pass of stage i's layers, per sample", "s"),
    "BW_Gi": Symbol("backward pass of stage i's layers, per sample", "s"),
    "WU": Symbol("update of a layer's weights, per iteration", "s"),
    "s": Symbol("1 for layers that the group splits, else 0"),
    "s_l": Symbol("forward and backward pass of a layer, per sample", "s"),
    "n_l": Symbol("segments of a layer on the critical path"),
    "f_l": Symbol("fixed time of a layer per pass, whatever the batch", "s"),
    "x": Symbol("input items of a layer, per sample"),
    "y": Symbol("output items of a layer, per sample"),
    "x_1": Symbol("items of a sample"),
    "y_split": Symbol("output items of the last split layer, per sample"),
    "y_Gi": Symbol("output items of stage i, per sample"),
    "w": Symbol("weights of a layer"),
    "bi": Symbol("biases of a layer"),
    "halo": Symbol("items that neighbours exchange at a layer, per sample"),
    "AR": Symbol("all-reduce of m bytes; in a ring of q PEs 2 (q-1) (alpha + m/q beta)", "s"),
    "AG": Symbol("all-gather of m bytes; in a ring of q PEs (q-1) (alpha + m/q beta)", "s"),
    "RS": Symbol("reduce-scatter; takes as long as AG", "s"),
    "q": Symbol("PEs in a ring; the value is that of gradients", value="ring"),
    "m": Symbol("bytes of a message", "B"),
    "m_s": Symbol("bytes of gradients that pass through host memory", "B"),
    "T": Symbol("time of the exchange by itself", "s"),
    "K": Symbol("messages into which gradients are grouped"),
    "P2P": Symbol("time of one message between stages", "s"),
    "n": Symbol("as the formula says; otherwise nodes: max(1, p / PEs per node)"),
    "N": Symbol("PEs that share the states of the same weights (ZeRO)"),
    "B_n": Symbol("samples that a node needs per iteration"),
    "z": Symbol("how far the slowest of n is from the mean, in standard deviations"),
    "slow": Symbol("time of the part of a message above 256 MiB", "s"),
    "hidden": Symbol("communication that overlaps compute", "s"),
}
# Table III has no memory bandwidth.
TABLE_III_SYMBOLS = {"BW": Symbol("backward pass of a layer, per sample", "s")}
# The configuration's symbols, which every legend has.
ALWAYS = ("p", "p1", "p2", "b", "B", "D", "I")
# Paths with an alpha and a beta, by the prefix of their keys: location, and terms that use them.
PATHS = {
    "group": ("inside a group", ("layer_collectives", "point_to_point")),
    "replica": ("across replicas", ("gradient_exchange",)),
    "halo": ("between neighbours that divide samples", ("halo_exchange", "split_gather")),
}
# Names in a formula; a word after an apostrophe is not one.
NAME = re.compile(r"(?<![\w'])[A-Za-z_]\w*")


def list_symbols(formulas: Mapping[str, str], values: Mapping[str, Any], oracle: str) -> list[Row]:
    """Return one row per symbol in the formulas: meaning, value and SI unit.

    formulas: by term, or by part of the memory. A value is None if it varies by layer.
    """
    # Only symbols that the formulas use, of all that there are.
    named = {name for text in formulas.values() for name in NAME.findall(text)}
    known = SYMBOLS | (TABLE_III_SYMBOLS if oracle == "paper" else {})
    rows = [
        _describe(name, symbol, values)
        for name, symbol in known.items()
        if name in named or name in ALWAYS
    ]
    parameters = [
        _describe(name, Symbol(row.meaning, row.unit, name), values)
        for name, row in PARAMETERS.items()
        # Formulas have symbols for degrees.
        if name in named - set(known) and name not in DEGREES
    ]
    return [*rows, *_list_paths(formulas, values), *parameters]


def _describe(name: str, symbol: Symbol, values: Mapping[str, Any]) -> Row:
    value = None if symbol.value is None else values.get(symbol.value)
    return {"symbol": name, "meaning": symbol.meaning, "value": value, "unit": symbol.unit}


def _list_paths(formulas: Iterable[str], values: Mapping[str, Any]) -> list[Row]:
    """Return rows for the alpha and beta of each path that a term takes."""
    rows = []
    for path, (where, terms) in PATHS.items():
        if not set(terms) & set(formulas):
            continue
        start_up = Symbol(f"start-up of a message {where}", "s", f"{path}_latency")
        rows.append(_describe(f"alpha ({path})", start_up, values))
        # Systems state a bandwidth, formulas multiply by its inverse.
        bandwidth = values[f"{path}_bandwidth"]
        byte = Symbol(f"time of a byte {where}", "s/B", "beta")
        rows.append(_describe(f"beta ({path})", byte, {"beta": 1 / bandwidth}))
    return rows
