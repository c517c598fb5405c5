"""An independent reference of transformers: all layouts, and their limits and marks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

from reference_transformers import Layout, Network, dropped_bytes
from reference_transformers_stage import memory

MARKS = {
    *("kv_replicated", "uneven_stages", "starved", "zero_with_pipeline", "beyond_node", "longer"),
    "idle_recompute",
}


@dataclass(frozen=True)
class Place:
    """The PEs that there are, and of what kind."""

    pes: int
    per_node: int = 8
    capacity: float = float("inf")
    reserved: float = 0.0


def divisions(net: Network, layout: Layout) -> dict[str, bool]:
    """Reasons that forbid a layout whatever the memory, and whether each is so."""
    t, c, p = layout.tensor, layout.context, layout.pipeline
    zigzag = layout.context_by != "all_to_all"
    group = layout.group or p
    passes = layout.micro_batches % group
    folded = t * c * layout.data % (layout.etp * layout.expert)
    sequence = net.sequence % (2 * c if zigzag and c > 1 else c)
    by_heads = c > 1 and not zigzag and (net.heads % (c * t) or net.a_kv % (c * t))
    routed = [net.has_experts(block) for block in range(net.layers)]
    ffn = [] if all(routed) else [(net.ffn, t)]
    if any(routed):
        ffn += [(net.shared_ffn, t), (net.expert_ffn, layout.etp)]
    with_ends = net.layers + 2  # embedding and loss may count as a block each
    shared = [(c * layout.data, layout.shards)]
    if any(routed) and not folded:  # groups of an expert's replicas, too
        replicas = t * c * layout.data // (layout.etp * layout.expert)
        shared += [(replicas, layout.expert_shards)]
    return {
        "heads": net.heads % t > 0,
        "kv_heads": max(net.a_kv, t) % min(net.a_kv, t) > 0,
        "hidden": net.hidden % t > 0,
        "ffn": any(width % degree for width, degree in ffn),
        "batch": layout.batch % (layout.data * layout.micro) > 0,
        "interleaving": layout.chunks > 1 and (p == 1 or group < p or 0 < passes < p),
        "sequence": sequence > 0,
        "context_heads": bool(by_heads),
        "sequence_parallel": layout.sequence_parallel and net.sequence // c % t > 0,
        "experts": net.experts % layout.expert > 0
        if any(routed)
        else layout.expert > 1 or layout.etp != t,
        "folding": folded > 0,
        "experts_need_sequence": t > 1 and layout.expert > 1 and not layout.sequence_parallel,
        "shard": any(ranks % shards for ranks, shards in shared),
        "more_stages_than_blocks": layout.parts > net.layers and with_ends % layout.parts > 0,
    }


def drops(net: Network, layout: Layout, name: str) -> bool:
    """Whether recomputing a module alone drops anything."""
    alone = replace(layout, recompute=frozenset({name}))
    return any(dropped_bytes(net, alone, block) for block in range(net.layers))


def limits(net: Network, layout: Layout, place: Place) -> set[str]:
    """All reasons and marks of a layout; MARKS forbid nothing."""
    t, p, m = layout.tensor, layout.pipeline, layout.micro_batches
    reasons = divisions(net, layout) | {"pes": layout.pes != place.pes}
    forbidden = {name for name, is_so in reasons.items() if is_so}
    if not forbidden:
        total = memory(net, layout, place.reserved)["total"]
        reasons["memory"] = total > place.capacity
    reasons |= {
        "kv_replicated": t > net.a_kv,
        "uneven_stages": net.layers % layout.parts > 0 and (net.layers + 2) % layout.parts > 0,
        "starved": m < p,
        "zero_with_pipeline": p > 1 and layout.zero > 1,
        "beyond_node": t > place.per_node,
        "idle_recompute": any(not drops(net, layout, name) for name in layout.recompute),
        "longer": 0 < net.longest < net.sequence,
    }
    return {name for name, is_so in reasons.items() if is_so}


def factorisations(number: int, parts: int) -> Iterator[tuple[int, ...]]:
    """All ordered products of so many degrees."""
    if parts == 1:
        yield (number,)
        return
    for degree in range(1, number + 1):
        if number % degree == 0:
            for rest in factorisations(number // degree, parts - 1):
                yield (degree, *rest)


def layouts(
    pes: int,
    batch: int,
    chunks: Iterable[int] = (1,),
    micro: Iterable[int] = (1,),
    recompute: Iterable[str] = ("none",),
    zero: Iterable[int] = (0,),
    experts: Iterable[int] = (1,),
) -> Iterator[Layout]:
    """Every product t c p d of the PEs with every setting: candidates, most of which divide not."""
    settings = list(product(chunks, micro, recompute, (False, True), zero, experts))
    for t, c, p, d in factorisations(pes, 4):
        for v, b, again, sequence, z, e in settings:
            yield Layout(
                tensor=t,
                context=c,
                pipeline=p,
                data=d,
                chunks=v,
                schedule="interleaved" if v > 1 else "1f1b",
                micro=b,
                batch=batch,
                recompute=frozenset() if again == "none" else frozenset({again}),
                sequence_parallel=sequence,
                zero=z,
                expert=e,
            )
