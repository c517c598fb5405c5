"""Terms: the parts of an iteration's time, in the order in which they are printed and summed.

Kept apart from the kernels that compute them (`kernels.configuration.run` has the pytree `Terms`),
so that naming a term needs no JAX.

To add one: a row of `TERMS` here; sums, outputs, attributes and messages follow. Its formula:
`kernels.oracle.iteration`, or the file of its parallelism; `kernels.paper` is frozen. Once more,
from docs/oracle.md and docs/machine.md alone: tests/helpers/reference.py, reference_machine.py. A
row of both tables in docs/machine.md, How terms grow, and of tests/helpers/machine_forms.py. Tests:
tests/test_oracle_agreement.py, test_machine_agreement.py, test_machine_forms.py.
"""

from dataclasses import dataclass
from typing import Literal

# hidden: overlaps with computing, and so is in no sum.
Part = Literal["compute", "communication", "hidden"]
Per = Literal["sample", "iteration"]
# As in ParaDL, section 5.3: a limitation is inherent in the strategy, a bottleneck comes from the
# framework or the system.
Kind = Literal["work", "limitation", "bottleneck"]

SECONDS = "{seconds:.6g} s"
# A term that a configuration does not have: no array, so that no program computes with it. Zeros of
# four terms, times the passes of an iteration, took 8 % of the time of a block's cells (2026-11).
NOTHING = 0.0


@dataclass(frozen=True)
class Term:
    """A part of the time. per: an epoch pays it for each sample, or for each iteration.

    kind, why: its cause, and the reason in a sentence. symbols, numbers: its formula in the machine
    oracle (docs/machine.md), and a template of it with numbers (only the seconds, where they
    depend on too many numbers for one line). once: an iteration pays it once, however many passes
    it accumulates.
    """

    part: Part
    per: Per
    kind: Kind
    meaning: str
    why: str
    symbols: str
    numbers: str = SECONDS
    once: bool = False


TERMS: dict[str, Term] = {
    "forward_backward": Term(
        *("compute", "sample", "work"),
        "time of forward and backward passes",
        why="PEs spend most of their time on arithmetic",
        symbols="b sum s_l, of a PE's own part of each layer",
        numbers="{batch:g} x {forward_backward:.6g} s",
    ),
    "pipeline_bubble": Term(
        *("compute", "sample", "limitation"),
        "time that stages wait for their first and after their last segment",
        why="stages wait for their first and after their last segment; more segments would shorten "
        "that",
        symbols="(p2-1)/S b (max FW_Gi + max BW_Gi)",
        numbers="({group:g}-1)/{segments:g} x {batch:g} x {forward_backward:.6g} s",
    ),
    "weight_update": Term(
        *("compute", "iteration", "limitation"),
        "time of weight updates",
        why="each PE updates all weights that it holds, even for few samples",
        symbols="sum WU, as far as weights are split",
        numbers="{update:.6g} s",
        once=True,
    ),
    # The other compute terms are 0 in Table III.
    "pass_overhead": Term(
        *("compute", "iteration", "bottleneck"),
        "time of reading weights, once per pass whatever the batch",
        why="reading weights takes as long for few samples as for many",
        symbols="n sum f_l, f_l = 3 (w+bi) a / BW, n = p2+S-1 of a pipeline of several stages, "
        "else 1",
        numbers="{steps:g} x {fixed:.6g} s",
    ),
    "launch_wait": Term(
        *("compute", "iteration", "bottleneck"),
        "time that PEs wait for their hosts to launch layers",
        why="hosts launch layers more slowly than PEs compute them; larger batches would keep PEs "
        "busy",
        symbols="n ((X^4 + (G_o o)^4)^(1/4) - X), X = b/S sum s_l + sum f_l; S = 1 outside "
        "pipelines",
        numbers="{launches:g} x {layer_overhead:.4g} s to launch, {seconds:.6g} s",
    ),
    "split_overhead": Term(
        *("compute", "iteration", "bottleneck"),
        "time of assembling the outputs of divided layers",
        why="assembling the outputs of divided layers takes long compared to computing them",
        symbols="b a sum |y| (1-1/p2) / (assembly BW), twice with filter, + [filter] 2 n (p2-1) "
        "part_overhead",
    ),
    "gradient_packing": Term(
        *("compute", "iteration", "bottleneck"),
        "time of copying gradients to host memory and back",
        why="gradients are copied through host memory before they are exchanged",
        symbols="2 m_s / (packing SB) + [channel] slow(m_s)",
        once=True,
    ),
    "input_wait": Term(
        *("compute", "iteration", "bottleneck"),
        "time that PEs wait for samples to come in",
        why="hosts supply fewer samples per second than the PEs could process",
        symbols="max(0, B_n / input_rate - all else)",
        once=True,
    ),
    "gradient_exchange": Term(
        *("communication", "iteration", "limitation"),
        "time of the gradient exchange across replicas",
        why="replicas exchange all gradients once per iteration, even for small batches",
        symbols="T/K + max(0, T - T/K - hidden), T = AR of m = g |w| in K = min(layers, m / "
        "bucket)",
        numbers="m = {gradient_bytes:.6g} B, {seconds:.6g} s",
        once=True,
    ),
    "layer_collectives": Term(
        *("communication", "iteration", "limitation"),
        "time of layer-wise collectives inside a group",
        why="every divided layer gathers or reduces its activations, forward and backward",
        symbols="sum over split layers of [filter] AG + RS, [channel] AR + AG",
        numbers="{gathers:g} of {gathered_bytes:.6g} B, {seconds:.6g} s",
    ),
    "halo_exchange": Term(
        *("communication", "iteration", "limitation"),
        "time of halo exchanges inside a group",
        why="PEs that divide samples exchange borders at every layer with a kernel",
        symbols="max(0, 4 n alpha + 2 b a sum (halo(x) + halo(dL/dy)) beta - overlap x the pass)",
        numbers="4 x {halo_exchanges:g} x {halo_latency:.4g} s + 2 x {halo_bytes:.6g} B / "
        "{halo_bandwidth:.4g} B/s, {seconds:.6g} s exposed",
    ),
    "split_gather": Term(
        *("communication", "iteration", "limitation"),
        "time of gathers where a spatial split ends",
        why="parts of samples are gathered where the split ends",
        symbols="2 AG(p2, b a |y_split|); through hosts 2 (1-1/p2) b a |y_split| / (gather_rate "
        "SB)",
        numbers="{split_bytes:.6g} B, {seconds:.6g} s",
    ),
    "sample_scatter": Term(
        *("communication", "iteration", "bottleneck"),
        "time of handing out samples through host memory",
        why="parts of samples are distributed through host memory",
        symbols="max(0, b a |x_1| - 256 MiB) / (large_message SB) (1 + host_jitter z(n))",
    ),
    "point_to_point": Term(
        *("communication", "iteration", "limitation"),
        "time of transfers from stage to stage",
        why="stages send activations and gradients to each other",
        symbols="2 (p2-1) P2P + max(0, 2 (S-1) P2P - hidden), P2P = alpha + b/S a cut beta, cut: "
        "items across it",
        numbers="P2P = {group_latency:.4g} s + {stage_bytes:.6g} B / {group_bandwidth:.4g} B/s, "
        "{seconds:.6g} s",
    ),
    "log_files": Term(
        *("communication", "iteration", "bottleneck"),
        "time of opening log files at exchanges (plain software)",
        why="PEs open log files at each exchange, one after another",
        symbols="(2 L_c + [p1 > 1] 1/A) p tau",
        numbers="(2 x {logged:g} + {across:g}) x {pe:g} x {log_open:.4g} s",
    ),
    "straggler_wait": Term(
        *("communication", "iteration", "bottleneck"),
        "time that PEs wait for the slowest one",
        why="all PEs wait for the slowest one",
        symbols="jitter z(p) x a pass computing",
    ),
    "hidden_communication": Term(
        *("hidden", "iteration", "bottleneck"),
        "time of communication that overlaps with computing",
        why="exchanges overlap with computing and cost no time",
        symbols="communication that passes while PEs compute: no part of the time",
        once=True,
    ),
}


def list_terms(part: Part, per: Per | None = None) -> tuple[str, ...]:
    """List the terms of a part, or those paid per sample or per iteration."""
    return tuple(
        name
        for name, term in TERMS.items()
        if term.part == part and (per is None or term.per == per)
    )
