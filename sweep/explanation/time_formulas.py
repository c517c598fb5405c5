"""Formulas of the terms of one pass, in symbols and as templates for numbers.

Those of the machine oracle are in the table of terms; here are those of Table III and of
placements. Symbols: docs/oracle.md.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kernels.names.layout_terms import EVERY_TERM
from kernels.names.parallelisms import KINDS, ParallelismFacts
from kernels.names.terms import SECONDS, TERMS


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
ZERO = {"weight_update": Formula("sum WU / q, q PEs of ZeRO", SECONDS)}
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
