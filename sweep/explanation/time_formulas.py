"""The terms' formulas in symbols, and as text to be filled with numbers: those of one pass.

Symbols: docs/oracle.md, and for the machine oracle docs/machine.md.
"""

from dataclasses import dataclass

from kernels.names.parallelisms import KINDS, ParallelismFacts


@dataclass(frozen=True)
class Formula:
    """A term in symbols, and the same with numbers filled in."""

    symbols: str
    numbers: str


SECONDS = "{seconds:.6g} s"

SPLIT = Formula("b sum (FW+BW) (s/p2 + 1-s)", "{b:g} x {work:.6g} s")

FORWARD_BACKWARD = {
    "nothing": Formula("b sum (FW+BW)", "{b:g} x {work:.6g} s"),
    "layers": Formula("b (max FW_Gi + max BW_Gi)", "{b:g} x {work:.6g} s"),
}

# The machine's own terms (docs/machine.md); the seconds alone, or at the end, where they follow
# from more numbers than a line holds.
MACHINE = {
    "forward_backward": Formula(
        "b sum s_l, of a PE's own part of each layer", "{b:g} x {work:.6g} s"
    ),
    "pass_overhead": Formula(
        "n sum f_l, f_l = 3 (w+bi) a / BW, n = p2+S-1 of a pipeline of several stages, else 1",
        "{steps:g} x {fixed:.6g} s",
    ),
    "launch_wait": Formula(
        "n ((X^4 + (G_o o)^4)^(1/4) - X), X = b/S sum s_l + sum f_l; S = 1 but of a pipeline",
        "{launches:g} x {layer_overhead:.4g} s to launch, {seconds:.6g} s",
    ),
    "split_overhead": Formula(
        "u b a sum |y| (1-1/p2) / (assembly BW) + [filter] 2 n (p2-1) part_overhead", SECONDS
    ),
    "gradient_packing": Formula("2 m_s / (packing SB) + [channel] slow(m_s)", SECONDS),
    "sample_scatter": Formula(
        "max(0, b a |x_1| - 256 MiB) / (large_message SB) (1 + host_jitter z(n))", SECONDS
    ),
    "input_wait": Formula("max(0, N / input_rate - all else)", SECONDS),
    "gradient_exchange": Formula(
        "T/K + max(0, T - T/K - hidden), T = AR of m = g |w| in K = min(layers, m / bucket)",
        "m = {gradient_bytes:.6g} B, {seconds:.6g} s",
    ),
    "layer_collectives": Formula(
        "sum over split layers of [filter] AG + RS, [channel] AR + AG",
        "{gathers:g} of {gathered_bytes:.6g} B, {seconds:.6g} s",
    ),
    "halo_exchange": Formula(
        "max(0, 4 n alpha + 2 b a sum (halo(x) + halo(dL/dy)) beta - overlap b sum s_l)",
        "4 x {halos:g} x {halo_latency:.4g} s + 2 x {halo_bytes:.6g} B / {halo_bandwidth:.4g} B/s,"
        " {seconds:.6g} s exposed",
    ),
    "split_gather": Formula(
        "2 AG(p2, b a |y_split|); through hosts 2 (1-1/p2) b a |y_split| / (gather_rate SB)",
        "{split_bytes:.6g} B, {seconds:.6g} s",
    ),
    "point_to_point": Formula(
        "2 (p2-1) P + max(0, 2 (S-1) P - hidden), P = alpha + b/S a c beta,"
        " c: items across the cut",
        "P = {group_latency:.4g} s + {stage_bytes:.6g} B / {group_bandwidth:.4g} B/s,"
        " {seconds:.6g} s",
    ),
    "log_files": Formula(
        "(2 L_c + [p1 > 1] 1/A) p tau",
        "(2 x {logged:g} + {across:g}) x {p:g} x {log_open:.4g} s",
    ),
    "straggler_wait": Formula("jitter z(p) x a pass computing", SECONDS),
    "hidden_communication": Formula(
        "communication that passes while PEs compute: no part of the time", SECONDS
    ),
}

# Groups whose operators are placed (docs/placement.md).
PLACED = {
    "forward_backward": Formula(
        "b/S sum n_l s_l, n_l segments of a layer on the critical path", "{b:g} x {work:.6g} s"
    ),
    "pass_overhead": Formula("sum n_l f_l of the critical path", "{fixed:.6g} s"),
    "launch_wait": Formula(
        "(X^4 + (S G_o o)^4)^(1/4) - X, X = the two above",
        "{launches:g} x {layer_overhead:.4g} s to launch, {seconds:.6g} s",
    ),
    "point_to_point": Formula(
        "n alpha + b/S a y beta, n messages and y items a sample on the critical path",
        "{path_messages:g} x {group_latency:.4g} s + {path_bytes:.6g} B"
        " / {group_bandwidth:.4g} B/s",
    ),
}

# Ring collectives; the name of another algorithm is put before them.
FORMULAS = {
    "pipeline_bubble": Formula(
        "(p2-1)/S b (max FW_Gi + max BW_Gi)", "({p2:g}-1)/{segments:g} x {b:g} x {work:.6g} s"
    ),
    "weight_update": Formula("sum WU, as far as weights are split", "{update:.6g} s"),
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


# Where replicas divide states among them; and weights, too.
ZERO = {"weight_update": Formula("sum WU / q, q PEs of ZeRO", SECONDS)}
GATHERED = Formula(
    "T/K + max(0, T - T/K - hidden), T = (A + 1/2) AR of m = g |w|: 2 A AG and an RS",
    "m = {gradient_bytes:.6g} B, {seconds:.6g} s",
)

# Where the numbers are of one part alone, or the same whatever the degrees.
WRITTEN_OUT = ("pass_overhead",)


def select_formulas(parts: tuple[str, ...], zero: int = 0, *, oracle: str) -> dict[str, Formula]:
    """The formula of each term of the parallelisms inside a replica, by the term's name.

    zero: the stage of ZeRO.
    """
    kinds = [KINDS[name] for name in parts]
    if oracle == "machine":
        placed = any(kind.divides == "operators" for kind in kinds)
        single = FORMULAS | MACHINE | (PLACED if placed else {})
        single |= {name: formula for name, formula in ZERO.items() if zero} | (
            {"gradient_exchange": GATHERED} if zero == 3 else {}
        )
        return single if len(kinds) < 2 else single | _combine(single, kinds)
    divided = kinds[0].divides if kinds else "nothing"
    return {"forward_backward": FORWARD_BACKWARD.get(divided, SPLIT)} | FORMULAS


def _combine(single: dict[str, Formula], kinds: list[ParallelismFacts]) -> dict[str, Formula]:
    """The formulas of terms that depend on what else divides a replica."""
    formulas = {}
    for kind in kinds:
        for term in kind.terms:
            # Of one parallelism the degree is p2.
            symbols = single[term].symbols.replace("p2", kind.symbol)
            for outside in kinds:
                if outside.segmented and outside is not kind:
                    symbols = f"n ({symbols}) of b/S samples, n = {outside.symbol}+S-1"
            numbers = single[term].numbers if term in WRITTEN_OUT else SECONDS
            formulas[term] = Formula(symbols, numbers)
    return formulas
