"""Facts of each parallelism, and which can be combined.

Needs no JAX; the formulas are in `kernels.parallelism`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

Divided = Literal["rows", "filters", "channels", "layers", "operators"]
SPLITS: dict[Divided, Literal["rows", "weights"]] = {
    "rows": "rows",
    "filters": "weights",
    "channels": "weights",
}

# Divides samples among replicas, which other parallelisms divide further.
DATA = "data"


@dataclass(frozen=True)
class ParallelismFacts:
    """Facts of a parallelism inside a replica.

    divides: rows, filters or channels of each layer, or which PE runs which layers or operators.
    meaning, limit, part: descriptions for the catalogue; `part` is what each PE has. symbol,
    counts: its degree in formulas, and the meaning of that. terms: terms of time that depend on
    the degree or occur in each step of a pipeline. most_segments: the largest allowed number.
    alone: why it can only be combined with data parallelism; None if others are possible.
    table_iii: whether it is a row of ParaDL's Table III.
    """

    divides: Divided
    meaning: str
    limit: str
    part: str
    symbol: str = "p2"
    counts: str = "PEs of a replica's group"
    terms: tuple[str, ...] = ()
    most_segments: int = 2**53
    alone: str | None = None
    table_iii: bool = False

    @property
    def segmented(self) -> bool:
        """True if PEs run different layers, through which samples pass in segments."""
        return self.splits is None

    @property
    def splits(self) -> Literal["rows", "weights"] | None:
        """The part of a layer that it divides; None if layers stay whole."""
        return SPLITS.get(self.divides)


# In the order of Table III.
KINDS: dict[str, ParallelismFacts] = {
    "spatial": ParallelismFacts(
        divides="rows",
        table_iii=True,
        meaning="divides height, width (and depth) of samples; halo exchange",
        limit="each factor of p <= the extents of the layers it splits",
        part="part of each sample",
        symbol="q_s",
        counts="PEs that divide the rows of a sample",
        terms=("halo_exchange", "split_gather", "sample_scatter", "log_files"),
    ),
    "pipeline": ParallelismFacts(
        divides="layers",
        table_iii=True,
        meaning="contiguous stages of layers, through which segments flow",
        limit="p <= G: convolutions, matrices; and poolings in Table III",
        part="a stage of contiguous layers",
        symbol="q_p",
        counts="stages of a pipeline",
        terms=("pipeline_bubble", "pass_overhead", "point_to_point"),
    ),
    "filter": ParallelismFacts(
        divides="filters",
        table_iii=True,
        meaning="divides filters, or columns of linear layers; gathers outputs",
        limit="p <= min F",
        part="some filters of each split layer",
        symbol="q_f",
        counts="PEs that divide filters",
        terms=("split_overhead", "layer_collectives"),
    ),
    "channel": ParallelismFacts(
        divides="channels",
        table_iii=True,
        meaning="divides channels, or rows of linear layers; reduces outputs",
        # The first layer has only the sample's channels, such as three of an image.
        limit="p <= min C (of a filter: C/g), from the second layer on",
        part="some channels of each split layer",
        symbol="q_c",
        counts="PEs that divide channels",
        terms=("split_overhead", "layer_collectives"),
    ),
    "placement": ParallelismFacts(
        divides="operators",
        meaning="places operators on a node's PEs; segments flow through them",
        limit="p = 2 or 4 that divides a node, S <= 16; machine oracle",
        part="some operators",
        most_segments=16,
        alone="operators are placed whole",
    ),
}


class TransformerFacts(NamedTuple):
    """Facts of a parallelism of transformers: its meaning and its limit in words."""

    meaning: str
    limit: str


# `kernels.layouts` answers for strategies that name one of these, in a file of each name. The words
# stand here: lists of strategies and messages need neither numpy nor JAX.
TRANSFORMERS: dict[str, TransformerFacts] = {
    "tensor": TransformerFacts(
        "transformers: columns, then rows of matrices",
        "t divides heads, KV heads (or is a multiple), MLPs",
    ),
    "context": TransformerFacts(
        "transformers: positions of sequences; a ring of keys",
        "2 c divides the length of a sequence",
    ),
    "expert": TransformerFacts(
        "transformers: routed experts",
        "e divides experts, and t c d PEs",
    ),
}
# Their product and the replicas are the PEs; experts divide the same PEs again.
LAYOUT_DEGREES = ("tensor", "context", "pipeline")
# What such a strategy may say of its layout beside degrees.
LAYOUT_SETTINGS = ("chunks", "micro", "recompute", "sequence", "zero", "shard", "expert_tensor")
# Those whose words say that layouts answer: ZeRO alone does not, which other networks have, too.
LAYOUT_WORDS = tuple(name for name in LAYOUT_SETTINGS if name not in ("zero",))
# What a layout computes again, as bits of a column: Megatron's modules; whole blocks; all of a
# stage in square-root parts (Chen et al. 2016).
_RECOMPUTED = (
    *("core_attn", "mlp", "moe", "shared_experts", "layernorm", "moe_act", "mla_up_proj"),
    *("blocks", "full"),
)
RECOMPUTE: Mapping[str, int] = {name: 1 << bit for bit, name in enumerate(_RECOMPUTED)}
# Common strategies of transformers, with what they leave open.
NAMED = {
    "megatron": "data+tensor+pipeline:tensor=best,pipeline=best,micro=best,sequence=on,zero=1",
    "fsdp": "data:micro=best,zero=3",
    "hsdp": "data:micro=best,zero=3,shard=node",
}

# Short words of a layout's columns, in the order in which it is written: tp8 pp4 dp32 mb1 zero1.
WORDS = {
    **{"tp": "tensor", "cp": "context", "ep": "expert", "etp": "expert_tensor"},
    **{"pp": "pipeline", "v": "chunks", "group": "group", "dp": "data", "mb": "micro"},
    **{"zero": "zero", "shard": "shard"},
}

_SEGMENTED = tuple(name for name, kind in KINDS.items() if kind.segmented)
_OTHERS = tuple(name for name in KINDS if name not in _SEGMENTED)
# Inside a replica, from the outermost to those whose PEs are neighbours.
NESTING = (*_SEGMENTED, *_OTHERS)
# In the order in which strategies are written.
WRITTEN = (*_OTHERS, *TRANSFORMERS, *_SEGMENTED)

# Other names for them.
ALSO = {
    "tp": "'tensor', of transformers; 'filter' and 'channel' divide other layers",
    "cp": "'context'",
    "ep": "'expert'",
    "dp": "'data'",
    "ddp": "'data'",
    "pp": "'pipeline'",
    "gpipe": "'pipeline'",
    **dict.fromkeys(
        ("fsdp", "zero", "deepspeed"),
        "'data:zero=1', whose replicas divide the optimizer's states, 'data:zero=2' gradients too, "
        "'data:zero=3' weights too",
    ),
}


def explain_conflict(names: Sequence[str]) -> str | None:
    """Explain why parallelisms cannot share a replica; None if they can."""
    inside = [name for name in names if name != DATA]
    laid = [name for name in inside if name in TRANSFORMERS]
    others = [name for name in inside if name not in (*TRANSFORMERS, "pipeline")]
    if laid:
        reason = f"{laid[0]} divides transformers, {{}} other networks"
        return reason.format(others[0]) if others else None
    for name in inside:
        if KINDS[name].alone and len(inside) > 1:
            return f"{name} can only be combined with data: {KINDS[name].alone}"
    if len({KINDS[name].splits for name in inside}) < len(inside):
        return "a layer divided both ways is not modelled"
    return None
