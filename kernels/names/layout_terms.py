"""Terms of layouts: the parts of an iteration's time of a transformer, as `Terms` are of others.

Formulas: docs/transformers.md, Time. Symbols: docs/machine.md. Named without JAX, and computed in
`kernels.oracle.block_times`. A new one has a row in How terms grow, docs/machine.md, too.
"""

from dataclasses import replace

from paradl.kernels.names.terms import SECONDS, TERMS, Term

# Version of these formulas, which stores and calibrations record: answers of others differ.
# 2: groups aligned in domains, causality, windows, ends as blocks (2026-11). 3: products take the
# sum of arithmetic and of moving their matrices, launches hide exposed contexts (2026-11). 4: sums
# of products move, watts, hidden tensor and expert exchanges, messages of states, waits of 1F1B
# (2026-12). 5: energy of a FLOP, a bucket has whole matrices (2026-12).
LAYOUT_FORMULAS = 5


# Kinds of collectives and messages of which bytes are counted.
VOLUMES = ("all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send")

LAYOUT_TERMS: dict[str, Term] = {
    "products": Term(
        *("compute", "iteration", "work"),
        "time of matrix products, forward and backward",
        "PEs spend most of their time on matrix products",
        "3 A S sum (2 u h y/(R P) + (a_m (u h + h y + u y) + 4 product_moves u sqrt(h y))/BW), y "
        "columns of a PE",
    ),
    "attention": Term(
        *("compute", "iteration", "work"),
        "time of attention's products of positions with each other",
        "attention grows with the square of the sequence",
        "3.5 A S 4 head heads u s' (1 + 32/head) / (min(t, heads) P_w efficiency_attention) of a "
        "fused kernel, s' keys per query",
    ),
    "elementwise": Term(
        *("compute", "iteration", "work"),
        "time of norms, activations and sums, which wait for memory",
        "norms, activations and sums read and write all that the backward pass reads",
        "A S block_passes x bytes read backward / BW",
    ),
    "logits": Term(
        *("compute", "iteration", "work"),
        "time of the last matrix",
        "the last stage multiplies with the whole vocabulary",
        "3 A S (2 u h y/(R P_w) + (a (u h + h y + u y) + 4 product_moves u sqrt(h y))/BW), y = V/t",
    ),
    "recomputation": Term(
        *("compute", "iteration", "limitation"),
        "time of computing again what was not kept",
        "the backward pass computes again what memory did not hold",
        "the forward time of the modules that recompute names",
    ),
    "launch_wait": replace(
        TERMS["launch_wait"],
        symbols="A S ((X^4 + (G_o o)^4)^(1/4) - X), X the device's time of a micro-batch",
        numbers=SECONDS,
    ),
    "tensor_exchange": Term(
        *("communication", "iteration", "limitation"),
        "time of exchanges of tensor parallelism, as far as products do not hide it",
        "PEs that share matrices exchange activations in every block",
        "A S T, T = 4 AR(t, a u h) per block; with sequence parallelism an RS and an AG for each, "
        "of which max(T/4, T - overlap products) if software hides them",
    ),
    "context_exchange": Term(
        *("communication", "iteration", "limitation"),
        "time of exchanges of keys and values, as far as attention does not hide it",
        "PEs that share a sequence pass keys and values on",
        "A S (c-1) (3 alpha + max(0, 3 beta m - attention/c)) per attention of a ring, m = 2 a u "
        "kv_heads head/min(t, kv_heads)",
    ),
    "expert_exchange": Term(
        *("communication", "iteration", "limitation"),
        "time of sending tokens to their experts and back that no other micro-batch hides",
        "tokens go to their experts and back, forward and backward",
        "A S 4 A2A(e, a u h k/t) per block with experts, of which A min(that, overlap x the block) "
        "if software hides all but one micro-batch's",
    ),
    "pipeline_bubble": replace(
        TERMS["pipeline_bubble"],
        per="iteration",
        symbols="A (q_p-1)/v of a micro-batch's time on the slowest stage; zb1p a third, zbv 0",
        numbers=SECONDS,
    ),
    "stage_exchange": Term(
        *("communication", "iteration", "limitation"),
        "time of transfers between stages that nothing hides",
        "activations go from stage to stage",
        "2 A (q_p-1) P2P(a u h/sigma) + 2 A S (v-1) alpha; 1F1B without chunks waits for all: 2 A "
        "(S + q_p - 2) P2P",
    ),
    "gradient_exchange": replace(
        TERMS["gradient_exchange"],
        symbols="max(0, AR(p1 c, g W) - hidden) in K messages, of ZeRO an RS; of its stage 3 of "
        "each micro-batch",
        numbers=SECONDS,
    ),
    "weight_gather": Term(
        *("communication", "iteration", "limitation"),
        "time of gathering weights that ZeRO divides, as far as passes do not hide it",
        "ranks gather the weights that ZeRO divides among them",
        "max(0, AG(N, a W) - hidden) in K messages, of ZeRO 3 forward and backward of each "
        "micro-batch",
    ),
    "optimizer": Term(
        *("compute", "iteration", "limitation"),
        "time of the optimizer",
        "each rank updates its part of the states, however few samples it has",
        "W/N (g + 2 states + a) / BW, N = 1 without ZeRO",
    ),
    "host_transfer": Term(
        *("communication", "iteration", "limitation"),
        "time of moving states and activations to hosts and back that no pass hides",
        "what hosts keep crosses their link to the PE",
        "max(0, g W/N/offload_rate - hidden) + A S 2 max(0, m/offload_rate - hidden)",
    ),
    "waiting": Term(
        *("communication", "iteration", "limitation"),
        "time of waiting for the host and for the slowest PE",
        "synchronous PEs wait for the slowest of them in every iteration",
        "host_pause + straggling log2(p) x all other terms",
    ),
}

# Terms of all answers by name: those that share one share its words.
EVERY_TERM = TERMS | LAYOUT_TERMS
