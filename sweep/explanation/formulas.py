"""Formulas of the terms of one pass, in symbols and as templates for numbers.

Those of the machine oracle are in the tables of terms; here are those of Table III, of placements,
of ZeRO and of products of parallelisms. Symbols: docs/oracle.md and docs/machine.md.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paradl.kernels.names.layout_terms import EVERY_TERM
from paradl.kernels.names.parallelisms import KINDS, ParallelismFacts
from paradl.kernels.names.terms import SECONDS, TERMS, Term
from paradl.kernels.options import Options
from paradl.kernels.work.schedules import SCHEDULES
from paradl.sweep.answers.types.prediction import LayerRow
from paradl.sweep.answers.types.questions import LargestTerm

Formula = tuple[str, str]  # in symbols, and with numbers


@dataclass(frozen=True)
class WorkFacts:
    """Facts from which an explanation is written, the same for layers and for blocks.

    terms: name, formulas, and seconds per epoch; those of part hidden overlap compute. passes: as
    many as the terms' formulas leave out. algorithm: of collectives, where formulas are for
    another. memory: by part. values: numbers beside those of the answer, by their names in
    templates and in the legend. layers: rows.
    """

    terms: Sequence[tuple[str, Term, float]]
    memory: Mapping[str, Formula]
    values: Mapping[str, Any]
    passes: float = 1.0
    algorithm: str = ""
    layers: Sequence[LayerRow] = ()


# What a PE holds beside tensors (docs/machine.md, Memory per PE).
RESERVED = "reserved: context and workspaces, an assumption"
PASSES = "{batch:g} x {forward_backward:.6g} s"

# Of Table III, by what a group divides; all others divide single layers.
SPLIT = "b sum (FW+BW) (s/p2 + 1-s)"
FORWARD_BACKWARD = {"nothing": "b sum (FW+BW)", "layers": "b (max FW_Gi + max BW_Gi)"}


def _rewrite(formulas: Mapping[str, tuple[str, str]]) -> dict[str, Term]:
    """Return terms with other symbols, and another template of numbers."""
    return {
        name: replace(TERMS[name], symbols=symbols, numbers=numbers)
        for name, (symbols, numbers) in formulas.items()
    }


# For groups with placed operators (docs/placement.md).
PLACED = _rewrite(
    {
        "forward_backward": (
            "b/S sum n_l s_l, n_l segments of a layer on the critical path",
            PASSES,
        ),
        "pass_overhead": ("sum n_l f_l of the critical path", "{fixed:.6g} s"),
        "launch_wait": (
            "(X^4 + (S G_o o)^4)^(1/4) - X, X the sum of the two terms above",
            "{launches:g} x {layer_overhead:.4g} s to launch, {seconds:.6g} s",
        ),
        "point_to_point": (
            "n alpha + b/S a y beta, n messages and y items a sample on the critical path",
            "{path_messages:g} x {group_latency:.4g} s + {path_bytes:.6g} B"
            " / {group_bandwidth:.4g} B/s",
        ),
    }
)

# For ring collectives; other algorithms are named in front.
TABLE_III = {name: TERMS[name] for name in ("pipeline_bubble", "weight_update")} | _rewrite(
    {
        "gradient_exchange": (
            "AR(q, m) = 2 (q-1) (alpha + m/q phi beta), m = delta |w|",
            "2 x ({ring:g}-1) x ({replica_latency:.4g} s + {gradient_bytes:.6g} B / {ring:g}"
            " x {phi:g} / {replica_bandwidth:.4g} B/s)",
        ),
        "layer_collectives": (
            "sum over split layers of AG + AR = 3 (p2-1) (n alpha + b delta sum |y| / p2 beta)",
            "3 x ({group:g}-1) x ({gathers:g} x {group_latency:.4g} s + {gathered_bytes:.6g} B"
            " / {group:g} / {group_bandwidth:.4g} B/s)",
        ),
        "halo_exchange": (
            "4 n alpha + 2 b delta sum (halo(x) + halo(dL/dy)) phi beta",
            "4 x {halo_exchanges:g} x {halo_latency:.4g} s + 2 x {halo_bytes:.6g} B x {phi_halo:g}"
            " / {halo_bandwidth:.4g} B/s",
        ),
        "split_gather": (
            "2 AG(p2, m) = 2 (p2-1) (alpha + m/p2 phi beta), m = b delta |y_split|",
            "2 x ({group:g}-1) x ({halo_latency:.4g} s + {split_bytes:.6g} B / {group:g}"
            " x {phi_gather:g} / {halo_bandwidth:.4g} B/s)",
        ),
        "point_to_point": (
            "2 (p2+S-2) (alpha + b/S delta max |y_Gi| beta)",
            "2 x ({group:g}+{segments:g}-2) x ({group_latency:.4g} s + {stage_bytes:.6g} B"
            " / {group_bandwidth:.4g} B/s)",
        ),
    }
)

# For ZeRO: replicas share states, and from stage 3 weights, too.
SHARED = _rewrite({"weight_update": ("sum WU / N", SECONDS)})
GATHERED = SHARED | _rewrite(
    {
        "gradient_exchange": (
            "T/K + max(0, T - T/K - hidden), T = (A + 1/2) AR of m = g |w|: 2 A AG and an RS",
            "m = {gradient_bytes:.6g} B, {seconds:.6g} s",
        )
    }
)
ZERO: tuple[dict[str, Term], ...] = ({}, SHARED, SHARED, GATHERED)

# For HSDP: groups of N replicas share states, and reduce each shard across.
ACROSS = " + AR(p1/N, m/N)"

# For stages of v chunks, which are interleaved.
INTERLEAVED = _rewrite(
    {
        "pipeline_bubble": ("(p2-1)/(v S) b (max FW_Gi + max BW_Gi)", SECONDS),
        "pass_overhead": (
            "n sum f_l, f_l = 3 (w+bi) a / BW, n = (p2-1)/v + S",
            TERMS["pass_overhead"].numbers,
        ),
        "point_to_point": (
            "2 (p2-1) P2P + 2 (v-1) S alpha + max(0, 2 (v S-1) P2P - 2 (v-1) S alpha - hidden), "
            "P2P = alpha + b/S a cut beta, cut: items across it",
            TERMS["point_to_point"].numbers,
        ),
    }
)

# Terms whose numbers hold for any product of parallelisms.
WRITTEN_OUT = ("pass_overhead",)


def select_terms(
    parts: tuple[str, ...], options: Options, *, in_shards: bool = False
) -> dict[str, Term]:
    """Return the terms, with their formulas, for the parallelisms inside a replica.

    in_shards: whether ZeRO divides over some of the replicas.
    """
    kinds = [KINDS[name] for name in parts]
    divided = [kind.divides for kind in kinds]
    if options.oracle == "paper":
        # Table III has one parallelism inside a replica.
        passes = FORWARD_BACKWARD.get(divided[0] if divided else "nothing", SPLIT)
        return _rewrite({"forward_backward": (passes, PASSES)}) | TABLE_III
    terms = TERMS | (PLACED if "operators" in divided else {}) | ZERO[options.zero]
    if in_shards:  # in symbols of AR, and of (A + 1/2) AR
        exchange = terms["gradient_exchange"]
        symbols = exchange.symbols.replace(" of m", f"{ACROSS} of m", 1)
        terms["gradient_exchange"] = replace(exchange, symbols=symbols)
    bubble = SCHEDULES[options.schedule].bubble
    if options.chunks > 1:
        terms |= INTERLEAVED
    elif bubble < 1:
        whole = terms["pipeline_bubble"].symbols
        terms |= _rewrite({"pipeline_bubble": (f"{bubble:.2g} {whole}", SECONDS)})
    return terms | _combine(terms, kinds) if len(kinds) > 1 else terms


def _combine(single: Mapping[str, Term], kinds: list[ParallelismFacts]) -> dict[str, Term]:
    """Return terms of a product of parallelisms, whose formulas depend on each other."""
    terms = {}
    for kind in kinds:
        for name in kind.terms:
            # Alone, the parallelism has degree p2.
            symbols = single[name].symbols.replace("p2", kind.symbol)
            # Inside a pipeline a term recurs for each micro-batch on the critical path.
            for outside in kinds:
                if outside.segmented and outside is not kind:
                    symbols = f"n ({symbols}) of b/S samples, n = {outside.symbol}+S-1"
            numbers = single[name].numbers if name in WRITTEN_OUT else SECONDS
            terms[name] = replace(single[name], symbols=symbols, numbers=numbers)
    return terms


def describe_largest(shares: Mapping[str, float]) -> LargestTerm:
    """Describe the term with the largest share: `bottleneck`, `share`, `kind` and a `sentence`.

    shares: fraction of the time by term.
    """
    largest = max(shares, key=shares.__getitem__)
    term = EVERY_TERM[largest]
    passes = largest == "forward_backward"
    name = "the forward and backward passes" if passes else largest.replace("_", " ")
    return {
        "bottleneck": largest,
        "share": shares[largest],
        "kind": term.kind,
        "sentence": f"{shares[largest]:.0%} of the time is {name}: {term.why}.",
    }
