"""What forbids a layout, in words: of one layout what does not divide, and what would."""

from collections.abc import Iterable, Mapping

from kernels.layouts.transformer import Training, Transformer


def describe_reason(
    reason: str, net: Transformer, layout: Mapping[str, int], training: Training
) -> str:
    """What of a layout does not divide what, in its words."""
    t, c, e, p, d, b = (
        layout[name] for name in ("tensor", "context", "expert", "pipeline", "data", "micro")
    )
    m, n = training.batch // (d * b), layout["group"] or p
    return {
        "heads": f"tp{t} does not divide {_join(net.heads)} heads",
        "kv_heads": f"tp{t} neither divides nor is a multiple of {_join(net.kv_heads)} KV heads",
        "hidden": f"tp{t} does not divide {net.hidden} features",
        "ffn": f"tp{t} or etp does not divide MLPs of {_join((*net.ffn, *net.expert_ffn))}",
        "batch": f"dp{d} x mb{b} does not divide {training.batch:,} sequences",
        "interleaving": f"v{layout['chunks']} needs stages, and micro-batches that fill them: "
        f"{m:,} in groups of {n} over pp{p}",
        "sequence": f"cp{c} does not divide {training.length:,} tokens",
        "context_heads": f"cp{c} x tp{t} does not divide the heads",
        "sequence_parallel": f"tp{t} with sp does not divide {training.length // c:,} tokens",
        "experts": f"ep{e} does not divide {_join(net.experts) or 'no'} experts",
        "folding": f"etp x ep{e} does not divide tp{t} x cp{c} x dp{d}",
        "experts_need_sequence": f"ep{e} with tp{t} needs sp",
        "more_stages_than_blocks": f"pp{p} x v{layout['chunks']} is more than {net.blocks} blocks",
        "shard": f"shard{layout['shard']} does not divide cp{c} x dp{d}",
    }[reason]


def find_remedy(reason: str, net: Transformer, training: Training) -> str:
    """The change that would let layouts divide."""
    return {
        "heads": f"a tensor degree that divides {_join(net.heads)} heads",
        "kv_heads": f"a tensor degree that divides, or is a multiple of, {_join(net.kv_heads)}",
        "hidden": f"a tensor degree that divides {net.hidden} features",
        "ffn": "a tensor degree that divides the width of MLPs and experts",
        "batch": "a global batch that data x micro-batch divides",
        "interleaving": "micro-batches that are a multiple of the stages",
        "sequence": f"a context degree whose double divides {training.length:,} tokens",
        "context_heads": "tensor x context that divides the heads",
        "sequence_parallel": "a length over context that the tensor degree divides",
        "experts": f"an expert degree that divides {_join(net.experts) or 'no'} experts",
        "folding": "tensor x context x data that the parts of experts divide",
        "experts_need_sequence": "sequence parallelism",
        "more_stages_than_blocks": f"at most {net.blocks} chunks of all stages",
        "shard": "ranks of ZeRO that divide context x data",
    }[reason]


def _join(numbers: Iterable[int]) -> str:
    return " and ".join(map(str, numbers))
